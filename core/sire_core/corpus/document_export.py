"""Stored documents, and how they are returned as `Document` objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.filters.conditions import filtered_title, passes
from sire_core.types import Document, Passage

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.types import Chunk


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the index stores it.

    Attributes:
        id: The user's id.
        sequence: Its place in the corpus; an update keeps it.
        hash: Of everything that its chunks depend on.
        title: Title.
        metadata: Metadata.
    """

    id: str
    sequence: int
    hash: str
    title: str
    metadata: Mapping[str, Any]


def to_documents(
    documents: Mapping[str, StoredDocument], chunks: Iterable[Chunk], allow: Filter | None = None
) -> list[Document]:
    """Rebuild documents from stored ones; only passages that pass the filter are included."""
    pieces: dict[str, list[str | Passage]] = {}
    for chunk in chunks:
        if chunk.doc_id in documents and is_allowed(chunk, allow, documents):
            pieces.setdefault(chunk.doc_id, []).append(_chunk_item(chunk, documents[chunk.doc_id]))
    return [
        Document(id=name, title=document.title, metadata=document.metadata, chunks=tuple(pieces.get(name, ())))
        for name, document in documents.items()
        if allow is None or name in pieces
    ]


def with_changes(
    stored: Iterable[Document], changes: Mapping[str, Document | None], wanted: set[str] | None, allow: Filter | None
) -> list[Document]:
    """Documents as they will be once pending changes are indexed."""
    documents: dict[str, Document | None] = {document.id: document for document in stored}
    for name, document in changes.items():
        if wanted is None or name in wanted:
            is_visible = document is not None and (allow is None or all(passes(allow, filter_fields(document))))
            documents[name] = document if is_visible else None
    return [document for document in documents.values() if document is not None]


def is_allowed(chunk: Chunk, allow: Filter | None, documents: Mapping[str, StoredDocument | Document]) -> bool:
    """Whether a passage passes a filter on its metadata, ids and title."""
    title = filtered_title(documents[chunk.doc_id].title, chunk.title)
    return allow is None or all(passes(allow, [(chunk.metadata, chunk.doc_id, chunk.source_id or chunk.id, title)]))


def filter_fields(document: Document) -> list[tuple[Mapping[str, Any], str, str, str]]:
    """The fields that filters compare, for `passes`: one item per passage, or one for a document without passages."""
    bare = Passage("-")
    pieces = [piece if isinstance(piece, Passage) else bare for piece in document.chunks or ("",)]
    return [
        ({**document.metadata, **piece.metadata}, document.id, piece.id, filtered_title(document.title, piece.title))
        for piece in pieces
    ]


def _chunk_item(chunk: Chunk, document: StoredDocument) -> str | Passage:
    """A passage as an item of `Document.chunks`: text alone if it has no title, id or metadata of its own."""
    title = "" if chunk.title == document.title else chunk.title
    missing = object()
    own = {key: value for key, value in chunk.metadata.items() if document.metadata.get(key, missing) != value}
    return Passage(chunk.text, chunk.source_id, title, own) if chunk.source_id or title or own else chunk.text
