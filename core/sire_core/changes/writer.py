"""`IndexWriter`: changes of an index, from the documents that were given to the published generation."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.errors import (
    ConfigurationError,
    IndexLockedError,
    IndexMissingError,
    NoSpaceError,
    StorageError,
)
from sire_core.filters import Condition, Filter
from sire_core.models.sync import run_shielded
from sire_core.reader import Reader
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from sire_core.changes.builder import Plan
    from sire_core.changes.estimate import Estimate
    from sire_core.configuration import Configuration
    from sire_core.documents.change_plan import CorpusChange
    from sire_core.documents.chunker import SentenceChunker
    from sire_core.documents.stored_corpus import StoredDocument
    from sire_core.models.usage import Price
    from sire_core.protocols import Embedder, Runner
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import Manifest
    from sire_core.types import BuildReport, Chunk, Document, Failure

_logger = logging.getLogger(__name__)

_POLL = 0.05  # Seconds between two attempts to take a lock that another writer holds


class IndexWriter:
    """Changes the documents of an index and what is derived from them; arguments and errors are those of `Index`."""

    def __init__(self, configuration: Configuration, reader: Reader) -> None:
        self._configuration = configuration
        self._reader = reader

    async def defer(self, documents: Iterable[Document], delete: Iterable[str]) -> list[str]:
        """Store changes that are indexed before the next search; the first documents of a folder at once."""
        checked = self._checked(documents)
        names = [document.id for document in checked]
        if self._configuration.allow is not None:  # whoever indexes it later may not be limited
            return await self._change_shown(checked, list(delete))
        if self._configuration.path is not None and not self._is_built():
            # The folder must say with which embedder and recipe others have to index what waits in it.
            if checked:
                await self._put([checked], may_replace=True)
            return names
        if self._configuration.path is not None:
            checked = self._cut_here(checked)
        self._reader.pending.put({document.id: document for document in checked} | dict.fromkeys(delete))
        return names

    async def _change_shown(self, documents: tuple[Document, ...], removed_ids: list[str]) -> list[str]:
        """Make deferred changes at once, as far as `allow` lets."""
        if documents:
            await self._put([documents], may_replace=True)
        if removed_ids and self._is_built():
            await self.delete(removed_ids, missing_ok=True)
        return [document.id for document in documents]

    def _cut_here(self, documents: tuple[Document, ...]) -> tuple[Document, ...]:
        """Documents for other processes to index: cut, where the folder would cut them in another way."""
        from sire_core.documents.chunker import cut_document, stored_chunker

        manifest = self._reader.files().manifest()
        chunker = self._configuration.chunker_for(manifest)
        if chunker == stored_chunker(manifest.chunker):
            return documents
        return tuple(cut_document(document, chunker) for document in documents)

    def _checked(self, documents: Iterable[Document]) -> tuple[Document, ...]:
        from sire_core.documents.validation import check_documents, in_language

        checked = check_documents(documents, strict_metadata=self._configuration.strict_metadata)
        return checked if not self._configuration.language else in_language(checked, self._configuration.language)

    def _is_built(self) -> bool:
        try:
            self._reader.built()
        except IndexMissingError:
            return False
        except ConfigurationError:  # another recipe is built there
            return True
        return True

    async def prepare_search(self) -> Filter | None:
        """Index what `defer` stored; on a full disk, return a filter that leaves out the documents that wait."""
        try:
            await self.index_pending(for_search=True)
        except NoSpaceError as error:
            waiting = sorted(self._reader.pending.changes())
            _logger.warning("Searches leave out %s of which changes wait: %s", count(len(waiting), "document"), error)
            return Condition("doc_id", "nin", waiting)
        return None

    async def index_pending(self, *, for_search: bool = False) -> None:
        """Index what `defer` stored. If this fails, nothing is lost: the next search tries again."""
        if not self._reader.pending:
            return
        checked = for_search and self._configuration.path is not None
        manifest = self._reader.built()[0] if checked else None
        try:
            configuration = self._configuration if manifest is None else self._for_search(manifest)
            files = self._reader.files(create=True)
            async with self._writing(files):
                if await self._index_pending(files, configuration):
                    await self._publish_to_mirrors(files)
        except (ConfigurationError, StorageError) as error:
            waiting = len(self._reader.pending.changes())
            if not waiting:  # they went with the folder
                raise
            kind = type(error) if isinstance(error, StorageError) else StorageError
            raise kind(
                f"{waiting} changes of documents are not indexed yet, and a search without them would be wrong. Call "
                f"flush() on the object that they were given to. This one cannot index them: {error}"
            ) from error

    def _for_search(self, manifest: Manifest) -> Configuration:
        """The configuration with the chunker of the folder, after a check that its recipes can be updated."""
        for built in manifest.recipes:
            self._configuration.check_rebuilds(built)
        return replace(self._configuration, chunker="folder")

    async def _index_pending(self, files: IndexFiles, configuration: Configuration) -> bool:
        """Index what waits, with the writer's lock held; returns whether there was anything to do."""
        from sire_core.documents.change_plan import plan_put

        changes = self._reader.pending.changes()
        put = [document for document in changes.values() if document is not None]
        changed = bool(put or (changes and files.refresh().recipes))
        if changed:

            def plan(stored: Mapping[str, StoredDocument], _: Sequence[Chunk]) -> CorpusChange:
                change = plan_put(stored, put, configuration.chunker_for(files.manifest()))
                gone = tuple(name for name, document in changes.items() if document is None and name in stored)
                return replace(change, drop_documents=gone)

            await self._change(files, plan, configuration)
        if changes:
            self._reader.pending.done(changes)
        return changed

    async def build(self, documents: Iterable[Document], keep: Collection[str]) -> BuildReport:
        """Make the index contain exactly some documents, and the stored ones with the ids `keep`."""
        # In a list, so that the plan frees the documents when it has read them.
        unread = [self._checked(documents)]
        keep = {keep} if isinstance(keep, str) else set(keep)
        with self._runner(unread[0]) as runner:
            report = await self.apply(partial(self._plan, unread, runner, keep=keep), runner, sets_chunker=True)
            await self.prepare(runner)
        return report

    def _runner(self, documents: Sequence[Document]) -> AbstractContextManager[Runner]:
        """Open the runner of a build of these documents."""
        from sire_core.changes.runners import open_runner

        letters = sum(len(document.text or "") + sum(len(p.text) for p in document.passages) for document in documents)
        return open_runner(self._configuration.runner, letters)

    def _plan(
        self,
        unread: list[tuple[Document, ...]],
        runner: Runner,
        stored: Mapping[str, StoredDocument],
        chunks: Sequence[Chunk],
        *,
        keep: Collection[str] | None = None,
        may_replace: bool = True,
        delete: Collection[str] = (),
    ) -> CorpusChange:
        """Plan to put documents or, with `keep`, to have these and no others beside them."""
        from sire_core.documents import change_plan

        documents, allow, cut = unread.pop(), self._configuration.allow, partial(_cut, runner)
        chunker = self._configuration.chunker_for(self._reader.files().manifest())
        if allow is None and keep is None:
            change = change_plan.plan_put(stored, documents, chunker, may_replace=may_replace, cut=cut)
            return replace(change, drop_documents=tuple(name for name in delete if name in stored))
        if allow is None:
            return change_plan.plan_build(stored, documents, chunker, keep or (), cut)
        if keep is None:
            return change_plan.plan_put_shown(stored, chunks, documents, chunker, allow, may_replace=may_replace)
        return change_plan.plan_build_shown(stored, chunks, documents, chunker, keep, allow)

    async def put(
        self, documents: Iterable[Document], *, may_replace: bool, delete: Collection[str] = ()
    ) -> BuildReport:
        """Add documents, or replace those that are there; remove others."""
        report = await self._put([self._checked(documents)], may_replace=may_replace, delete=delete)
        if delete and self._configuration.allow is not None:
            await self.delete(delete, missing_ok=True)
        return report

    async def _put(
        self, unread: list[tuple[Document, ...]], *, may_replace: bool, delete: Collection[str] = ()
    ) -> BuildReport:
        """Put documents, given in a list, so that the plan frees them when it has read them."""
        with self._runner(unread[0]) as runner:
            plan = partial(self._plan, unread, runner, may_replace=may_replace, delete=delete)
            report = await self.apply(plan, runner)
            if report.generation == 1:  # a first build: its first search shall not wait for the ranker
                await self.prepare(runner)
        return report

    async def delete(self, doc_ids: Iterable[str], *, missing_ok: bool) -> BuildReport:
        """Remove documents."""
        from sire_core.documents.change_plan import plan_delete, plan_delete_shown

        wanted = [doc_ids] if isinstance(doc_ids, str) else list(doc_ids)
        allow = self._configuration.allow
        if missing_ok:
            self._reader.files()  # raises without an index: a deletion creates none
        if allow is not None:
            return await self.apply(
                lambda stored, chunks: plan_delete_shown(stored, chunks, wanted, allow, missing_ok=missing_ok)
            )
        return await self.apply(lambda stored, _: plan_delete(stored, wanted, missing_ok=missing_ok))

    async def delete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """Remove single passages."""
        from sire_core.documents.change_plan import plan_delete_passages

        wanted = {passage_ids} if isinstance(passage_ids, str) else set(passage_ids)
        self._reader.files()  # raises without an index: a deletion creates none
        return await self.apply(
            lambda stored, chunks: plan_delete_passages(stored, chunks, wanted, allow=self._configuration.allow)
        )

    async def reextract(self, doc_ids: Iterable[str]) -> BuildReport:
        """Delete what models answered about documents, and ask again."""
        from sire_core.documents.change_plan import CorpusChange, check_known
        from sire_core.storage.index_tables import Commit

        self._configuration.refuse_limited("answers are not separated by it")
        wanted = {doc_ids} if isinstance(doc_ids, str) else set(doc_ids)
        _, files = self._rebuildable()
        async with self._writing(files):
            await self._index_pending(files, self._configuration)
            corpus = files.store.corpus()
            check_known(sorted(wanted), corpus.documents)
            hashes = {chunk.hash for chunk in corpus.chunks if chunk.doc_id in wanted}
            # In this order: whatever is interrupted here, the next change asks again.
            after = files.refresh().with_forgotten(hashes)
            await run_shielded(lambda: files.store.commit(Commit(manifest=after.to_json())))
            await run_shielded(lambda: files.calls.forget(hashes))
            report = await self._change(files, lambda *_: CorpusChange(), self._configuration)
            missed = await self._publish_to_mirrors(files)
        return replace(report, failures=(*report.failures, *missed)) if missed else report

    def _rebuildable(self) -> tuple[Manifest, IndexFiles]:
        """Return manifest and files, after a check that all recipes can be built again."""
        manifest, _ = self._reader.built()
        for built in manifest.recipes:
            self._configuration.check_rebuilds(built)
        return manifest, self._reader.files()

    async def drop_recipe(self, name: str) -> None:
        """Remove a recipe and the units that only it derived."""
        from sire_core.changes.mirroring import sync_mirrors

        self._configuration.refuse_limited("a recipe serves all documents")
        await self._commit_manifest(
            lambda manifest: manifest.without_recipe(name),
            lambda files: sync_mirrors(files, None, self._configuration.mirrors),
        )

    async def set_chunker(self, chunker: SentenceChunker | None) -> None:
        """Make a chunker the one of the folder; nothing is cut again."""
        self._configuration.refuse_limited("a chunker cuts the documents of all")
        await self._commit_manifest(lambda manifest: manifest.with_chunker(chunker.settings() if chunker else None))

    async def set_default_recipe(self, name: str) -> None:
        """Make a recipe of the index the one that searches use if they name none."""
        self._configuration.refuse_limited("the default recipe is that of all")
        await self._commit_manifest(lambda manifest: manifest.with_default(name))

    async def _commit_manifest(
        self,
        change: Callable[[Manifest], Manifest],
        afterwards: Callable[[IndexFiles], Awaitable[object]] | None = None,
    ) -> None:
        """Store a manifest with a change that concerns no document, without the units of recipes that it drops."""
        from sire_core.storage.index_files import require_built
        from sire_core.storage.index_tables import Commit

        files = self._reader.files()
        files.refresh()
        require_built(files)
        async with self._writing(files):
            before = files.refresh()
            after = change(before)
            dropped = [owner for owner in before.owners if owner not in after.owners]
            await run_shielded(lambda: files.store.commit(Commit(drop_owners=dropped, manifest=after.to_json())))
            await run_shielded(files.publish)
            self._reader.changed(files.manifest())
            if afterwards is not None:
                await afterwards(files)

    async def purge(self) -> None:
        """Overwrite what deleted documents left on disk, and delete it from the vector stores."""
        import gc

        from sire_core.changes.mirroring import purge

        self._reader.built()
        files = self._reader.files()
        gc.collect()  # an unused snapshot in a reference cycle would still hold its connection
        async with self._writing(files):
            await run_shielded(files.purge)
        await self.push()
        await purge(self._configuration.mirrors)

    async def push(self, *, full: bool = False) -> dict[str, int]:
        """Send vector stores the changes that they missed; return the number of units sent, by store."""
        from sire_core.changes.mirroring import push_all

        return await push_all(self._reader.files(), self._reader.built()[1], self._configuration.mirrors, full=full)

    async def estimate(self, documents: Iterable[Document], price: Price | None) -> Estimate:
        """Estimate the model calls of a build of these documents."""
        from sire_core.changes.estimate import estimate_build

        path = self._configuration.path
        exists = self._reader.open_files() is not None or (path is not None and (path / "index.sqlite").exists())
        files = self._reader.files() if exists else None
        return await estimate_build(files, self._checked(documents), self._configuration, price)

    async def reembed(self, path: Path, embedder: Embedder | str) -> BuildReport:
        """Build the same corpus and recipes with another embedder in a new folder."""
        import asyncio

        from sire_core.documents.change_plan import replacing
        from sire_core.documents.chunker import stored_chunker
        from sire_core.models.embedders import resolve_embedder
        from sire_core.recipes.registry import registered_recipe

        self._configuration.refuse_limited("a copy holds everything")
        await self.index_pending()
        embedder = resolve_embedder(embedder)
        manifest, files = self._rebuildable()
        with files.store.snapshot():
            stored = files.store.documents()
            chunks = files.store.chunks(stored)
        await asyncio.to_thread(files.copy_calls, path)
        chunker = stored_chunker(manifest.chunker)
        report: BuildReport | None = None
        for built in manifest.recipes:
            recipe = registered_recipe(built)
            configuration = replace(
                self._configuration, path=path, recipe=recipe, embedder=embedder, chunker=chunker, seed=manifest.seed
            )
            configuration = replace(configuration, mirrors=(), store=None)
            reader = Reader(configuration)
            writer = IndexWriter(configuration, reader)
            try:
                report = await writer.apply(lambda current, _: replacing(current, stored, chunks))
                await writer.set_default_recipe(built.name)  # the last one is the default here, too
            finally:
                reader.close()
        await asyncio.to_thread(files.copy_adapter_files, path)
        assert report is not None  # an index that was built has a recipe
        return report

    async def apply(self, plan: Plan, runner: Runner | None = None, *, sets_chunker: bool = False) -> BuildReport:
        """Change the corpus and everything derived from it, and publish the result."""
        import asyncio

        files = self._reader.files(create=True)
        configuration = replace(
            self._configuration, sets_chunker=sets_chunker, runner=runner or self._configuration.runner
        )
        async with self._writing(files):
            await self._index_pending(files, self._configuration)  # older than this change
            report = await self._change(files, plan, configuration)
            missed = await self._publish_to_mirrors(files)
        report = replace(report, failures=(*report.failures, *missed)) if missed else report
        return report if self._configuration.allow is None else await asyncio.to_thread(self._shown, report)

    def _shown(self, report: BuildReport) -> BuildReport:
        """A report without what `allow` hides."""
        counts = self._reader.stats()["kinds"]
        return replace(report, units=counts, failures=tuple(self._reader.failures()), dropped=())

    async def _change(self, files: IndexFiles, plan: Plan, configuration: Configuration) -> BuildReport:
        from sire_core.changes.builder import apply_plan

        report = await apply_plan(files, plan, configuration)
        self._reader.changed(files.manifest())
        return report

    async def _publish_to_mirrors(self, files: IndexFiles) -> list[Failure]:
        from sire_core.changes.mirroring import sync_mirrors

        return await sync_mirrors(files, self._reader.resolve_recipe(files.manifest()), self._configuration.mirrors)

    async def prepare(self, runner: Runner) -> None:
        """Prepare the ranker, so that the first search does not have to; see `PreparedRanker`."""
        import asyncio

        from sire_core.changes.runners import trim_memory
        from sire_core.protocols import PreparedRanker

        def prepare() -> None:
            view, recipe = self._reader.latest()
            trim_memory(view.size)  # the corpus that was built from is gone
            if isinstance(recipe.ranker, PreparedRanker):
                recipe.ranker.prepare(view.with_runner(runner))
                trim_memory(view.size)

        await asyncio.to_thread(prepare)

    @asynccontextmanager
    async def _writing(self, files: IndexFiles) -> AsyncIterator[None]:
        """Hold the writer's lock; wait for it up to `lock_timeout` without blocking the event loop."""
        import asyncio
        import time

        deadline = time.monotonic() + self._configuration.lock_timeout
        with ExitStack() as lock:
            while True:
                try:
                    lock.enter_context(files.writing())
                    break
                except IndexLockedError:
                    if time.monotonic() >= deadline:
                        raise
                await asyncio.sleep(_POLL)
            yield


def _cut(runner: Runner, chunker: SentenceChunker | None, documents: Sequence[Document]) -> Iterable[tuple[Chunk, ...]]:
    """Chunks of documents, made wherever a runner works."""
    from sire_core.changes.runners import results_of
    from sire_core.documents.chunker import chunk_documents

    return chain.from_iterable(results_of(runner, chunk_documents, chunker, documents))
