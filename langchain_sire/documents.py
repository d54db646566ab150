"""LangChain documents from and to ours. Nobody's objects are changed: both ways make copies."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document as LangChainDocument

from sire_core.errors import CorpusError
from sire_core.types import Document, Hit, UnitKind, digest

__all__ = [
    "HIT_KEYS",
    "POOL_KEYS",
    "document_id",
    "from_langchain",
    "from_texts",
    "hit_to_langchain",
    "keep_user_keys",
]

HIT_KEYS = ("score", "kind", "level", "doc_ids", "chunk_ids")
"""Metadata keys that a retrieved document gets from us."""

POOL_KEYS = ("unit_id", "kind", "level", "doc_id", "doc_ids", "chunk_ids")
"""Metadata keys that a document of the pool gets from us."""


def document_id(document: LangChainDocument) -> str:
    """The document's own id; else one made from its content and metadata, the same in every run."""
    if document.id is not None:
        return str(document.id)
    # Values that are not JSON are refused later, in words that name the document.
    metadata = json.dumps(document.metadata, sort_keys=True, default=repr)
    return digest("langchain", document.page_content, metadata)


def from_langchain(documents: Iterable[LangChainDocument]) -> list[Document]:
    """Documents for an index. The title is `metadata["title"]`, where it is a string.

    Raises:
        CorpusError: Something is not a LangChain document.
    """
    if isinstance(documents, (str, LangChainDocument)):
        raise CorpusError(f"Expected a list of LangChain documents, not one {type(documents).__name__}.")
    return [_one(document, number) for number, document in enumerate(documents)]


def _one(document: object, number: int) -> Document:
    if not isinstance(document, LangChainDocument):
        raise CorpusError(
            f"Document number {number} is a {type(document).__name__}; pass langchain_core.documents.Document objects."
        )
    metadata = document.metadata
    title = metadata.get("title")
    return Document(
        id=document_id(document),
        text=document.page_content,
        title=title if isinstance(title, str) else "",
        metadata=dict(metadata),
    )


def from_texts(
    texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]] | None = None, ids: Sequence[str | None] | None = None
) -> list[LangChainDocument]:
    """LangChain documents from parallel lists, as `VectorStore.from_texts` takes them.

    Raises:
        CorpusError: The lists differ in length.
    """
    if isinstance(texts, str):
        raise CorpusError("Expected a list of texts, not one string.")
    listed = list(texts)
    for name, values in (("metadatas", metadatas), ("ids", ids)):
        if values is not None and len(values) != len(listed):
            raise CorpusError(f"There are {len(listed)} texts but {len(values)} {name}; give one for each, or none.")
    return [
        LangChainDocument(
            id=ids[at] if ids is not None else None,
            page_content=text,
            metadata=dict(metadatas[at]) if metadatas is not None else {},
        )
        for at, text in enumerate(listed)
    ]


def hit_to_langchain(hit: Hit) -> LangChainDocument:
    """A hit as a document: the unit's id and text, the passage's metadata, and where it comes from.

    `score` is a Python float (larger is better), `kind` a string, `level` a number, `doc_ids` and `chunk_ids` are lists
    of strings. Everything is JSON. Derived units have no metadata of the user's: it may differ between their passages.
    """
    unit = hit.unit
    metadata = keep_user_keys(unit.metadata, HIT_KEYS) if unit.kind is UnitKind.CHUNK else {}
    if unit.title:
        metadata.setdefault("title", unit.title)
    metadata |= {
        "score": float(hit.score),
        "kind": str(unit.kind),
        "level": int(unit.level),
        "doc_ids": list(hit.doc_ids),
        "chunk_ids": list(unit.chunk_ids),
    }
    return LangChainDocument(id=unit.id, page_content=unit.text, metadata=metadata)


def keep_user_keys(metadata: Mapping[str, Any], ours: Sequence[str]) -> dict[str, Any]:
    """A deep copy in which the user's value under a key of ours stands under `user_<key>`: nothing is lost.

    Deep, because a chain that edits what it got must not edit the index.
    """
    copied = copy.deepcopy(dict(metadata))
    return {f"user_{key}" if key in ours else key: value for key, value in copied.items()}
