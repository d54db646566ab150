"""A passage as pieces: headings, prose, rows of tables, code; of Markdown, remains of HTML and plain text alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sire_core.corpus.markdown_blocks import code_end
from sire_core.corpus.markdown_cleaning import without_comments

__all__ = ["Piece", "pieces_of", "without_markup"]

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_RULE = re.compile(r"[\s|:=*_+-]*$")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,500}(?:[ \t]+\"[^\"]{0,200}\")?\)")
_REFERENCE = re.compile(r"\[([^\[\]]{1,200})\]\[[^\[\]]{0,100}\]")
_TAG = re.compile(r"</?[a-zA-Z][\w-]{0,20}(?: [^<>`]{0,300})?/?>")
_ANCHOR = re.compile(r"[ \t]*\{[#:.][^{}\s]{1,100}\}")
_STRONG = re.compile(r"(?<!\w)(\*{1,3}|__)(?=\S)([^*_\n]{1,200})(?<=\S)\1(?!\w)")
_ENDS = (".", "!", "?", ":", ";", ",", "\u3002", "\uff01", "\uff1f", "\uff1a", "\uff0c", "\u3001")
_LONGEST_HEADING = 90
_LONGEST_LINE = 300  # of a line that is looked at as a heading


class Piece(NamedTuple):
    """A part of a passage.

    Attributes:
        kind: `heading`, `prose`, `row` or `code`.
        text: Without the marks that Markdown puts around it; backticks stay, they tell what is code.
    """

    kind: str
    text: str


def pieces_of(text: str) -> list[Piece]:
    """Cut a passage where its layout does: at headings, list items, rows, code and blank lines.

    Text in which nothing but blank lines tells headings (as converters leave it) has them, too: short lines between
    blank ones that no punctuation ends. Linear in the length of the text.
    """
    if "\n" not in text.strip():
        cleaned = _clean("prose", without_comments(text))
        return [Piece("prose", cleaned)] if cleaned else []
    return [Piece(kind, cleaned) for kind, found in _pieces(without_comments(text)) if (cleaned := _clean(kind, found))]


def without_markup(text: str) -> str:
    """Prose without link targets, tags, anchors and emphasis; what they mark stays."""
    if "](" in text or "][" in text:
        text = _REFERENCE.sub(r"\1", _LINK.sub(r"\1", text))
    if "<" in text:
        text = _TAG.sub("", text)
    if "{" in text:
        text = _ANCHOR.sub("", text)
    if "**" in text or "__" in text or " *" in text or text[:1] == "*":
        text = _STRONG.sub(r"\2", text)
    return text


def _clean(kind: str, text: str) -> str:
    return text if kind == "code" else " ".join(without_markup(text).split())


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    lines = text.split("\n")
    prose: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if (stop := code_end(lines, place)) > place:
            yield from _closed(prose)
            yield "code", "\n".join(_within_fences(lines[place:stop]))
            place = stop
            continue
        line = line[quote.end() :] if (quote := _QUOTE.match(line)) else line
        bare = line.strip()
        if _RULE.match(bare):
            if prose and bare[:1] in ("=", "-") and len(prose) == 1 and len(bare) > 1:
                yield "heading", prose.pop()
            yield from _closed(prose)
        elif len(line) <= _LONGEST_LINE and (heading := _HEADING.match(line)):
            yield from _closed(prose)
            yield "heading", heading.group(1)
        elif bare[0] == "|" or bare.count(" | ") > 1:
            yield from _closed(prose)
            yield "row", bare.strip("|")
        elif item := _ITEM.match(line):
            yield from _closed(prose)
            rest = line[item.end() :].strip()
            if _blank_follows(lines, place) and _may_be_heading(rest):
                yield "heading", rest
            else:
                prose.append(rest)
        elif not prose and _stands_alone(lines, place) and _may_be_heading(bare):
            yield "heading", bare
        else:
            prose.append(bare)
        place += 1
    yield from _closed(prose)


def _within_fences(lines: list[str]) -> list[str]:
    return lines[1:-1] if lines[-1].strip(" \t`~") == "" else lines[1:]


def _closed(prose: list[str]) -> Iterator[tuple[str, str]]:
    if prose:
        yield "prose", " ".join(prose)
        prose.clear()


def _stands_alone(lines: list[str], place: int) -> bool:
    """Whether the lines around one are blank, and something follows."""
    return (place == 0 or not lines[place - 1].strip()) and _blank_follows(lines, place)


def _blank_follows(lines: list[str], place: int) -> bool:
    return place + 1 < len(lines) and not lines[place + 1].strip()


def _may_be_heading(line: str) -> bool:
    first = line[:1]
    return (
        0 < len(line) <= _LONGEST_HEADING
        and not line.endswith(_ENDS)
        and (first.isupper() or first.isdigit() or first in "`[-_./" or not first.isascii())
        and len(line.split()) <= 14
    )
