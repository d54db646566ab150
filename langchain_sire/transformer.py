"""`SireDocumentTransformer`: turns documents into the units of a recipe, for any vector store."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.documents import BaseDocumentTransformer, Document
from typing_extensions import Unpack

from langchain_sire.documents import from_langchain, pool_document
from langchain_sire.opening import open_index
from langchain_sire.options import TransformerOptions
from sire_core import types
from sire_core.arguments import lists_options
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.protocols import Recipe
from sire_core.types import UnitKind


class SireDocumentTransformer(BaseDocumentTransformer):
    """Turns a corpus into the units of a recipe (passages, summaries, aggregates), each as a document.

    A recipe needs the whole corpus: pass all documents at once, not in batches. With a `path`, a later call with a
    changed corpus computes only the changes. Every call returns all units, so `index(units, record_manager,
    vector_store, cleanup="full")` also removes outdated ones.

    Args:
        recipe: A name or a `Recipe`; None means `sirerag`.
        kinds: Which kinds of units to return, for example `("chunk", "sim_summary")`; None returns all.
        index: An existing index, instead of all other arguments.
        title_key: Metadata key with the title of a document, or a list of keys with its headings.
        **options: `embedding` for clustering, LangChain `Embeddings` or an `Embedder`; None means the default, which
            needs no download. `llm`, a LangChain chat model or a `LanguageModel`, extracts and summarizes; None works
            without a model. `path`, the folder of the index; None keeps it in memory. Other arguments of `Index`.

    Raises:
        ConfigurationError: An unknown kind, or an index together with settings of one.
    """

    @lists_options(TransformerOptions)
    def __init__(
        self,
        recipe: Recipe | str | None = None,
        *,
        kinds: Collection[str] | None = None,
        index: Index | None = None,
        title_key: str | Sequence[str] = "title",
        **options: Unpack[TransformerOptions],
    ) -> None:
        arguments = {"recipe": recipe, **options}
        if index is not None and any(value is not None for value in arguments.values()):
            raise ConfigurationError("Give an index, or the settings of one, not both.")
        arguments["recipe"] = recipe or "sirerag"  # the default recipe derives no texts that a store could hold
        self.index = open_index(type(self).__name__, arguments)[0] if index is None else index
        self._title_key = title_key
        self._kinds = _checked(kinds)

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> Sequence[Document]:
        """Build the units of these documents and return them; see `pool_documents`.

        Raises:
            CorpusError: Documents contradict each other.
            BuildError: Too many passages failed.
        """
        self.index.build(self._given(documents, kwargs))
        return pool_documents(self.index, kinds=self._kinds)

    async def atransform_documents(self, documents: Sequence[Document], **kwargs: Any) -> Sequence[Document]:
        """See `transform_documents`; models are awaited, not waited for."""
        await self.index.abuild(self._given(documents, kwargs))
        return await asyncio.to_thread(pool_documents, self.index, kinds=self._kinds)

    def _given(self, documents: Sequence[Document], others: Mapping[str, Any]) -> list[types.Document]:
        if others:
            raise ConfigurationError(f"transform_documents takes documents only, not {', '.join(others)}.")
        return from_langchain(documents, self._title_key, whole=self.index.chunker is None)


def pool_documents(index: Index, *, kinds: Collection[str] | None = None) -> list[Document]:
    """All units of an index as documents for any vector store.

    `Document.id` is the unit's id as a UUID, which every store accepts. The metadata has `unit_id`, `kind`, `level`,
    `title`, `doc_id` (the document of the first passage), and `doc_ids` and `chunk_ids` as JSON lists in strings,
    because many stores accept only scalars. A unit has only the user metadata that all its source passages share, so a
    filter of the store such as `tenant == "a"` does not match a summary with passages of several tenants. The documents
    are the same in every run, so `index()` skips unchanged ones.

    The text is the embedded text; that of a passage begins with its title.

    Args:
        index: A built index.
        kinds: Which kinds; None means all.

    Raises:
        IndexMissingError: Nothing was built.
        ConfigurationError: An unknown kind.
    """
    wanted = _checked(kinds)
    view = index.view()
    units = ((position, *view.pool.unit(position)) for position in range(view.size))
    return [
        pool_document(unit, doc_ids, view.shared_metadata(position))
        for position, unit, doc_ids in units
        if wanted is None or str(unit.kind) in wanted
    ]


def _checked(kinds: Collection[str] | None) -> frozenset[str] | None:
    if kinds is None:
        return None
    wanted = frozenset([kinds] if isinstance(kinds, str) else map(str, kinds))
    unknown = sorted(wanted - {kind.value for kind in UnitKind})
    if unknown:
        kinds_text = ", ".join(kind.value for kind in UnitKind)
        raise ConfigurationError(f"There are no kinds {', '.join(unknown)}; the kinds are {kinds_text}.")
    return wanted
