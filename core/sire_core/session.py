"""`Session`: what an `Index` was configured with, and what it has open."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError, EmbedderMismatchError, IndexLockedError
from sire_core.extraction.choice import EXTRACTIONS

if TYPE_CHECKING:
    from sire_core.corpus.changes import StoredDocument
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.filters import Filter
    from sire_core.models.prices import Price
    from sire_core.models.usage import UsageLimits
    from sire_core.pipeline.apply import Plan
    from sire_core.pipeline.build_context import BuildContext
    from sire_core.pipeline.estimate import Estimate
    from sire_core.protocols import (
        Embedder,
        Extractor,
        LanguageModel,
        Mirror,
        Progress,
        Recipe,
        Runner,
        UnitStore,
        VectorIndex,
    )
    from sire_core.search.view import PoolView
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import BuiltRecipe, Manifest
    from sire_core.types import BuildReport, Chunk, Document, Failure, Passage

__all__ = ["Configuration", "Session"]

_TRIES = 5
_POLL = 0.05
"""Seconds between two looks at a lock that somebody else holds."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The arguments of `Index`; see there."""

    path: Path | None
    recipe: Recipe | str | None
    language_model: LanguageModel | None
    embedder: Embedder | str | None
    extractor: Extractor | None
    chunker: SentenceChunker | str | None
    seed: int
    workers: int
    max_failure_ratio: float
    progress: Progress
    limits: UsageLimits | None = None
    extraction: str = "joint"
    mirrors: tuple[Mirror, ...] = ()
    store: UnitStore | None = None
    lock_timeout: float = 10.0
    allow: Filter | None = None
    runner: Runner | str | None = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigurationError(f"workers must be at least 1, not {self.workers}.")
        if not self.lock_timeout >= 0:
            raise ConfigurationError(f"lock_timeout is a number of seconds of at least 0, not {self.lock_timeout}.")
        if self.extraction not in EXTRACTIONS:
            raise ConfigurationError(f"extraction is one of {', '.join(EXTRACTIONS)}, not {self.extraction!r}.")
        names = [mirror.name for mirror in self.mirrors]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"Two vector stores have the same name: {', '.join(names)}. Name them apart.")
        if isinstance(self.chunker, str) and self.chunker != "sentences":
            raise ConfigurationError(f"chunker is a SentenceChunker, None or 'sentences', not {self.chunker!r}.")

    @property
    def recipe_object(self) -> Recipe | None:
        """The recipe, when one was given as an object."""
        return None if isinstance(self.recipe, str) else self.recipe

    @property
    def recipe_name(self) -> str:
        """The recipe's name, when only that was given."""
        return self.recipe if isinstance(self.recipe, str) else ""

    def recipe_to_build(self, manifest: Manifest) -> Recipe:
        """The given recipe; else the folder's latest (of that name); else the default."""
        from sire_core.recipes.base import DEFAULT_RECIPE, recipe_by_name

        if self.recipe_object is not None:
            return self.recipe_object
        name = self.recipe_name
        known = [built for built in manifest.recipes if not name or built.name == name]
        return _registered(known[-1]) if known else recipe_by_name(name or DEFAULT_RECIPE)

    def embedder_for(self, manifest: Manifest) -> Embedder:
        """The given embedder; else what the folder was built with; else the zero-download default.

        Raises:
            EmbedderMismatchError: The folder was built with an embedder that has to be given.
        """
        from sire_core.models.embedders import resolve_embedder

        if self.embedder is not None:
            return resolve_embedder(self.embedder)
        if manifest.embedder and not manifest.embedder_spec:
            raise EmbedderMismatchError(
                f"This index was built with the embedder {manifest.embedder}, which cannot be made from its name. "
                "Pass it: Index(path, embedder=...)."
            )
        return resolve_embedder(manifest.embedder_spec or None)

    def chunker_object(self) -> SentenceChunker | None:
        """What cuts documents; None takes them whole."""
        if isinstance(self.chunker, str):
            from sire_core.corpus.chunker import SentenceChunker

            return SentenceChunker()
        return self.chunker


