"""Lines of code and tables in Markdown that is not clean yet, for what cleans and writes it line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
# Behind the backticks of a fence stands no other backtick: "```x``` is short" is code within a line.
_FENCE = re.compile(r"[ \t]*(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_DEEP = 4  # Indentation from which a fence belongs to a list item


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
