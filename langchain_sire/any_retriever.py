"""Reasoning over any LangChain retriever: documents as hits, and hits as documents again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from langchain_sire.callbacks import inner_config
from langchain_sire.documents import hit_to_langchain
from sire_core.models.sync import call
from sire_core.reason import RetrieverSource
from sire_core.reason.searchers import ForeignHit, foreign_hit
from sire_core.types import Hit, digest


def retriever_source(retriever: BaseRetriever, record: dict[str, Any] | None = None) -> RetrieverSource:
    """A retriever as something to reason over."""

    async def retrieve(query: str, _: int) -> Sequence[Hit]:
        if record is not None and query in record:
            documents = [Document(**plain) for plain in record[query]]
        else:
            documents = await call(retriever.invoke, retriever.ainvoke, query, inner_config())
            if record is not None:
                record[query] = [_plain(document) for document in documents]
        return [_hit(document, rank) for rank, document in enumerate(documents, 1)]

    return RetrieverSource(retrieve, type(retriever).__name__)


def to_document(hit: Hit) -> Document:
    """A hit as a document: a copy of the one that the retriever gave, where it was not ours."""
    if isinstance(hit, ForeignHit):
        document: Document = hit.original
        return Document(id=hit.unit.id, page_content=document.page_content, metadata=copy.deepcopy(document.metadata))
    return hit_to_langchain(hit)


def plain_document(hit: Hit) -> dict[str, Any]:
    """A hit as a dictionary from which `Document(**plain)` makes the document again."""
    return _plain(to_document(hit))


def _plain(document: Document) -> dict[str, Any]:
    return {"id": document.id, "page_content": document.page_content, "metadata": document.metadata}


def _hit(document: Document, rank: int) -> Hit:
    text, title, source = document.page_content, document.metadata.get("title"), document.metadata.get("source")
    # Without an id a passage is known by its text and where it is from: the rest of the metadata may be of the search,
    # a score for example, and the same passage would take several places of the context.
    name = digest("langchain", text, str(source)) if document.id is None else str(document.id)
    return foreign_hit(name, text, title, source, 1.0 / rank, document)
