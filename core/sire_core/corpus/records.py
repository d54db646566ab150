"""JSON values as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sire_core.clean_text import clean_text
from sire_core.corpus.official import is_official, official_passages
from sire_core.corpus.validation import clean_id, clean_metadata
from sire_core.errors import CorpusError
from sire_core.types import Document

__all__ = ["FoundRecord", "holds_question", "json_string", "record_documents"]

_OWN_KEYS = frozenset({"id", "_id", "title", "text", "chunks", "metadata"})


class FoundRecord(NamedTuple):
    """A document and where it was found."""

    document: Document
    origin: str


def holds_question(record: Any) -> bool:
    """Whether a JSON value is a benchmark question without any passage."""
    return isinstance(record, Mapping) and "question" in record and not is_official(record) and not _has_text(record)


def record_documents(record: Any, origin: str, default_id: str) -> Iterator[FoundRecord]:
    """Yield the documents of one JSON value.

    Accepted are `{"id", "title", "text", "metadata"}`, the same with `"chunks": [...]` in place of the text, and the
    official HotpotQA, 2WikiMultiHopQA and MuSiQue records. Other top-level keys become metadata if they hold a string,
    number or truth value. `_id` may stand for `id`.

    Args:
        record: The value.
        origin: Where it was found, for messages.
        default_id: Id of a document that names none.

    Raises:
        CorpusError: The value cannot be used; the message is the reason alone.
    """
    if is_official(record):
        for place, passage in enumerate(official_passages(record)):
            if passage.document.text:
                yield FoundRecord(passage.document, f"{origin} passage {place}")
        return
    if not isinstance(record, Mapping):
        raise CorpusError(f"a JSON object is needed, not {type(record).__name__}")
    if not _has_text(record):
        raise CorpusError(
            f"neither 'text' nor 'chunks'; the keys are {', '.join(map(str, list(record)[:10])) or 'none'}"
        )
    yield FoundRecord(_document(record, default_id), origin)


def json_string(value: Any, name: str) -> str:
    """A string or integer as clean text; null is empty.

    Raises:
        CorpusError: Any other type; the message is the reason alone.
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise CorpusError(f"'{name}' must be a string, not {type(value).__name__}")
    return clean_text(str(value))


def _id(given: Any) -> str:
    json_string(given, "id")
    return clean_id(str(given))


def _has_text(record: Mapping[str, Any]) -> bool:
    return "text" in record or "chunks" in record


def _document(record: Mapping[str, Any], default_id: str) -> Document:
    given = record.get("id", record.get("_id"))
    identifier = default_id if given is None else _id(given)
    if not identifier.strip():
        raise CorpusError("'id' is blank; give the document an id, or leave the key out")
    text = json_string(record.get("text"), "text")
    chunks = _chunks(record.get("chunks"))
    if not text.strip() and not chunks:
        raise CorpusError("the document has no text")
    return Document(
        id=identifier,
        text=text,
        title=json_string(record.get("title"), "title"),
        metadata=_metadata(record),
        chunks=chunks,
    )


def _chunks(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(chunk, str) for chunk in value):
        raise CorpusError("'chunks' must be a list of strings")
    return tuple(chunk for chunk in map(clean_text, value) if chunk.strip())


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    given = record.get("metadata")
    if given is not None and not isinstance(given, Mapping):
        raise CorpusError(f"'metadata' must be a JSON object, not {type(given).__name__}")
    extra = {
        key: value
        for key, value in record.items()
        if key not in _OWN_KEYS and isinstance(value, (str, int, float, bool))
    }
    return clean_metadata({**extra, **(given or {})}, "the record")
