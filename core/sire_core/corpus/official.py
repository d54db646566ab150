"""Records of the official HotpotQA, 2WikiMultiHopQA and MuSiQue files: a question with its own passages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sire_core.clean_text import clean_text
from sire_core.errors import CorpusError
from sire_core.types import Document, digest

__all__ = ["OfficialPassage", "is_official", "official_passages"]


class OfficialPassage(NamedTuple):
    """A passage of a question and whether the answer needs it."""

    document: Document
    supporting: bool


def is_official(record: Any) -> bool:
    """Whether a JSON value has the shape of a HotpotQA, 2WikiMultiHopQA or MuSiQue record."""
    if not isinstance(record, Mapping) or "question" not in record:
        return False
    return isinstance(record.get("paragraphs"), list) or isinstance(record.get("context"), list)


def official_passages(record: Mapping[str, Any]) -> list[OfficialPassage]:
    """The passages of a record, in its order.

    The document id is the title and a hash of title and text: the same passage has the same id in whichever question
    and file it occurs, and two texts under one title have two ids.

    Raises:
        CorpusError: The record is malformed; the message is the reason alone.
    """
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
    document = _document(paragraph.get("title"), paragraph["paragraph_text"])
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
    return OfficialPassage(_document(title, text), title in gold)


def _document(title: Any, text: str) -> Document:
    if not isinstance(title, str):
        raise CorpusError("a passage whose title is not a string")
    title, text = clean_text(title), clean_text(text).strip()
    return Document(id=f"{title}#{digest(title, text, size=6)}", text=text, title=title)
