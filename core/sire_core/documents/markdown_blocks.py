"""`markdown_blocks`: prose, tables and images of a Markdown text, in order (IIER section 3.1, multimodal documents)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# No part of an image may hold the beginning of another one, so that nothing is read twice.
_IMAGE = re.compile(
    r"!\[(?P<alt>[^\[\]\n]*)\]\(\s*<?(?P<target>(?:(?!!\[)[^)\s>])+)>?(?:\s+[\"'](?P<title>[^\"'\n]*)[\"'])?\s*\)"
)
_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
# Behind the backticks of a fence stands no other backtick: "```x``` is short" is code within a line.
_FENCE = re.compile(r"[ \t]*(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_DEEP = 4
"""Indentation from which a fence belongs to a list item."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a Markdown text.

    Attributes:
        kind: `text`, `table` or `image`.
        text: Text and tables as they stand; of an image its alternative text, or its title.
        reference: Where an image is; empty for others.
    """

    kind: str
    text: str
    reference: str = ""


def markdown_blocks(text: str) -> list[Block]:
    """Cut a Markdown text into prose, tables and images."""
    blocks: list[Block] = []
    prose: list[str] = []
    images: list[Block] = []

    def close() -> None:
        paragraphs = "\n".join(prose).strip("\n")
        if paragraphs.strip():
            blocks.append(Block("text", paragraphs))
        blocks.extend(images)
        prose.clear()
        images.clear()

    for kind, lines in block_runs(text.split("\n")):
        if kind == "table":
            close()
            blocks.append(Block("table", "\n".join(line.strip() for line in lines)))
            continue
        for line in lines:
            line_images = [] if kind == "code" else [_image(match) for match in _IMAGE.finditer(line)]
            rest = _IMAGE.sub(_alternative, line) if line_images else line
            # Images on a line of their own: the paragraph before them is complete.
            if line_images and not _IMAGE.sub("", line).strip():
                close()
                blocks.extend(line_images)
                continue
            if images and not line.strip():
                close()
            images.extend(line_images)
            prose.append(rest)
    close()
    return blocks


def _image(match: re.Match[str]) -> Block:
    return Block("image", " ".join((match["alt"] or match["title"] or "").split()), match["target"])


def _alternative(match: re.Match[str]) -> str:
    return str(match["alt"])


def block_runs(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield runs of lines by kind: `code`, `table` or `text`."""
    plain: list[str] = []
    row = 0
    while row < len(lines):
        line, stop, kind = lines[row], row, "code"
        if "```" in line or "~~~" in line:
            stop = code_end(lines, row)
        if stop == row and "|" in line:
            stop, kind = _table(lines, row), "table"
        if stop == row:
            plain.append(line)
            row += 1
            continue
        if plain:
            yield "text", plain
            plain = []
        yield kind, lines[row:stop]
        row = stop
    if plain:
        yield "text", plain


def code_end(lines: Sequence[str], start: int) -> int:
    """End of the fenced code that starts at a line; `start` if none does. Code in a list item ends with the item."""
    opened = _FENCE.match(lines[start])
    if opened is None:
        return start
    within = bool(opened["item"]) or _column(opened) >= _DEEP
    for row in range(start + 1, len(lines)):
        line = lines[row]
        if _closes(opened, line):
            return row + 1
        if within and line.strip() and not line[0].isspace():
            return row
    return len(lines)


def _closes(opened: re.Match[str], line: str) -> bool:
    mark, bare = opened["mark"], line.strip()
    if not bare.startswith(mark) or bare.strip(mark[0]):
        return False
    return len(line[: line.index(mark[0])].expandtabs(_DEEP)) < _column(opened) + _DEEP


def _column(opened: re.Match[str]) -> int:
    return len(opened.string[: opened.start("mark")].expandtabs(_DEEP))


def _table(lines: list[str], start: int) -> int:
    """End of the table that starts at a line; `start` if none does."""
    if start + 1 >= len(lines) or "|" not in lines[start] or not _RULE.fullmatch(lines[start + 1].strip()):
        return start
    if _cells(lines[start]) != _cells(lines[start + 1]):
        return start
    stop = start + 2
    while stop < len(lines) and "|" in lines[stop]:
        stop += 1
    return stop


def _cells(row: str) -> int:
    return len(re.split(r"(?<!\\)\|", row.strip().removeprefix("|").removesuffix("|")))
