"""JSON values as documents, among them records of the official HotpotQA, 2WikiMultiHopQA and MuSiQue files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sire_core.documents.validation import clean_id, clean_metadata
from sire_core.errors import CorpusError
from sire_core.text.words import clean_text
from sire_core.types import Document, digest

_OWN_KEYS = frozenset({"id", "_id", "title", "text", "chunks", "metadata"})


class FoundRecord(NamedTuple):
    """A document and its origin."""

    document: Document
    origin: str


def holds_question(record: Any) -> bool:
    """True if a JSON value is a benchmark question without passages."""
    return isinstance(record, Mapping) and "question" in record and not is_official(record) and not _has_text(record)


def record_documents(record: Any, origin: str, default_id: str) -> Iterator[FoundRecord]:
    """Yield the documents of one JSON value."""
    if is_official(record):
        for position, passage in enumerate(official_passages(record)):
            if passage.document.text:
                yield FoundRecord(passage.document, f"{origin} passage {position}")
        return
    if not isinstance(record, Mapping):
        raise CorpusError(f"a JSON object is needed, not {type(record).__name__}")
    if not _has_text(record):
        raise CorpusError(
            f"neither 'text' nor 'chunks'; the keys are {', '.join(map(str, list(record)[:10])) or 'none'}"
        )
    yield FoundRecord(_document(record, default_id), origin)


def json_string(value: Any, name: str) -> str:
    """A string or integer as clean text; null is empty."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise CorpusError(f"'{name}' must be a string, not {type(value).__name__}")
    return clean_text(str(value))


def _id(value: Any) -> str:
    json_string(value, "id")
    return clean_id(str(value))


def _has_text(record: Mapping[str, Any]) -> bool:
    return "text" in record or "chunks" in record


def _document(record: Mapping[str, Any], default_id: str) -> Document:
    own_id = record.get("id", record.get("_id"))
    identifier = default_id if own_id is None else _id(own_id)
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
    values = record.get("metadata")
    if values is not None and not isinstance(values, Mapping):
        raise CorpusError(f"'metadata' must be a JSON object, not {type(values).__name__}")
    extra = {
        key: value
        for key, value in record.items()
        if key not in _OWN_KEYS
        and (
            all(isinstance(item, (str, int)) for item in value)
            if isinstance(value, list)
            else isinstance(value, (str, int, float))
        )
    }
    return clean_metadata({**extra, **(values or {})}, "the record")


class OfficialPassage(NamedTuple):
    """A passage of a question and whether the answer needs it."""

    document: Document
    supporting: bool


def is_official(record: Any) -> bool:
    """True if a JSON value looks like a HotpotQA, 2WikiMultiHopQA or MuSiQue record."""
    if not isinstance(record, Mapping) or "question" not in record:
        return False
    return isinstance(record.get("paragraphs"), list) or isinstance(record.get("context"), list)


def official_passages(record: Mapping[str, Any]) -> list[OfficialPassage]:
    """The passages of a record, in its order; ids are made of title and content, so equal passages have equal ids."""
    if "paragraphs" in record:
        return [_musique(paragraph) for paragraph in record["paragraphs"]]
    facts = record.get("supporting_facts") or []
    if not isinstance(facts, list) or not all(isinstance(fact, list) and fact for fact in facts):
        raise CorpusError("supporting_facts is not a list of [title, sentence number] pairs")
    gold = [fact[0] for fact in facts]
    return [_hotpot(entry, gold) for entry in record["context"]]


def _musique(paragraph: Any) -> OfficialPassage:
    if not isinstance(paragraph, Mapping) or not isinstance(paragraph.get("paragraph_text"), str):
        raise CorpusError("a paragraph without a paragraph_text")
    document = _official_document(paragraph.get("title"), paragraph["paragraph_text"])
    return OfficialPassage(document, bool(paragraph.get("is_supporting")))


def _hotpot(entry: Any, gold: list[Any]) -> OfficialPassage:
    if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], list):
        raise CorpusError("a context entry that is not [title, [sentences]]")
    title, sentences = entry
    text = ""
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise CorpusError("a context sentence that is not a string")
        # HotpotQA's sentences begin with the space between them, 2WikiMultiHopQA's do not.
        glue = " " if text and not text[-1].isspace() and not sentence[:1].isspace() else ""
        text += glue + sentence
    return OfficialPassage(_official_document(title, text), title in gold)


def _official_document(title: Any, text: str) -> Document:
    if not isinstance(title, str):
        raise CorpusError("a passage whose title is not a string")
    title, text = clean_text(title), clean_text(text).strip()
    return Document(id=f"{title}#{digest(title, text, size=6)}", text=text, title=title)
