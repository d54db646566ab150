"""`IndexWriter`: what an `Index` changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.configuration import Configuration
from sire_core.errors import ConfigurationError, IndexLockedError, IndexMissingError, StorageError
from sire_core.session import Session
from sire_core.storage.pending_documents import PendingDocuments

if TYPE_CHECKING:
    from sire_core.build.apply import Plan
    from sire_core.build.estimate import Estimate
    from sire_core.corpus.changes import CorpusChange, StoredDocument
    from sire_core.models.prices import Price
    from sire_core.protocols import Embedder
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import Manifest
    from sire_core.types import BuildReport, Chunk, Document, Failure

__all__ = ["IndexWriter"]

_POLL = 0.05
"""Seconds between two looks at a lock that somebody else holds."""


class IndexWriter:
    """Changes the documents of an index and what is derived from them; arguments and errors are those of `Index`.

    Args:
        configuration: The arguments of `Index`.
        session: What it has open.
        pending: Documents that wait to be indexed; None reads them from the folder.
    """

    def __init__(self, configuration: Configuration, session: Session, pending: PendingDocuments | None = None) -> None:
        self._configuration = configuration
        self._session = session
        path = configuration.path
        self.pending = pending or PendingDocuments(None if path is None else path / "pending")

    async def defer(self, documents: Iterable[Document], delete: Iterable[str]) -> list[str]:
        """Store changes that are indexed before the next search; the first documents of a folder at once."""
        from sire_core.corpus.validation import check_documents

        given = check_documents(documents)
        names = [document.id for document in given]
        if self._configuration.path is not None and not self._is_built():
            # The folder must say with which embedder and recipe others have to index what waits in it.
            if given:
                await self.put(given, may_replace=True)
            return names
        self.pending.put({document.id: document for document in given} | dict.fromkeys(delete))
        return names

    def _is_built(self) -> bool:
        try:
            self._session.built()
        except IndexMissingError:
            return False
        except ConfigurationError:  # another recipe is built there
            return True
        return True

    async def index_pending(self, *, for_search: bool = False) -> None:
        """Index what `defer` stored. If this fails, nothing is lost: the next search tries again.

        Args:
            for_search: Whether any object may be the one that searches: then models and chunker have to be those of
                the index.

        Raises:
            StorageError: It cannot be done here; the message says how many changes wait.
        """
        if not self.pending:
            return
        checked = for_search and self._configuration.path is not None
        manifest = self._session.built()[0] if checked else None
        try:
            configuration = self._configuration if manifest is None else self._for_search(manifest)
            files = self._session.files(create=True)
            async with self._writing(files):
                if await self._index_pending(files, configuration):
                    await self._publish_to_mirrors(files)
        except (ConfigurationError, StorageError) as error:
            count = len(self.pending.changes())
            kind = type(error) if isinstance(error, StorageError) else StorageError
            raise kind(
                f"{count} changes of documents are not indexed yet, and a search without them would be wrong. Call "
                f"flush() on the object that they were given to. This one cannot index them: {error}"
            ) from error

    def _for_search(self, manifest: Manifest) -> Configuration:
        """The configuration with the chunker of the folder, after a check that its recipes can be updated."""
        from sire_core.corpus.chunker import SentenceChunker

        for built in manifest.recipes:
            self._configuration.check_rebuilds(built)
        return replace(self._configuration, chunker=SentenceChunker(**manifest.chunker) if manifest.chunker else None)

    async def _index_pending(self, files: IndexFiles, configuration: Configuration) -> bool:
        """Index what waits, with the writer's lock held; returns whether there was anything to do."""
        from sire_core.corpus.changes import plan_put

        changes = self.pending.changes() if self.pending else {}
        put = [document for document in changes.values() if document is not None]
        changed = bool(put or (changes and files.refresh().recipes))
        if changed:

            def plan(stored: Mapping[str, StoredDocument], _: Sequence[Chunk]) -> CorpusChange:
                change = plan_put(stored, put, configuration.chunker_object())
                gone = tuple(name for name, document in changes.items() if document is None and name in stored)
                return replace(change, drop_documents=gone)

            await self._change(files, plan, configuration)
        if changes:
            self.pending.done(changes)
        return changed

    async def build(self, documents: Iterable[Document], keep: Collection[str]) -> BuildReport:
        """Make the index hold exactly some documents, and others that stay as they are stored."""
        from sire_core.build.memory import LARGE, mapped_arrays
        from sire_core.corpus.changes import plan_build
        from sire_core.corpus.validation import check_documents

        # In a list, so that what was given is let go of when it was read.
        given, chunker = [check_documents(documents)], self._configuration.chunker_object()
        kept = {keep} if isinstance(keep, str) else set(keep)
        with mapped_arrays(large=len(given[0]) > LARGE):
            report = await self.apply(lambda stored, _: plan_build(stored, given.pop(), chunker, kept))
            await self.prepare()
        return report

    async def put(self, documents: Iterable[Document], *, may_replace: bool) -> BuildReport:
        """Add documents, or replace those that are there."""
        from sire_core.build.memory import LARGE, mapped_arrays
        from sire_core.corpus.changes import plan_put
        from sire_core.corpus.validation import check_documents

        # In a list, so that what was given is let go of when it was read.
        given, chunker = [check_documents(documents)], self._configuration.chunker_object()
        with mapped_arrays(large=len(given[0]) > LARGE):
            report = await self.apply(lambda stored, _: plan_put(stored, given.pop(), chunker, may_replace=may_replace))
            if (
                report.generation == 1
            ):  # an index begins so, too: the first reader shall not wait for what a build makes
                await self.prepare()
        return report

    async def delete(self, doc_ids: Iterable[str], *, missing_ok: bool, visible_only: bool) -> BuildReport:
        """Remove documents."""
        from sire_core.corpus.changes import plan_delete, plan_delete_shown

        wanted = [doc_ids] if isinstance(doc_ids, str) else list(doc_ids)
        allow, chunker = self._configuration.allow, self._configuration.chunker_object()
        if missing_ok:
            self._session.files()  # nothing is made where there is nothing to delete
        if visible_only and allow is not None:
            return await self.apply(
                lambda stored, chunks: plan_delete_shown(
                    stored, chunks, wanted, allow, missing_ok=missing_ok, chunker=chunker
                )
            )
        return await self.apply(lambda stored, _: plan_delete(stored, wanted, missing_ok=missing_ok))

    async def delete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """Remove single passages."""
        from sire_core.corpus.changes import plan_delete_passages

        wanted = {passage_ids} if isinstance(passage_ids, str) else set(passage_ids)
        allow, chunker = self._configuration.allow, self._configuration.chunker_object()
        self._session.files()  # nothing is made where there is nothing to delete
        return await self.apply(
            lambda stored, chunks: plan_delete_passages(stored, chunks, wanted, allow=allow, chunker=chunker)
        )

    async def drop_recipe(self, name: str) -> None:
        """Remove a recipe and what only it derived."""
        from sire_core.build.mirroring import sync_mirrors
        from sire_core.build.shielded import run_shielded
        from sire_core.storage.commit import Commit
        from sire_core.storage.index_files import require_built

        files = self._session.files()
        files.refresh()
        require_built(files)
        async with self._writing(files):
            manifest = files.refresh()
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
            await run_shielded(lambda: files.store.commit(commit))
            await run_shielded(files.publish)
            self._session.changed(files.manifest())
            await sync_mirrors(files, None, self._configuration.mirrors)

    async def purge(self) -> None:
        """Overwrite what documents that are gone left behind, and drop it from the vector stores."""
        import gc

        from sire_core.build.mirroring import purge
        from sire_core.build.shielded import run_shielded

        self._session.built()
        files = self._session.files()
        gc.collect()  # a snapshot that nobody uses any more, but in a cycle, would still be reading
        async with self._writing(files):
            await run_shielded(files.purge)
        await self.push()
        await purge(self._configuration.mirrors)

    async def push(self, *, full: bool = False) -> dict[str, int]:
        """Send the vector stores the changes that they missed; units sent, by the store's name."""
        from sire_core.build.mirroring import push_all

        return await push_all(self._session.files(), self._session.built()[1], self._configuration.mirrors, full=full)

    async def estimate(self, documents: Iterable[Document], price: Price | None) -> Estimate:
        """What building these documents would ask of the model."""
        from sire_core.build.estimate import estimate_build
        from sire_core.corpus.validation import check_documents

        path = self._configuration.path
        there = self._session.open_files() is not None or (path is not None and (path / "index.sqlite").exists())
        files = self._session.files() if there else None
        return await estimate_build(files, check_documents(documents), self._configuration, price)

    async def reembed(self, path: Path, embedder: Embedder | str) -> BuildReport:
        """Build the same corpus and recipes in another folder, with other vectors."""
        import asyncio

        from sire_core.corpus.changes import replacing
        from sire_core.corpus.chunker import SentenceChunker
        from sire_core.models.embedders import resolve_embedder
        from sire_core.recipes.registry import registered_recipe

        self._configuration.refuse_limited("a copy holds everything")
        await self.index_pending()
        embedder = resolve_embedder(embedder)
        manifest, _ = self._session.built()
        files = self._session.files()
        for built in manifest.recipes:
            self._configuration.check_rebuilds(built)
        with files.store.snapshot():
            stored = files.store.documents()
            chunks = files.store.chunks(stored)
        await asyncio.to_thread(files.copy_calls, path)
        chunker = SentenceChunker(**manifest.chunker) if manifest.chunker else None
        report: BuildReport | None = None
        for built in manifest.recipes:
            recipe = registered_recipe(built)
            configuration = replace(
                self._configuration, path=path, recipe=recipe, embedder=embedder, chunker=chunker, seed=manifest.seed
            )
            configuration = replace(configuration, mirrors=(), store=None)
            session = Session(configuration)
            try:
                report = await IndexWriter(configuration, session).apply(
                    lambda known, _: replacing(known, stored, chunks)
                )
            finally:
                session.close()
        await asyncio.to_thread(files.copy_adapter_files, path)
        assert report is not None  # an index that was built has a recipe
        return report

    async def apply(self, plan: Plan) -> BuildReport:
        """Change the corpus and everything derived from it, and publish the result."""
        files = self._session.files(create=True)
        async with self._writing(files):
            await self._index_pending(files, self._configuration)  # older than this change
            report = await self._change(files, plan, self._configuration)
            missed = await self._publish_to_mirrors(files)
        return replace(report, failures=(*report.failures, *missed)) if missed else report

    async def _change(self, files: IndexFiles, plan: Plan, configuration: Configuration) -> BuildReport:
        from sire_core.build.apply import apply_plan
        from sire_core.build.memory import LARGE, rare_collections, trim_memory
        from sire_core.build.shielded import run_shielded

        with rare_collections():
            report = await apply_plan(files, plan, configuration)
            if large := report.added + report.updated > LARGE:
                trim_memory()
            await run_shielded(files.publish)
        if large:
            trim_memory()
        self._session.changed(files.manifest())
        return report

    async def _publish_to_mirrors(self, files: IndexFiles) -> list[Failure]:
        from sire_core.build.mirroring import sync_mirrors

        return await sync_mirrors(files, self._session.meant(files.manifest()), self._configuration.mirrors)

    async def prepare(self) -> None:
        """Make what the first search would make, if the ranker says that there is something; see `PreparedRanker`."""
        import asyncio

        from sire_core.protocols import PreparedRanker

        def prepare() -> None:
            view, recipe = self._session.reader()
            if isinstance(recipe.ranker, PreparedRanker):
                recipe.ranker.prepare(view)

        await asyncio.to_thread(prepare)

    @asynccontextmanager
    async def _writing(self, files: IndexFiles) -> AsyncIterator[None]:
        """Hold the writer's lock; wait for it as long as was configured, without holding up the event loop."""
        import asyncio
        import time

        deadline = time.monotonic() + self._configuration.lock_timeout
        with ExitStack() as held:
            while True:
                try:
                    held.enter_context(files.writing())
                    break
                except IndexLockedError:
                    if time.monotonic() >= deadline:
                        raise
                await asyncio.sleep(_POLL)
            yield
