"""`IndexDocuments`: the documents of an index, changed under the names of LlamaIndex's indexes, and saved."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from llama_index.core.schema import BaseNode, TransformComponent
from llama_index.core.storage.docstore.types import RefDocInfo

from llama_index_sire.documents import as_nodes, cut, fingerprint, listed, passage_node, with_ids
from llama_index_sire.filters import FilterLike, both_filters, passage_ids
from llama_index_sire.opening import SETTINGS
from sire_core.changes.app_settings import reading_settings
from sire_core.changes.file_titles import FileTitles
from sire_core.changes.mirroring import push_missed
from sire_core.documents.chunker import SentenceChunker, stored_chunker
from sire_core.documents.validation import id_list
from sire_core.errors import IndexMissingError, KnownDocumentError, StorageError
from sire_core.filters import Condition, FilterGroup
from sire_core.index import Index, warn_of_first_cost
from sire_core.models.sync import run_sync
from sire_core.storage.folder import replace_folder
from sire_core.storage.index_files import read_manifest
from sire_core.types import BuildReport, Document, to_uuid

Nodes = BaseNode | Document | Iterable[BaseNode | Document]

READING = ("title_key", "chunker")  # Settings of reading documents

_log = logging.getLogger(__name__)


class IndexDocuments:
    """Adds, replaces, deletes, reads and saves the documents of an index; the part of `SireRetriever` that changes.

    Attributes:
        index: The index.
        filters: Limits `get_by_ids`.
        title_key: Metadata key with the title of added documents, or keys with its headings.
        transformations: Split added documents; None leaves that to the index.
    """

    index: Index
    filters: FilterLike
    title_key: str | Sequence[str]
    transformations: Sequence[TransformComponent] | None
    _to_store: Collection[str]  # Names of settings that the folder gets with the next change

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Errors of Python about arguments name the class that users know."""
        super().__init_subclass__(**kwargs)
        if IndexDocuments in cls.__bases__:
            for method in filter(inspect.isfunction, vars(IndexDocuments).values()):
                method.__qualname__ = f"{cls.__name__}.{method.__name__}"

    def _open_documents(self) -> None:
        self._persisted: dict[str, object] = {}
        self._file_titles = FileTitles(self.title_key, self.index)

    if TYPE_CHECKING:  # of the retriever; LlamaIndex traces every call of a method that is abstract in a base

        def searched(self) -> Index:
            """The index, with the recipe that is searched."""

        def _search_settings(self) -> dict[str, Any]:
            """Options of a search that a folder stores."""

    def insert(self, documents: Nodes, *, ids: Sequence[str] | None = None) -> BuildReport:
        """Add documents; unchanged documents are skipped. `ids` replace their own ids, of nodes those of the nodes.

        Raises:
            KnownDocumentError: A document with the same id and a different text exists; use `refresh_ref_docs`.
        """
        return run_sync(self.ainsert(documents, ids=ids))

    async def ainsert(self, documents: Nodes, *, ids: Sequence[str] | None = None) -> BuildReport:
        """See `insert`."""
        converted, same = self._given(documents, ids)
        try:
            return await self._follow(lambda: self.index.aadd(converted), len(same))
        except KnownDocumentError as error:
            names = ", ".join(error.ids[:10])
            raise KnownDocumentError(
                f"In the index already with another text: {names}. To replace a document call update_ref_doc(document) "
                "or refresh_ref_docs(documents), with all of its nodes where it was given in nodes. To keep both give "
                "the new one another id.",
                error.ids,
            ) from error

    insert_nodes = insert
    ainsert_nodes = ainsert

    def refresh(
        self, documents: Nodes, *, ids: Sequence[str] | None = None, replace_source: bool = False
    ) -> BuildReport:
        """Add new documents and replace changed ones; unchanged documents are skipped. `ids` as in `insert`.

        Nodes replace all nodes of their document (`ref_doc_id`). `replace_source` deletes all other documents of the
        same files (`source`, else `file_path` in the metadata), such as pages that a file no longer has.
        """
        return run_sync(self.arefresh(documents, ids=ids, replace_source=replace_source))

    async def arefresh(
        self, documents: Nodes, *, ids: Sequence[str] | None = None, replace_source: bool = False
    ) -> BuildReport:
        """See `refresh`."""
        converted, same = self._given(documents, ids, "source" if replace_source else "")
        gone = self._file_titles.dropped
        return await self._follow(lambda: self.index.aupdate(converted, delete=gone), len(same))

    update_ref_doc = refresh
    aupdate_ref_doc = arefresh

    def refresh_ref_docs(self, documents: Sequence[BaseNode | Document], *, replace_source: bool = False) -> list[bool]:
        """Like `refresh`, as in LlamaIndex: returns for each document whether it was new or changed."""
        return run_sync(self.arefresh_ref_docs(documents, replace_source=replace_source))

    async def arefresh_ref_docs(
        self, documents: Sequence[BaseNode | Document], *, replace_source: bool = False
    ) -> list[bool]:
        """See `refresh_ref_docs`."""
        documents = listed(documents)
        names = [d.id if isinstance(d, Document) else d.ref_doc_id or d.node_id for d in documents]
        before = self._stored(names)
        await self.arefresh(documents, replace_source=replace_source)
        after = self._stored(names)
        return [before.get(name) != after.get(name) for name in names]

    def _stored(self, names: Collection[str] | None) -> dict[str, Document]:
        try:
            return {document.id: document for document in self.index.documents(names)}
        except StorageError:  # nothing was built yet
            return {}

    def replace_all(self, documents: Nodes) -> BuildReport:
        """Make the index contain exactly these documents; all others are deleted."""
        return run_sync(self.areplace_all(documents))

    async def areplace_all(self, documents: Nodes) -> BuildReport:
        """See `replace_all`."""
        converted, same = self._given(documents, replacing="all")
        return await self._follow(lambda: self.index.abuild(converted, keep=same))

    def delete(self, ref_doc_ids: str | Iterable[str]) -> BuildReport:
        """Remove documents and everything derived from them.

        Raises:
            CorpusError: An id is unknown; nothing is deleted.
        """
        return run_sync(self.adelete(ref_doc_ids))

    async def adelete(self, ref_doc_ids: str | Iterable[str]) -> BuildReport:
        """See `delete`."""
        removed_ids = id_list(ref_doc_ids)
        retitled = self._file_titles.delete(removed_ids)
        return await self._follow(lambda: self.index.adelete(removed_ids), retitled=retitled)

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False) -> None:
        """Like `delete`, as in LlamaIndex: an unknown id is only logged, and what `allow` hides stays."""
        run_sync(self.adelete_ref_doc(ref_doc_id))

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False) -> None:
        """See `delete_ref_doc`."""
        if await asyncio.to_thread(self._stored, [ref_doc_id]):
            retitled = self._file_titles.delete([ref_doc_id])
            await self._follow(lambda: self.index.adelete(ref_doc_id, missing_ok=True), retitled=retitled)
        else:
            _log.warning("ref_doc_id %s not found, nothing deleted.", ref_doc_id)

    def delete_nodes(self, node_ids: Collection[str], delete_from_docstore: bool = False) -> None:
        """Remove single nodes and everything derived from them; a document without any remaining node is removed, too.

        Unknown ids are logged.

        Raises:
            CorpusError: A node was split from a whole document by the index, so an update of the document would restore
                it.
        """
        run_sync(self.adelete_nodes(node_ids))

    async def adelete_nodes(self, node_ids: Collection[str], delete_from_docstore: bool = False) -> None:
        """See `delete_nodes`."""
        wanted = dict.fromkeys(id_list(node_ids))
        there = {node for nodes in (await self._nodes()).values() for node in nodes}
        for node in wanted:
            if node not in there:
                _log.warning("node_id %s not found, nothing deleted.", node)
        if ids := passage_ids(node for node in wanted if node in there):
            await self._follow(lambda: self.index.adelete_passages(ids))

    def get_by_ids(self, ids: str | Sequence[str]) -> list[BaseNode]:
        """Nodes by their ids, or those of their documents, in this order; unknown ids and hidden nodes are ignored."""
        return run_sync(self.aget_by_ids(ids))

    async def aget_by_ids(self, ids: str | Sequence[str]) -> list[BaseNode]:
        """See `get_by_ids`."""
        wanted = id_list(ids)
        either = FilterGroup(
            "or", (Condition("ref_doc_id", "in", wanted), Condition("passage_id", "in", passage_ids(wanted)))
        )
        try:
            snapshot = await self.searched().asnapshot(filter=both_filters(self.filters, either))
        except IndexMissingError:  # nothing was built yet
            return []
        by_id: dict[str, list[BaseNode]] = {}
        view, rows = snapshot.view, snapshot.view.passing_chunks(snapshot.where)
        for row in np.flatnonzero(rows).tolist():
            node = passage_node(*view.pool.unit(row), view.shared_metadata(row))
            for name in dict.fromkeys((node.node_id, node.ref_doc_id or node.node_id)):
                by_id.setdefault(name, []).append(node)
        return [node for name in dict.fromkeys(wanted) for node in by_id.get(name, ())]

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """Node ids and metadata of every document, by document id, as in LlamaIndex."""
        nodes = run_sync(self._nodes())
        return {
            name: RefDocInfo(node_ids=nodes.get(name, []), metadata=dict(document.metadata))
            for name, document in self._stored(None).items()
        }

    async def _nodes(self) -> dict[str, list[str]]:
        by_document: dict[str, list[str]] = {}
        try:
            snapshot = await self.index.asnapshot()
        except IndexMissingError:  # nothing was built yet
            return by_document
        ours = {chunk_id.decode() for chunk_id in snapshot.view.pool.chunk_ids.tolist()}
        for document, name in snapshot.passage_ids():
            by_document.setdefault(document, []).append(to_uuid(name) if name in ours else name)
        return by_document

    def _given(
        self, documents: Nodes, ids: Sequence[str] | None = None, replacing: Literal["source", "all", ""] = ""
    ) -> tuple[list[Document], list[str]]:
        nodes = [node for document in listed(documents) for node in as_nodes(document)]
        nodes = nodes if ids is None else with_ids(nodes, ids)
        warn_of_first_cost(self.index, len(nodes))
        converted, same = cut(
            nodes,
            self.index,
            self.title_key,
            self.transformations,
            saved=SETTINGS.read(self.index.path).get("transformations"),
            stored=self._stored,
            everything=replacing == "all",
        )
        titled = self._file_titles.put(converted, same, replacing=replacing)
        put = {document.id for document in titled}
        return titled, [name for name in same if name not in put]

    async def _follow(
        self, change: Callable[[], Awaitable[BuildReport]], same: int = 0, retitled: Sequence[Document] = ()
    ) -> BuildReport:
        """Make a change, and what follows; so many documents more were given and are the same."""
        report = await change()
        if retitled:
            await self.index.aupdate(retitled)
        self._file_titles.done()
        self._file_titles.warn_of_old_parts()
        report = replace(report, unchanged=report.unchanged + same)
        if self.index.path is not None:
            self._save_settings(self.index.path, self._to_store)
        await push_missed(self.index.apush, report)
        return report

    def persist(self, persist_dir: str | os.PathLike[str]) -> None:
        """Write the index and the retriever's settings into a folder; a later call replaces this copy.

        Raises:
            StorageError: The folder contains another index, or the copy was changed in the meantime.
        """
        folder = Path(persist_dir)
        if self.index.path is None or self.index.path.resolve() != folder.resolve():
            name = str(folder.resolve())
            if name in self._persisted:
                self._replace_copy(folder.resolve(), self._persisted[name])
            else:
                self.index.save(folder)
            self._persisted[name] = _state(folder)
        self._save_settings(folder, (*SETTINGS.search, *READING))

    def _replace_copy(self, folder: Path, state: object) -> None:
        if _state(folder) != state:
            raise StorageError(f"{folder} was changed since it was written here. Name a new folder.")
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
            self.index.save(Path(temporary, "new"))
            replace_folder(folder, Path(temporary, "new"), Path(temporary, "old"))

    def _save_settings(self, folder: Path, names: Collection[str]) -> None:
        """Store the options of a search that were given, and how documents are cut and read.

        The file also says that documents are an app's, see `Folder.framework`.
        """
        cut_by = fingerprint(self.transformations)
        if cut_by is None:
            cut_by = SETTINGS.read(self.index.path or folder).get("transformations")
        reading = reading_settings(self.title_key, self._chunker())
        mine = {**self._search_settings(), **reading, "transformations": cut_by}
        SETTINGS.update(folder, mine, {*names, "transformations"}, otherwise=reading)

    def _chunker(self) -> SentenceChunker | None:
        """Chunker of added documents, if it is not that of the folder."""
        chunker = self.index.chunker
        return None if chunker == stored_chunker(read_manifest(self.index.path).chunker) else chunker


def _state(folder: Path) -> object:
    """State of an index; differs after every change, also after one that only waits there."""
    with Index(folder) as copy:
        stats = copy.stats()
        return stats["generation"], stats.get("pending", 0)
