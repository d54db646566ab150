"""`Session`: what an `Index` has open, and everything that it does with files."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.configuration import Configuration, registered_recipe
from sire_core.errors import ConfigurationError, IndexLockedError
from sire_core.pool_reader import PoolReader

if TYPE_CHECKING:
    from sire_core.models.prices import Price
    from sire_core.pipeline.apply import Plan
    from sire_core.pipeline.build_context import BuildContext
    from sire_core.pipeline.estimate import Estimate
    from sire_core.protocols import (
        Embedder,
        Recipe,
        VectorIndex,
    )
    from sire_core.search.view import PoolView
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import BuiltRecipe, Manifest
    from sire_core.types import BuildReport, Document, Failure

__all__ = ["Session"]

_POLL = 0.05
"""Seconds between two looks at a lock that somebody else holds."""


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
        self._lock = threading.RLock()
        self._pool = PoolReader(configuration, self.files, self._open_files, self.built, lambda: self.vectors)
        if configuration.recipe_object is not None:
            from sire_core.recipes.base import remember

            remember(configuration.recipe_object)

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

    def _open_files(self) -> IndexFiles | None:
        return (self._opened or self)._library  # noqa: SLF001 - a session like this one

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
        return await self._pool.acurrent()

    def reader(self) -> tuple[PoolView, Recipe]:
        """The pool as of now and the recipe that ranks it; read again when another generation was published."""
        return self._pool.current()

    async def asnapshot(self) -> tuple[PoolView, Recipe]:
        """As `areader`, but what the view reads later is of the same generation, however late that is."""
        return await self._pool.aheld()

    @property
    def vectors(self) -> VectorIndex | None:
        """The user's own store, if one was given; a recipe object's holds for other recipes of the same index too."""
        configuration = (self._opened or self)._configuration  # noqa: SLF001 - a session like this one
        given = configuration.recipe_object
        return configuration.store if given is None or given.vectors is None else given.vectors

    def documents(self, wanted: set[str] | None) -> list[Document]:
        """Stored documents in corpus order, cut into the passages that are allowed; None means all."""
        from sire_core.corpus.stored import stored_documents
        from sire_core.storage.index_files import require_built

        library = self.files()
        library.refresh()
        require_built(library)
        return stored_documents(library.store, wanted, self._configuration.allow)

    def failures(self) -> list[Failure]:
        """Passages and summaries of the recipe that failed in the last build, and why; passages as they are allowed."""
        from sire_core.corpus.stored import is_allowed
        from sire_core.types import Failure

        manifest, built = self.built()
        failed, allow = set(manifest.failed.get(built.extraction, ())), self._configuration.allow
        found: list[Failure] = []
        if failed:
            why = dict(self.files().calls.failures(built.extraction))
            with (store := self.files().store).snapshot():
                chunks = [chunk for chunk in store.chunks() if chunk.hash in failed]
            kept = [chunk for chunk in chunks if is_allowed(chunk, allow)]
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
        from sire_core.pipeline.builder import LARGE, give_back
        from sire_core.pipeline.finish import finish_in_thread
        from sire_core.pipeline.mirroring import sync_mirrors

        library = self.files(create=True)
        async with self._writing(library):
            report = await apply_plan(library, plan, self._workers(library.manifest()))
            if large := report.added + report.updated > LARGE:
                give_back()
            await finish_in_thread(library.publish)
            if large:
                give_back()
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
        report = await self.apply(lambda stored, _: plan_put(stored, given, chunker, may_replace=may_replace))
        if report.generation == 1:  # an index begins so, too: the first reader shall not wait for what a build makes
            await self.prepare()
        return report

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
            self._configuration.check_rebuilds(built)
        with library.store.snapshot():
            stored = library.store.documents()
            chunks = library.store.chunks(stored)
        await asyncio.to_thread(library.copy_calls, path)
        chunker = SentenceChunker(**manifest.chunker) if manifest.chunker else None
        report: BuildReport | None = None
        for built in manifest.recipes:
            recipe = registered_recipe(built)
            configuration = replace(
                self._configuration, path=path, recipe=recipe, embedder=embedder, chunker=chunker, seed=manifest.seed
            )
            session = Session(replace(configuration, mirrors=(), store=None))
            try:
                report = await session.apply(lambda known, _: replacing(known, stored, chunks))
            finally:
                session.close()
        await asyncio.to_thread(library.copy_adapter_files, path)
        assert report is not None  # an index that was built has a recipe
        return report

    async def estimate(self, documents: Sequence[Document], price: Price | None) -> Estimate:
        """What building these documents would ask of the model."""
        from sire_core.pipeline.estimate import estimate_build
        from sire_core.storage.manifest import Manifest

        path = self._configuration.path
        there = self._open_files() is not None or (path is not None and (path / "index.sqlite").exists())
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
        self._pool.forget()
        with self._lock:
            library, self._library = self._library, None
        if library is not None:  # without the lock: a reader that holds the database may be waiting for it
            library.close()
