"""Blocks: the structure of a document's text as spans, each of one kind; how they are stored."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

HEADING, PARAGRAPH, ITEM, ROW, CODE = "heading", "paragraph", "item", "row", "code"
QUOTE, FIELD, CAPTION, FURNITURE = "quote", "field", "caption", "furniture"
KINDS = (HEADING, PARAGRAPH, ITEM, ROW, CODE, QUOTE, FIELD, CAPTION, FURNITURE)
_KIND_LETTERS = dict(zip(KINDS, "hpircqfau", strict=True))
_KINDS_BY_LETTER = {letter: kind for kind, letter in _KIND_LETTERS.items()}
_STORED_BLOCK = re.compile(r"(?:@(\d+))?([a-z])(\d)(\d+),(\d+)")
_MAX_STORED_LEVEL = 9  # one digit
LINE_END = re.compile(r"\r\n?|\n|(?:\A|(?<=\n))\f+")
"""A form feed in front of a line stands on a line of its own: blocks end there."""
_ATX = re.compile(r"[ \t\f]*#{1,6}[ \t]+")
_MARKER = re.compile(r"(?:[ \t]*>)*[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_QUOTE_MARK = re.compile(r"[ \t]*(?:>[ \t]?)+")
_FENCE = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}|~{3,})")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_SEPARATORS = "\t;,"  # The first wins a draw
_SEPARATED = re.compile(r"[\t;]|,\S")
GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
"""Between the columns of a table that spaces set."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document's text with one kind: a span of the text, which stays verbatim.

    Attributes:
        kind: `heading`, `paragraph`, `item`, `row` (of a table), `code`, `quote`, `field` (name and value: mail
            headers, front matter), `caption` or `furniture` (menus, contents, indexes, licences, greetings, page
            headers and footers).
        start: Of its first character in the text; of code, of the line that it begins in.
        end: Behind its last character.
        level: Of a heading, 1 to 6; of an item, and of what else stands in one, its depth from 1; of a row, 1 for the
            header of its table.
        path: Number of the heading block it stands under, -1 for none.
        page: Page number, 0 where there are none.
    """

    kind: str
    start: int
    end: int
    level: int = 0
    path: int = -1
    page: int = 0


def block_text(text: str, block: Block) -> str:
    """Text of a block without the marks of its kind: of a heading its words, of code its lines without fences."""
    span = text[block.start : block.end]
    if block.kind == HEADING:
        if mark := _ATX.match(span):
            return without_closing_hashes(span[mark.end() :])
        return span.partition("\n")[0].strip()
    if block.kind == CODE:
        return _code_text(span)
    if block.kind == ROW:
        return " | ".join(row_cells(text, block))
    if block.kind not in (ITEM, QUOTE) and not block.level:
        return span
    lines = LINE_END.split(span)
    lines[0] = lines[0][mark.end() :] if (mark := _MARKER.match(lines[0])) else lines[0]
    bare = (line[mark.end() :] if (mark := _QUOTE_MARK.match(line)) else line.strip() for line in lines)
    return "\n".join(bare).strip()


def without_closing_hashes(words: str) -> str:
    """Words of a heading without the hashes that may close it."""
    bare = words.strip()
    open_end = bare.rstrip("#")
    return open_end.rstrip() if not open_end or open_end[-1].isspace() else bare


def layout_of(blocks: Iterable[Block], repeated: int = 0, language: str = "") -> str:
    """Blocks as a text of about eight letters each, for storage; see `blocks_of`, `repeated_of` and `language_of`.

    `repeated` is the number of letters that the passage repeats of the one before.
    """
    parts = ([f"{language}!"] if language else []) + ([f"{repeated}+"] if repeated else [])
    end = page = 0
    for block in blocks:
        feed = f"@{block.page}" if block.page != page else ""
        level = min(block.level, _MAX_STORED_LEVEL)
        parts.append(f"{feed}{_KIND_LETTERS[block.kind]}{level}{block.start - end},{block.end - block.start}")
        end, page = block.end, block.page
    return "".join(parts)


@lru_cache(16)  # who reads a passage asks for its blocks more than once
def blocks_of(layout: str) -> tuple[Block, ...]:
    """Blocks that `layout_of` wrote."""
    blocks: list[Block] = []
    headings: list[tuple[int, int]] = []
    end = page = 0
    for feed, letter, level, gap, length in _STORED_BLOCK.findall(layout, layout.find("!") + 1):
        page = int(feed) if feed else page
        start = end + int(gap)
        end = start + int(length)
        path = heading_above(headings, letter == _KIND_LETTERS[HEADING], int(level), len(blocks))
        blocks.append(Block(_KINDS_BY_LETTER[letter], start, end, int(level), path, page))
    return tuple(blocks)


def repeated_of(layout: str) -> int:
    """Number of letters that a passage repeats of the one before."""
    repeated, mark, _ = layout[layout.find("!") + 1 :].partition("+")
    return int(repeated) if mark else 0


def language_of(layout: str) -> str:
    """Code of the language of a passage; empty where an older version stored none."""
    language, mark, _ = layout.partition("!")
    return language if mark else ""


def heading_above(headings: list[tuple[int, int]], is_heading: bool, level: int, number: int) -> int:
    """Number of the heading that a block stands under; a heading joins `headings`, the levels and numbers around."""
    while is_heading and headings and headings[-1][0] >= level:
        headings.pop()
    path = headings[-1][1] if headings else -1
    if is_heading:
        headings.append((level, number))
    return path


def row_cells(text: str, block: Block) -> list[str]:
    """Cells of a row, without marks of the table."""
    line = LINE_END.split(text[block.start : block.end])[0]
    line = line[mark.end() :] if (mark := _QUOTE_MARK.match(line)) else line
    return line_cells(line)


def line_cells(line: str) -> list[str]:
    """Cells of a line of a table: between bars, else between tabs, semicolons or commas, else between wide gaps."""
    line = line.strip()
    if "|" in line:
        cells = _CELL_BORDER.split(line.removeprefix("|").removesuffix("|"))
        return [cell.replace("\\|", "|").strip() for cell in cells]
    if GAP.search(line) and not _SEPARATED.search(line):
        return GAP.split(line)
    return [value.strip() for value in split_values(line, max(_SEPARATORS, key=line.count))]


def split_values(line: str, separator: str) -> list[str]:
    """Values of a line of CSV."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return line.split(separator)


def headings_above(blocks: Sequence[Block], number: int) -> list[Block]:
    """Headings that a block stands under, from the outermost; the block itself is left out."""
    above: list[Block] = []
    while (number := blocks[number].path) >= 0:
        above.insert(0, blocks[number])
    return above


def _code_text(span: str) -> str:
    lines = LINE_END.split(span)
    fence, is_closed = code_fences(span)
    if fence:
        lines = lines[1:-1] if is_closed else lines[1:]
    elif not lines[-1].strip(" \t`~"):
        lines = lines[:-1]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


def code_fences(span: str) -> tuple[str, bool]:
    """The fence that opens a piece of code, indented as it stands, and whether one closes it; empty without fences."""
    first, *lines = LINE_END.split(span)
    opened = _FENCE.match(first)
    if opened is None:
        return "", False
    column = len(first[: opened.start(1)].expandtabs(4))
    last = lines[-1].strip(" \t>") if lines else ""
    is_closed = last.startswith(opened[1]) and not last.strip(opened[1][0])
    return f"{' ' * column}{first[opened.start(1) :].rstrip()}", is_closed
