"""Markdown of PDF files in which the converter wrote the words at the ends of lines together."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

__all__ = ["with_words_apart"]

_STRUCTURE = b"/StructTreeRoot"
_NO_STRUCTURE = b"/NoStructTree__"
_FEW = 20
"""Of so many lines one may seem to be glued: an address that goes over the end of a line is one word."""
_WITHOUT_SPACES = "\u0e00"
"""From here on there are scripts that write lines on without a space: Thai, Chinese, Japanese."""
_ENDS_WORD = ",.;:!?)\"'\u201d\u2019"


def with_words_apart(markdown: str, raw: bytes, convert: Callable[[bytes, str], str]) -> str:
    """The Markdown of a PDF, from its words alone where the tree of its structure has lines without a space between.

    PDF files with tags (browsers print them) name the text of each paragraph; the converter joins its lines as they
    stand, and loses letters on the way. Without the tree it finds lines by where they are on the page. Its plain text
    has them in any case, and stands in where the tree cannot be taken out.

    Args:
        markdown: What the converter made of the file.
        raw: The file.
        convert: Text of a PDF in an output format of the converter.
    """
    plain = convert(raw, "plain")
    glued, lines = _glued(markdown, plain)
    if not glued:
        return markdown
    bare = _without_structure(raw)
    if bare != raw:
        again = convert(bare, "markdown")
        left, _ = _glued(again, plain)
        if left < glued and again.strip():
            markdown, glued = again, left
    return plain if glued * _FEW > lines else markdown


def _without_structure(raw: bytes) -> bytes:
    """A PDF that does not say which text is a paragraph or heading; every byte else stays in its place."""
    return raw.replace(_STRUCTURE, _NO_STRUCTURE)


def _glued(markdown: str, plain: str) -> tuple[int, int]:
    """How many ends of lines have their two words written as one, which the plain text nowhere has; and of how many.

    Args:
        markdown: A text.
        plain: The same, line by line.
    """
    known = set(plain.split())
    found = set(markdown.split())
    rows = [row for line in plain.split("\n") if (row := line.split())]
    ends = [(before[-1], after[0]) for before, after in pairwise(rows) if _apart(before[-1], after[0])]
    return sum(a + b in found and a + b not in known for a, b in ends), len(ends)


def _apart(last: str, first: str) -> bool:
    """Whether there is a space between two words: not within a word that a hyphen or an address cuts."""
    ends = last[-1].isalnum() or last[-1] in _ENDS_WORD
    return ends and first[0].isalnum() and max(last[-1], first[0]) < _WITHOUT_SPACES
