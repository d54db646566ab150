"""`SireDocumentTransformer`: documents in, the pool of a recipe out, for any vector store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import BaseDocumentTransformer, Document

from langchain_sire.documents import from_langchain, pool_document
from langchain_sire.opening import open_index
from sire_core import types
from sire_core.errors import ConfigurationError
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from sire_core.index import Index
    from sire_core.protocols import Embedder, LanguageModel, Recipe

__all__ = ["SireDocumentTransformer", "pool_documents"]


class SireDocumentTransformer(BaseDocumentTransformer):
    """Turns a corpus into the flattened pool of a recipe: passages, summaries, aggregates, each a document.

    A recipe looks at the whole corpus: hand over all documents at once, not batch by batch. With a `path`, a later call
    with a changed corpus pays for the change only; every call returns the whole pool, so that
    `index(pool, record_manager, vector_store, cleanup="full")` also removes what is gone.

    Args:
        recipe: A name or a `Recipe`; None means `sirerag`.
        embedding: Clusters passages; LangChain's or ours. None takes the zero-download default.
        llm: Extracts and summarizes; LangChain's or ours. None works without a model.
        path: Folder that keeps what was paid for; None keeps it as long as this object.
        kinds: Which kinds of units to return, for example `("chunk", "sim_summary")`; None returns all.
        index: An index that exists already, in the place of all these.
        title_key: Metadata key that holds the title of a document.
        **options: More arguments of `Index`.

    Raises:
        ConfigurationError: An unknown kind, or an index together with settings of one.
    """

    def __init__(
        self,
        recipe: Recipe | str | None = None,
        *,
        embedding: Embeddings | Embedder | str | None = None,
        llm: BaseChatModel | LanguageModel | None = None,
        path: str | os.PathLike[str] | None = None,
        kinds: Collection[str] | None = None,
        index: Index | None = None,
        title_key: str = "title",
        **options: Any,
    ) -> None:
        given = {"recipe": recipe, "embedding": embedding, "llm": llm, "path": path, **options}
        if index is not None and any(value is not None for value in given.values()):
            raise ConfigurationError("Give an index, or the settings of one, not both.")
        given["recipe"] = recipe or "sirerag"  # the default recipe derives no texts that a store could hold
        self.index = open_index(type(self).__name__, given)[0] if index is None else index
        self._title_key = title_key
        self._kinds = _checked(kinds)

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> Sequence[Document]:
        """Build the pool of these documents, which are left untouched, and return it; see `pool_documents`.

        Raises:
            CorpusError: Documents contradict each other.
            BuildError: Too many passages failed.
        """
        _no_more(kwargs)
        self.index.build(self._given(documents))
        return pool_documents(self.index, kinds=self._kinds)

    async def atransform_documents(self, documents: Sequence[Document], **kwargs: Any) -> Sequence[Document]:
        """See `transform_documents`; models are awaited, not waited for."""
        _no_more(kwargs)
        await self.index.abuild(self._given(documents))
        return await asyncio.to_thread(pool_documents, self.index, kinds=self._kinds)

    def _given(self, documents: Sequence[Document]) -> list[types.Document]:
        return from_langchain(documents, self._title_key, whole=self.index.chunker is None)


def pool_documents(index: Index, *, kinds: Collection[str] | None = None) -> list[Document]:
    """The whole pool of an index as documents that any vector store takes.

    `Document.id` is the unit's id as a UUID, which every store takes. The metadata holds `unit_id`, `kind`, `level`,
    `title`, `doc_id` (the document of the first passage), and `doc_ids` and `chunk_ids` as JSON lists in a string:
    many stores take scalars only. Of the user's metadata a unit carries what all its passages agree on: a filter of the
    store such as `tenant == "a"` then lets no summary through that also stands on another tenant's passage. Nothing in
    it changes from run to run, so that `index()` skips what is there already.

    The text is what is embedded: passages carry their title line.

    Args:
        index: A built index.
        kinds: Which kinds; None means all.

    Raises:
        IndexMissingError: Nothing was built.
        ConfigurationError: An unknown kind.
    """
    wanted = _checked(kinds)
    view = index.view()
    found = ((position, *view.pool.unit(position)) for position in range(view.size))
    return [
        pool_document(unit, doc_ids, view.shared_metadata(position))
        for position, unit, doc_ids in found
        if wanted is None or str(unit.kind) in wanted
    ]


def _checked(kinds: Collection[str] | None) -> frozenset[str] | None:
    if kinds is None:
        return None
    wanted = frozenset([kinds] if isinstance(kinds, str) else map(str, kinds))
    unknown = sorted(wanted - {kind.value for kind in UnitKind})
    if unknown:
        known = ", ".join(kind.value for kind in UnitKind)
        raise ConfigurationError(f"There are no kinds {', '.join(unknown)}; the kinds are {known}.")
    return wanted


def _no_more(arguments: Mapping[str, Any]) -> None:
    if arguments:
        raise ConfigurationError(f"transform_documents takes documents only, not {', '.join(arguments)}.")
