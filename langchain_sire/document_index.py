"""`SireDocumentIndex`: an index for LangChain's `index()` and `aindex()`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex

from langchain_sire.opening import remember_title_key
from langchain_sire.retriever import SireRetriever
from sire_core.errors import IndexMissingError

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
    first (on disk, if the index has a folder), and indexed by the next search of any object in any process, by `flush`,
    or at the end of `with document_index.bulk():`. The first documents of a new folder are indexed at once. Deleting a
    document also removes everything derived from it.

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

    # --- writing ----------------------------------------------------------------------------------------------------

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:  # noqa: ARG002 - the interface's
        """Add documents, or replace those with the same id. Without an id, one is computed from the content.

        Raises:
            CorpusError: Metadata that is not JSON, or one id with two contents; nothing is added.
        """
        names = self.index.defer(self._given(items))
        remember_title_key(self.index.path, self.title_key)
        return UpsertResponse(succeeded=names, failed=[])

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
        gone = [str(document.id) for document in self.get_by_ids(ids)]
        if gone and self.index.allow is not None:
            self.index.delete(gone, missing_ok=True, visible_only=True)
        else:
            self.index.defer(delete=gone)
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
        self.index.flush()

    async def aflush(self) -> None:
        """See `flush`."""
        await self.index.aflush()

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """All changes within the block are indexed together at its end."""
        yield
        self.flush()

    # --- reading ----------------------------------------------------------------------------------------------------

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:  # noqa: ARG002 - the interface's
        """Documents by id, including pending ones; unknown ids are ignored."""
        return self.get_by_ids(ids)

    async def aget(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """See `get`."""
        return await asyncio.to_thread(self.get, ids, **kwargs)

    async def _hits(self, query: str, options: Mapping[str, Any]) -> list[Hit]:
        await self.aflush()
        try:
            return await super()._hits(query, options)
        except IndexMissingError:  # an empty store finds nothing
            return []
