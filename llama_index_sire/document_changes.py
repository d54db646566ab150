"""Adding documents to an index and deleting them, with LlamaIndex's method names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from llama_index.core.schema import BaseNode, TransformComponent
from llama_index.core.storage.docstore.types import RefDocInfo

from llama_index_sire.cutting import cut, fingerprint
from llama_index_sire.filters import passage_ids
from llama_index_sire.opening import CUT_BY, RECIPE, TITLE, TOP_K, read_settings, write_settings
from sire_core.errors import IndexMissingError, KnownDocumentError, RefusedUnitsError, StorageError
from sire_core.models.prices import warn_of_first_cost
from sire_core.models.sync import run_sync
from sire_core.storage.uuids import to_uuid

if TYPE_CHECKING:
    from pathlib import Path

    from sire_core.index import Index
    from sire_core.types import BuildReport, Document

__all__ = ["DocumentChanges", "Nodes"]

_log = logging.getLogger(__name__)

Nodes = BaseNode | Sequence[BaseNode]


class DocumentChanges:
    """The part of a retriever that changes its index.

    Attributes:
        index: What is changed.
        similarity_top_k: Number of nodes of a search, saved in the folder.
        title_key: Metadata key with the title of a document, or a list of keys with its headings.
        transformations: Split documents that are added; None leaves that to the index.
    """

    index: Index
    similarity_top_k: int
    title_key: str | Sequence[str]
    transformations: Sequence[TransformComponent] | None

    def insert(self, documents: Nodes) -> BuildReport:
        """Add documents; unchanged documents are skipped.

        Raises:
            KnownDocumentError: A document with the same id and a different text exists; use `refresh_ref_docs`.
        """
        return run_sync(self.ainsert(documents))

    async def ainsert(self, documents: Nodes) -> BuildReport:
        """See `insert`."""
        given, same = self._given(documents)
        try:
            return await self._follow(lambda: self.index.aadd(given), len(same))
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

    def refresh(self, documents: Nodes) -> BuildReport:
        """Add new documents and replace changed ones; unchanged documents are skipped."""
        return run_sync(self.arefresh(documents))

    async def arefresh(self, documents: Nodes) -> BuildReport:
        """See `refresh`."""
        given, same = self._given(documents)
        return await self._follow(lambda: self.index.aupdate(given), len(same))

    update_ref_doc = refresh
    aupdate_ref_doc = arefresh

    def refresh_ref_docs(self, documents: Sequence[BaseNode]) -> list[bool]:
        """Like `refresh`, as in LlamaIndex: returns for each document whether it was new or changed."""
        return run_sync(self.arefresh_ref_docs(documents))

    async def arefresh_ref_docs(self, documents: Sequence[BaseNode]) -> list[bool]:
        """See `refresh_ref_docs`."""
        names = [document.ref_doc_id or document.node_id for document in documents]
        before = self._stored(names)
        await self.arefresh(documents)
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
        given, same = self._given(documents, everything=True)
        return await self._follow(lambda: self.index.abuild(given, keep=same))

    def delete(self, ref_doc_ids: str | Iterable[str]) -> BuildReport:
        """Remove documents and everything derived from them.

        Raises:
            CorpusError: An id is unknown; nothing is deleted.
        """
        return run_sync(self.adelete(ref_doc_ids))

    async def adelete(self, ref_doc_ids: str | Iterable[str]) -> BuildReport:
        """See `delete`."""
        given = [ref_doc_ids] if isinstance(ref_doc_ids, str) else list(ref_doc_ids)
        return await self._follow(lambda: self.index.adelete(given))

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False) -> None:  # noqa: ARG002 - the interface's: there is no docstore beside the index
        """Like `delete`, as in LlamaIndex: an unknown id is only logged, and what `allow` hides stays."""
        run_sync(self.adelete_ref_doc(ref_doc_id))

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False) -> None:  # noqa: ARG002 - as above
        """See `delete_ref_doc`."""
        if await asyncio.to_thread(self._stored, [ref_doc_id]):
            await self._follow(lambda: self.index.adelete(ref_doc_id, missing_ok=True, visible_only=True))
        else:
            _log.warning("ref_doc_id %s not found, nothing deleted.", ref_doc_id)

    def delete_nodes(self, node_ids: Collection[str], delete_from_docstore: bool = False) -> None:  # noqa: ARG002 - as above
        """Remove single nodes and everything derived from them; a document without any remaining node is removed, too.

        Unknown ids are logged.

        Raises:
            CorpusError: A node was split from a whole document by the index, so an update of the document would restore
                it.
        """
        run_sync(self.adelete_nodes(node_ids))

    async def adelete_nodes(self, node_ids: Collection[str], delete_from_docstore: bool = False) -> None:  # noqa: ARG002 - as above
        """See `delete_nodes`."""
        wanted = dict.fromkeys([node_ids] if isinstance(node_ids, str) else node_ids)
        there = {node for nodes in (await self._nodes()).values() for node in nodes}
        for node in wanted:
            if node not in there:
                _log.warning("node_id %s not found, nothing deleted.", node)
        if found := passage_ids(node for node in wanted if node in there):
            await self._follow(lambda: self.index.adelete_passages(found))

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """Node ids and metadata of every document, by document id, as in LlamaIndex."""
        nodes = run_sync(self._nodes())
        return {
            name: RefDocInfo(node_ids=nodes.get(name, []), metadata=dict(document.metadata))
            for name, document in self._stored(None).items()
        }

    async def _nodes(self) -> dict[str, list[str]]:
        """Ids of the nodes of every document."""
        found: dict[str, list[str]] = {}
        try:
            snapshot = await self.index.asnapshot()
        except IndexMissingError:  # nothing was built yet
            return found
        ours = {own.decode() for own in snapshot.view.pool.chunk_ids.tolist()}
        for document, name in snapshot.passage_ids():
            found.setdefault(document, []).append(to_uuid(name) if name in ours else name)
        return found

    def _given(self, documents: Nodes, *, everything: bool = False) -> tuple[list[Document], list[str]]:
        nodes = [documents] if isinstance(documents, BaseNode) else list(documents)
        warn_of_first_cost(self.index, len(nodes))
        return cut(
            nodes,
            self.index,
            self.title_key,
            self.transformations,
            saved=read_settings(self.index.path).get(CUT_BY),
            stored=self._stored,
            everything=everything,
        )

    async def _follow(self, change: Callable[[], Awaitable[BuildReport]], same: int = 0) -> BuildReport:
        """Make a change, and what follows; so many documents more were given and are the same."""
        report = await change()
        report = replace(report, unchanged=report.unchanged + same)
        if self.index.path is not None:
            self._remember(self.index.path)
        if report.failures:
            with suppress(RefusedUnitsError):  # logged, and counted in `stats`: the other units are there
                await self.index.apush()  # a store that missed the change gets it now; it raises what the store raises
        return report

    def _remember(self, place: Path) -> None:
        """Save how documents were cut, and the key of their titles where the folder has none."""
        saved, mine = read_settings(place), fingerprint(self.transformations)
        before, title_key = saved.get(CUT_BY, []), saved.get(TITLE, self.title_key)
        cut_by = before if mine is None else mine
        if cut_by != before or (TITLE not in saved and title_key != "title"):
            write_settings(place, saved.get(TOP_K, self.similarity_top_k), cut_by, saved.get(RECIPE, ""), title_key)