class Session:
    """Opens the library when it is first needed and keeps the current view of its pool.

    Args:
        configuration: The arguments of `Index`.
        opened: A session of the same index whose files are used; None opens them.
    """

    def __init__(self, configuration: Configuration, opened: Session | None = None) -> None:
        self._configuration = configuration
        self._opened = opened
        self._library: IndexFiles | None = None
        self._reader: tuple[tuple[int, int], PoolView, Recipe] | None = None
        self._lock = threading.RLock()

    def files(self, *, create: bool = False) -> IndexFiles:
        """The open index.

        Raises:
            IndexMissingError: There is none, and `create` is off.
        """
        if self._opened is not None:
            return self._opened.files(create=create)
        with self._lock:
            if self._library is None:
                from sire_core.storage.index_files import IndexFiles

                self._library = IndexFiles(self._configuration.path, create=create)
            return self._library

    @property
    def _is_open(self) -> bool:
        session = self._opened or self
        return session._library is not None  # noqa: SLF001 - a session like this one

    def built(self) -> tuple[Manifest, BuiltRecipe]:
        """The manifest, and the recipe in it that the configuration means."""
        from sire_core.storage.index_files import require_built

        library = self.files()
        manifest = library.refresh()
        require_built(library)
        return manifest, manifest.find(*self._wanted)

    @property
    def _wanted(self) -> tuple[Recipe | None, str]:
        return self._configuration.recipe_object, self._configuration.recipe_name

    async def areader(self) -> tuple[PoolView, Recipe]:
        """See `reader`; deriving a pool does not hold up the event loop."""
        import asyncio

        reader = self._reader
        if reader is not None and self._is_open and reader[0] == self.files().stamp() and reader[1].intact():
            return reader[1], reader[2]
        return await asyncio.to_thread(self.reader)

    def reader(self) -> tuple[PoolView, Recipe]:
        """The pool as of now and the recipe that ranks it; read again when another generation was published."""
        stamp = self.files().stamp()
        reader = self._reader
        if reader is None or reader[0] != stamp or not reader[1].intact():
            with self._lock:
                if self._reader is None or self._reader[0] != stamp or not self._reader[1].intact():
                    self._reader = (stamp, *self._read())
                reader = self._reader
        return reader[1], reader[2]

    async def asnapshot(self) -> tuple[PoolView, Recipe]:
        """As `areader`, but what the view reads later is of the same generation, however late that is."""
        import asyncio

        return await asyncio.to_thread(self._held)

    def _held(self) -> tuple[PoolView, Recipe]:
        from sire_core.storage.later_reads import LaterReads

        library = self.files()
        for _ in range(_TRIES):
            view, recipe = self.reader()
            _, built = self.built()
            if library.folder is None or not built.owners:
                break  # nothing is read later, or nobody else could hold it
            later = LaterReads.held(library.folder.index_file, tuple(built.owners))
            if later.generation == view.generation:
                return view.reading(later.edges, later.notes), recipe
            later.close()  # a commit came in between
        return view, recipe

    def _read(self) -> tuple[PoolView, Recipe]:
        from sire_core.search.view import PoolView
        from sire_core.storage.later_reads import LaterReads

        library = self.files()
        while True:
            with library.store.snapshot():
                manifest, built = self.built()
                commit = library.store.commits()[0]
                pool = library.pools.get(built, manifest.generation)
            try:
                embedder = self._embedder(manifest)
                break
            except EmbedderMismatchError:
                # A writer that fitted the embedder again drops the old state when it has committed: look again.
                if library.refresh().generation == manifest.generation:
                    raise
        recipe = self._configuration.recipe_object or _registered(built)
        if embedder is not None:
            recipe.check_embedder(embedder)
        model = self._configuration.language_model
        later = LaterReads(library.store, commit, tuple(built.owners))
        before = None if self._reader is None else self._reader[1]
        return PoolView(pool, embedder, model, later.edges, later.notes, self.vectors, before), recipe

    def _embedder(self, manifest: Manifest) -> Any:
        from sire_core.models.embedders import restore

        if not manifest.embedder:  # nothing was ever embedded
            return None
        given = self._configuration.embedder_for(manifest)
        embedder = restore(given, "embedder", manifest.embedder, self.files().calls)
        same = embedder.fingerprint.split(":", 1)[0] == manifest.embedder.split(":", 1)[0]
        if same and not getattr(embedder, "fitted", True):
            raise EmbedderMismatchError(
                f"What the embedder {manifest.embedder} has learned of this corpus is not in calls.sqlite, which is "
                "damaged or missing. Restore it from a backup, or give the documents again (sire index)."
            )
        if embedder.fingerprint != manifest.embedder:
            raise EmbedderMismatchError(
                f"This index was built with the embedder {manifest.embedder}, not with {embedder.fingerprint}. "
                "Give that one, or build into another folder."
            )
        return embedder

    @property
    def vectors(self) -> VectorIndex | None:
        """The user's own store, if one was given; a recipe object's holds for other recipes of the same index too."""
        configuration = (self._opened or self)._configuration  # noqa: SLF001 - a session like this one
        given = configuration.recipe_object
        return configuration.store if given is None or given.vectors is None else given.vectors

    def documents(self, wanted: set[str] | None) -> list[Document]:
        """Stored documents in corpus order, cut into the passages that are allowed; None means all."""
        from sire_core.storage.index_files import require_built
        from sire_core.types import Document

        library = self.files()
        library.refresh()
        require_built(library)
        store, allow = library.store, self._configuration.allow
        found = {name: document for name, document in store.documents().items() if wanted is None or name in wanted}
        chunks: dict[str, list[str | Passage]] = {}
        for chunk in store.chunks():
            if chunk.doc_id in found and (allow is None or allow.matches(chunk.metadata)):
                chunks.setdefault(chunk.doc_id, []).append(_as_given(chunk, found[chunk.doc_id]))
        return [
            Document(id=name, title=document.title, metadata=document.metadata, chunks=tuple(chunks.get(name, ())))
            for name, document in found.items()
            if allow is None or name in chunks
        ]

    def failures(self) -> list[Failure]:
        """Passages and summaries of the recipe that failed in the last build, and why; passages as they are allowed."""
        from sire_core.types import Failure

        manifest, built = self.built()
        failed, allow = set(manifest.failed.get(built.extraction, ())), self._configuration.allow
        found: list[Failure] = []
        if failed:
            why = dict(self.files().calls.failures(built.extraction))
            chunks = [chunk for chunk in self.files().store.chunks() if chunk.hash in failed]
            kept = [chunk for chunk in chunks if allow is None or allow.matches(chunk.metadata)]
            found += [Failure(chunk.title or chunk.doc_id, why.get(chunk.hash, "no answer")) for chunk in kept]
        if allow is None:
            for (name, _), owner in zip(built.organizers, built.owners, strict=True):
                found += [Failure(name, text) for text in manifest.failed.get(owner, ())]
        return found

    def spent(self) -> list[tuple[str, int, int, int]]:
        """Stage, answers, input and output tokens of everything that a model was paid for in this index.

        Raises:
            ConfigurationError: The index was opened with `allow`.
        """
        if self._configuration.allow is not None:
            raise ConfigurationError("What a model was paid for is not told apart by `allow`. Open the index without.")
        return self.files().calls.spent()

    async def apply(self, plan: Plan) -> BuildReport:
        """Change the corpus and everything derived from it, and publish the result."""
        from sire_core.pipeline.apply import apply_plan
        from sire_core.pipeline.finish import finish_in_thread
        from sire_core.pipeline.mirroring import sync_mirrors

        library = self.files(create=True)
        async with self._writing(library):
            report = await apply_plan(library, plan, self._workers(library.manifest()))
            await finish_in_thread(library.publish)
            missed = await sync_mirrors(library, library.manifest().find(*self._wanted), self._configuration.mirrors)
        return replace(report, failures=(*report.failures, *missed)) if missed else report

    async def prepare(self) -> None:
        """Make what the first search would make, if the ranker says that there is something; see `PreparedRanker`."""
        import asyncio

        from sire_core.protocols import PreparedRanker

        def prepare() -> None:
            view, recipe = self.reader()
            if isinstance(recipe.ranker, PreparedRanker):
                recipe.ranker.prepare(view)

        await asyncio.to_thread(prepare)

    @asynccontextmanager
    async def _writing(self, library: IndexFiles) -> AsyncIterator[None]:
        """Hold the writer's lock; wait for it as long as was configured, without holding up the event loop."""
        import asyncio
        import time

        deadline = time.monotonic() + self._configuration.lock_timeout
        with ExitStack() as held:
            while True:
                try:
                    held.enter_context(library.writing())
                    break
                except IndexLockedError:
                    if time.monotonic() >= deadline:
                        raise
                await asyncio.sleep(_POLL)
            yield

    async def put(self, documents: Iterable[Document], *, may_replace: bool) -> BuildReport:
        """Add documents, or replace those that are there."""
        from sire_core.corpus.changes import plan_put
        from sire_core.corpus.validation import check_documents

        given, chunker = check_documents(documents), self._configuration.chunker_object()
        return await self.apply(lambda stored: plan_put(stored, given, chunker, may_replace=may_replace))

    async def drop_recipe(self, name: str) -> None:
        """Remove a recipe and what only it derived."""
        from sire_core.pipeline.finish import finish_in_thread
        from sire_core.storage.commit import Commit
        from sire_core.storage.index_files import require_built

        library = self.files()
        library.refresh()
        require_built(library)
        async with self._writing(library):
            manifest = library.refresh()
            kept = tuple(built for built in manifest.recipes if built.name != name)
            if len(kept) == len(manifest.recipes):
                held = ", ".join(dict.fromkeys(built.name for built in manifest.recipes))
                raise ConfigurationError(f"This index does not hold {name!r}; it holds: {held}.")
            if not kept:
                raise ConfigurationError(f"{name!r} is the only recipe of this index. Build another one first.")
            staying = {owner for built in kept for owner in built.owners}
            gone = [owner for built in manifest.recipes for owner in built.owners if owner not in staying]
            after = replace(manifest, generation=manifest.generation + 1, recipes=kept)
            commit = Commit(drop_owners=list(dict.fromkeys(gone)), manifest=after.to_json())
            await finish_in_thread(lambda: library.store.commit(commit))
            await finish_in_thread(library.publish)

    async def push(self, *, full: bool = False) -> dict[str, int]:
        """Send the vector stores the changes that they missed; units sent, by the store's name."""
        from sire_core.pipeline.mirroring import push_all

        return await push_all(self.files(), self.built()[1], self._configuration.mirrors, full=full)

    async def purge(self) -> None:
        """Overwrite what documents that are gone left behind, and drop it from the vector stores."""
        from sire_core.pipeline.finish import finish_in_thread

        self.built()
        library = self.files()
        async with self._writing(library):
            await finish_in_thread(library.purge)
        await self.push()

    async def reembed(self, path: Path, embedder: Embedder) -> BuildReport:
        """Build the same corpus and recipes in another folder, with other vectors."""
        import asyncio

        from sire_core.corpus.changes import replacing
        from sire_core.corpus.chunker import SentenceChunker

        manifest, _ = self.built()
        library = self.files()
        for built in manifest.recipes:
            self._check_makers(built)
        with library.store.snapshot():
            stored = library.store.documents()
            chunks = library.store.chunks(stored)
        await asyncio.to_thread(library.copy_calls, path)
        chunker = SentenceChunker(**manifest.chunker) if manifest.chunker else None
        report: BuildReport | None = None
        for built in manifest.recipes:
            recipe = _registered(built)
            configuration = replace(
                self._configuration, path=path, recipe=recipe, embedder=embedder, chunker=chunker, seed=manifest.seed
            )
            session = Session(replace(configuration, mirrors=(), store=None))
            try:
                report = await session.apply(lambda known: replacing(known, stored, chunks))
            finally:
                session.close()
        assert report is not None  # an index that was built has a recipe
        return report

    def _check_makers(self, built: BuiltRecipe) -> None:
        """Refuse to make anew, by others, what a model or a given extractor has made."""
        configuration = self._configuration
        model = configuration.language_model
        by_model = bool(built.language_model) and bool(built.organizers)
        if by_model and (model is None or model.fingerprint != built.language_model):
            raise ConfigurationError(
                f"{built.name} was made with the language model {built.language_model}. Pass it: Index(path, "
                "language_model=...)."
            )
        if built.extraction.startswith("recorded/") and configuration.extractor is None:
            raise ConfigurationError(
                f"{built.name} was made from the extractions {built.extraction}. Pass them: Index(path, extractor=...)."
            )

    async def estimate(self, documents: Sequence[Document], price: Price | None) -> Estimate:
        """What building these documents would ask of the model."""
        from sire_core.pipeline.estimate import estimate_build
        from sire_core.storage.manifest import Manifest

        path = self._configuration.path
        there = self._is_open or (path is not None and (path / "index.sqlite").exists())
        library = self.files() if there else None
        workers = self._workers(library.manifest() if library else Manifest())
        return await estimate_build(library, documents, workers, price)

    def _workers(self, manifest: Manifest) -> BuildContext:
        """The configuration, its gaps filled from the folder."""
        from sire_core.derive.runners import resolve_runner
        from sire_core.pipeline.build_context import BuildContext

        configuration = self._configuration
        recipe, embedder = configuration.recipe_to_build(manifest), configuration.embedder_for(manifest)
        recipe.check_embedder(embedder)
        return BuildContext(
            recipe=recipe,
            embedder=embedder,
            extractor=configuration.extractor,
            language_model=configuration.language_model,
            chunker=configuration.chunker_object(),
            seed=configuration.seed,
            workers=configuration.workers,
            max_failure_ratio=configuration.max_failure_ratio,
            progress=configuration.progress,
            limits=configuration.limits,
            extraction=configuration.extraction,
            runner=resolve_runner(configuration.runner),
        )

    def close(self) -> None:
        """Let go of files."""
        with self._lock:
            self._reader = None
            if self._library is not None:
                self._library.close()
                self._library = None


def _as_given(chunk: Chunk, document: StoredDocument) -> str | Passage:
    """A passage as `Document.chunks` holds it: the text alone where it has nothing of its own."""
    from sire_core.types import Passage

    title = "" if chunk.title == document.title else chunk.title
    missing = object()
    own = {key: value for key, value in chunk.metadata.items() if document.metadata.get(key, missing) != value}
    return Passage(chunk.text, chunk.source_id, title, own) if chunk.source_id or title or own else chunk.text


def _registered(built: BuiltRecipe) -> Recipe:
    from sire_core.recipes.base import recipe_by_name

    return recipe_by_name(built.name, **dict(built.config))
