"""`SireDocumentIndex`: an index for LangChain's `index()` and `aindex()`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex

from langchain_sire.documents import to_langchain
from langchain_sire.opening import remember_title_key
from langchain_sire.pending import Pending, pending_of
from langchain_sire.retriever import SireRetriever
from sire_core import types
from sire_core.corpus.stored import asked_of
from sire_core.corpus.validation import check_documents
from sire_core.errors import IndexMissingError
from sire_core.filters import FilterLike
from sire_core.filters.conditions import passes

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from typing_extensions import Self

    from sire_core.protocols import Embedder, LanguageModel, Recipe
    from sire_core.types import Hit

__all__ = ["SireDocumentIndex"]


class SireDocumentIndex(SireRetriever, DocumentIndex):
    """A retriever whose documents can be added and deleted by id, for LangChain's `index()`.

    `index()` passes documents in batches, but trees and aggregates depend on the whole corpus. So changes are stored
    first (on disk, if the index has a folder), and indexed before the next search, by `flush`, or at the end of `with
    document_index.bulk():`. Deleting a document also removes everything derived from it.

    `get` returns a document as it was added. If it was split into several passages, they are joined by empty lines;
    `open` does not split documents.

    Attributes:
        index: See `SireRetriever`, as for the other attributes.
    """

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        embedding: Embeddings | Embedder | str | None = None,
        *,
        llm: BaseChatModel | LanguageModel | None = None,
        recipe: Recipe | str | None = None,
        **options: Any,
    ) -> Self:
        """A document index in a new or existing folder, or in memory.

        Args:
            path: The folder; None keeps everything in memory.
            embedding: LangChain `Embeddings` or an `Embedder`; None means what the folder was built with, or the
                default, which needs no download.
            llm: A LangChain chat model or a `LanguageModel`; None extracts and summarizes without a model.
            recipe: A name or a `Recipe`; None means the folder's latest, or the default.
            **options: As in `SireRetriever.from_documents`, for example `chunker="sentences"` to split whole documents.
        """
        return cls._over("open", {"path": path, "embedding": embedding, "llm": llm, "recipe": recipe, **options})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Index pending changes, then write a copy; see `SireRetriever.save`."""
        self.flush()
        super().save(path)

    # --- writing ----------------------------------------------------------------------------------------------------

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:  # noqa: ARG002 - the interface's
        """Add documents, or replace those with the same id. Without an id, one is computed from the content.

        Raises:
            CorpusError: Metadata that is not JSON, or one id with two contents; nothing is added.
        """
        given = check_documents(self._given(items))
        self._pending.put({document.id: document for document in given})
        remember_title_key(self.index.path, self.title_key)
        return UpsertResponse(succeeded=[document.id for document in given], failed=[])

    async def aupsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """See `upsert`."""
        return await asyncio.to_thread(self.upsert, items, **kwargs)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:  # noqa: ARG002 - the interface's
        """Delete documents and everything derived from them. Unknown ids are ignored.

        With `allow`, only the visible passages are deleted, and at once.

        Raises:
            ValueError: No ids were given.
        """
        if ids is None:
            raise ValueError("Name the ids to delete; delete([]) deletes nothing.")
        ids = [ids] if isinstance(ids, str) else ids
        there = {document.id for document in self._documents(ids)}
        gone = [name for name in dict.fromkeys(ids) if name in there]
        if gone and self.index.allow is not None:
            self.flush()
            self.index.delete(gone, missing_ok=True, visible_only=True)
        else:
            self._pending.put(dict.fromkeys(gone))
        return DeleteResponse(num_deleted=len(gone), num_failed=0, succeeded=gone, failed=[])

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """See `delete`."""
        return await asyncio.to_thread(self.delete, ids, **kwargs)

    def flush(self) -> None:
        """Index pending changes. If this fails, nothing is lost: the next search or flush tries again.

        Raises:
            BuildError: Too many passages failed.
            IndexLockedError: Another process is writing.
        """
        with self._pending.flushing:
            changes = self._pending.changes()
            put = [document for document in changes.values() if document is not None]
            if put:
                self.index.update(put)
            if gone := [name for name, document in changes.items() if document is None]:
                with suppress(IndexMissingError):  # nothing was built: all of it is gone
                    self.index.delete(gone, missing_ok=True)
            if changes:
                self._pending.done(changes)

    async def aflush(self) -> None:
        """See `flush`."""
        if self._pending.changes():
            await asyncio.to_thread(self.flush)

    async def aadd_documents(self, documents: Iterable[Document]) -> list[str]:
        """See `SireRetriever.add_documents`: `upsert`, indexed now."""
        added = await self.aupsert(list(documents))
        await self.aflush()
        return added["succeeded"]

    async def areplace_all(self, documents: Iterable[Document]) -> list[str]:
        """See `SireRetriever.replace_all`."""
        await self.aflush()
        return await super().areplace_all(documents)

    async def adelete_documents(
        self, ids: Iterable[str] | str | None = None, *, filter: FilterLike = None, missing_ok: bool = False
    ) -> types.BuildReport:
        """See `SireRetriever.delete_documents`."""
        await self.aflush()
        return await super().adelete_documents(ids, filter=filter, missing_ok=missing_ok)

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """All changes within the block are indexed together at its end."""
        yield
        self.flush()

    # --- reading ----------------------------------------------------------------------------------------------------

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:  # noqa: ARG002 - the interface's
        """Documents by id, including pending ones; unknown ids are ignored."""
        return [to_langchain(document) for document in self._documents([ids] if isinstance(ids, str) else ids)]

    async def aget(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """See `get`."""
        return await asyncio.to_thread(self.get, ids, **kwargs)

    async def _hits(self, query: str, options: Mapping[str, Any]) -> list[Hit]:
        await self.aflush()
        try:
            return await super()._hits(query, options)
        except IndexMissingError:  # an empty store finds nothing
            return []

    # --- inside -----------------------------------------------------------------------------------------------------

    @property
    def _pending(self) -> Pending:
        return pending_of(self.index)

    def _documents(self, ids: Sequence[str]) -> list[types.Document]:
        """Documents of these ids as they will be after the next flush, in the order of the ids."""
        waiting = {name: self._shown(document) for name, document in self._pending.changes().items()}
        found = {document.id: document for document in self._stored([i for i in ids if i not in waiting])}
        found |= {name: waiting[name] for name in ids if waiting.get(name) is not None}  # type: ignore[misc]  # just checked
        return [found[name] for name in dict.fromkeys(ids) if name in found]

    def _shown(self, document: types.Document | None) -> types.Document | None:
        """A document that waits, where all of it may be seen."""
        allow = self.index.allow
        if document is None or allow is None:
            return document
        return document if all(passes(allow, asked_of(document))) else None

    def _stored(self, ids: Sequence[str]) -> list[types.Document]:
        if not ids:
            return []
        try:
            return self.index.documents(ids)
        except IndexMissingError:
            return []
