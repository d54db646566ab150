"""Reasoning over any LangChain retriever: documents as hits, and hits as documents again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from langchain_sire.callbacks import call, inner_config
from langchain_sire.documents import hit_to_langchain
from sire_core.reason import RetrieverSource
from sire_core.types import Hit, Unit, UnitKind, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class _DocumentHit(Hit):
    """A hit of a retriever that is not ours."""

    document: Document


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
    if isinstance(hit, _DocumentHit):
        document = hit.document
        return Document(id=hit.unit.id, page_content=document.page_content, metadata=copy.deepcopy(document.metadata))
    return hit_to_langchain(hit)


def plain_document(hit: Hit) -> dict[str, Any]:
    """A hit as a dictionary from which `Document(**plain)` makes the document again."""
    return _plain(to_document(hit))


def _plain(document: Document) -> dict[str, Any]:
    return {"id": document.id, "page_content": document.page_content, "metadata": document.metadata}


def _hit(document: Document, rank: int) -> _DocumentHit:
    title, source = document.metadata.get("title"), document.metadata.get("source")
    # Without an id a passage is known by its text and where it is from: the rest of the metadata may be of the search,
    # a score for example, and the same passage would take several places of the context.
    name = digest("langchain", document.page_content, str(source)) if document.id is None else str(document.id)
    unit = Unit(
        id=name,
        kind=UnitKind.CHUNK,
        text=document.page_content,
        chunk_ids=(name,),
        title=title if isinstance(title, str) else "",
    )
    # What people and agents are told a passage is from: its file, where it has one.
    doc_id = source if isinstance(source, str) and source else name
    return _DocumentHit(unit=unit, score=1.0 / rank, doc_ids=(doc_id,), document=document)
