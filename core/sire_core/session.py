"""`Session`: what an `Index` was configured with, and what it has open."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError, EmbedderMismatchError

if TYPE_CHECKING:
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.manifest import BuiltRecipe, Manifest
    from sire_core.models.limits import UsageLimits
    from sire_core.models.prices import Price
    from sire_core.pipeline.apply import Plan
    from sire_core.pipeline.estimate import Estimate
    from sire_core.pipeline.workers import Workers
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Mirror, Progress
    from sire_core.recipes.base import Recipe
    from sire_core.search.view import PoolView
    from sire_core.storage.index_files import IndexFiles
    from sire_core.types import BuildReport, Document

__all__ = ["Configuration", "Session"]


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

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigurationError(f"workers must be at least 1, not {self.workers}.")
        if self.extraction not in ("joint", "native"):
            raise ConfigurationError(f"extraction is 'joint' or 'native', not {self.extraction!r}.")
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
        from sire_core.recipes.base import recipe_by_name

        if self.recipe_object is not None:
            return self.recipe_object
        name = self.recipe_name
        known = [built for built in manifest.recipes if not name or built.name == name]
        return _registered(known[-1]) if known else recipe_by_name(name or "sirerag")

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
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._library: IndexFiles | None = None
        self._reader: tuple[tuple[int, int], PoolView, Recipe] | None = None
        self._lock = threading.RLock()

    def files(self, *, create: bool = False) -> IndexFiles:
        """The open index.

        Raises:
            IndexMissingError: There is none, and `create` is off.
        """
        with self._lock:
            if self._library is None:
                from sire_core.storage.index_files import IndexFiles

                self._library = IndexFiles(self._configuration.path, create=create)
            return self._library

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

        reader, library = self._reader, self._library
        if reader is not None and library is not None and reader[0] == library.stamp():
            return reader[1], reader[2]
        return await asyncio.to_thread(self.reader)

    def reader(self) -> tuple[PoolView, Recipe]:
        """The pool as of now and the recipe that ranks it; read again when another generation was published."""
        stamp = self.files().stamp()
        reader = self._reader
        if reader is None or reader[0] != stamp:
            with self._lock:
                if self._reader is None or self._reader[0] != stamp:
                    self._reader = (stamp, *self._read())
                reader = self._reader
        return reader[1], reader[2]

    def _read(self) -> tuple[PoolView, Recipe]:
        from sire_core.search.view import PoolView

        library = self.files()
        while True:
            with library.store.snapshot():
                manifest, built = self.built()
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
        edges, note = lambda: library.edges(built), lambda key: library.note(built, key)
        return PoolView(pool, embedder, model, edges, note), recipe

    def _embedder(self, manifest: Manifest) -> Any:
        from sire_core.models.fitting import restore

        if not manifest.embedder:  # nothing was ever embedded
            return None
        given = self._configuration.embedder_for(manifest)
        embedder = restore(given, "embedder", manifest.embedder, self.files().calls)
        if embedder.fingerprint != manifest.embedder:
            raise EmbedderMismatchError(
                f"This index was built with the embedder {manifest.embedder}, not with {embedder.fingerprint}. "
                "Give that one, or build into another folder."
            )
        return embedder

    def documents(self, wanted: set[str] | None) -> list[Document]:
        """Stored documents in corpus order, cut into their passages; None means all."""
        from sire_core.types import Document

        self.built()
        store = self.files().store
        chunks: dict[str, list[str]] = {}
        for chunk in store.chunks():
            if wanted is None or chunk.doc_id in wanted:
                chunks.setdefault(chunk.doc_id, []).append(chunk.text)
        return [
            Document(id=found.id, title=found.title, metadata=found.metadata, chunks=tuple(chunks.get(found.id, ())))
            for found in store.documents().values()
            if wanted is None or found.id in wanted
        ]

    async def apply(self, plan: Plan) -> BuildReport:
        """Change the corpus and everything derived from it, and publish the result."""
        from sire_core.pipeline.apply import apply_plan
        from sire_core.pipeline.finish import finish_in_thread
        from sire_core.pipeline.mirroring import tell

        library = self.files(create=True)
        with library.writing():
            report = await apply_plan(library, plan, self._workers(library.manifest()))
            await finish_in_thread(library.publish)
            unheard = await tell(library, library.manifest().find(*self._wanted), self._configuration.mirrors)
        return replace(report, failures=(*report.failures, *unheard)) if unheard else report

    async def put(self, documents: Iterable[Document], *, may_replace: bool) -> BuildReport:
        """Add documents, or replace those that are there."""
        from sire_core.corpus.changes import plan_put
        from sire_core.corpus.validation import check_documents

        given, chunker = check_documents(documents), self._configuration.chunker_object()
        return await self.apply(lambda stored: plan_put(stored, given, chunker, may_replace=may_replace))

    async def push(self, *, anew: bool = False) -> dict[str, int]:
        """Tell the vector stores what they have not heard of; units told, by the store's name."""
        from sire_core.pipeline.mirroring import push_all

        return await push_all(self.files(), self.built()[1], self._configuration.mirrors, anew=anew)

    async def purge(self) -> None:
        """Overwrite what documents that are gone left behind, and have the vector stores forget them."""
        from sire_core.pipeline.finish import finish_in_thread

        self.built()
        library = self.files()
        with library.writing():
            await finish_in_thread(library.purge)
        await self.push()

    async def estimate(self, documents: Sequence[Document], price: Price | None) -> Estimate:
        """What building these documents would ask of the model."""
        from sire_core.manifest import Manifest
        from sire_core.pipeline.estimate import estimate_build

        path = self._configuration.path
        there = self._library is not None or (path is not None and (path / "index.sqlite").exists())
        library = self.files() if there else None
        workers = self._workers(library.manifest() if library else Manifest())
        return await estimate_build(library, documents, workers, price)

    def _workers(self, manifest: Manifest) -> Workers:
        """The configuration, its gaps filled from the folder."""
        from sire_core.pipeline.workers import Workers

        configuration = self._configuration
        recipe, embedder = configuration.recipe_to_build(manifest), configuration.embedder_for(manifest)
        recipe.check_embedder(embedder)
        return Workers(
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
            native=configuration.extraction == "native",
        )

    def close(self) -> None:
        """Let go of files."""
        with self._lock:
            self._reader = None
            if self._library is not None:
                self._library.close()
                self._library = None


def _registered(built: BuiltRecipe) -> Recipe:
    from sire_core.recipes.base import recipe_by_name

    return recipe_by_name(built.name, **dict(built.config))
