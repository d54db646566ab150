"""What was read of a file, at a glance: title, headings, size, and signs that it was read badly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sire_core.corpus.chunker import SentenceChunker
from sire_core.corpus.chunks import chunk_document
from sire_core.corpus.sections import sections_of_markdown
from sire_core.types import Document

__all__ = ["ReadDocument", "check_reading"]

_LOOKED_AT = 200_000
"""Characters of a document that its words are judged by."""
_ENOUGH = 200
_LONG_LINE = 20_000
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document before anything is built of it.

    Attributes:
        id: Its id.
        title: Its title.
        headings: Its headings in order, without their marks.
        characters: Length of its text.
        passages: How many passages an index would make of it.
        warnings: Signs that it was read badly, for people.
    """

    id: str
    title: str
    headings: tuple[str, ...]
    characters: int
    passages: int
    warnings: tuple[str, ...]


def check_reading(document: Document, chunker: SentenceChunker | None) -> ReadDocument:
    """Look at what was read."""
    text = document.text or "\n\n".join(passage.text for passage in document.passages)
    sections = sections_of_markdown(text)
    headings = dict.fromkeys(heading for section in sections for heading in section.path)
    return ReadDocument(
        id=document.id,
        title=document.title,
        headings=tuple(headings),
        characters=len(text),
        passages=len(chunk_document(document, chunker)),
        warnings=tuple(_warnings(text[:_LOOKED_AT])),
    )


def _warnings(text: str) -> Sequence[str]:
    dense = "".join(text.split())
    if len(dense) < _ENOUGH:
        return ()
    found: list[str] = []
    words = _WORD.findall(text)
    if text.count("\ufffd") * 200 > len(dense):
        found.append("characters that could not be decoded")
    if 2 * sum(map(len, words)) < len(dense) and 5 * sum(map(str.isalnum, dense)) < 3 * len(dense):
        found.append("few letters")
    if 2 * sum(len(word) == 1 and word.isascii() for word in words) > len(words):
        found.append("most words broken into letters")
    elif 5 * sum(len(word) > 40 and word.isascii() for word in words) > len(words):
        found.append("words without spaces between them")
    if max(map(len, text.split("\n"))) > _LONG_LINE:
        found.append("one giant line")
    return found
