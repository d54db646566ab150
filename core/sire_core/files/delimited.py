"""Values between commas, semicolons, tabs or bars as a Markdown table."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from sire_core.documents.blocks import split_values
from sire_core.documents.markdown_writing import plain_text
from sire_core.errors import CorpusError
from sire_core.files.workbooks import compact_table

_COLUMNS = 20_000  # Excel has 16,384. A file with more is no table that someone reads
_DELIMITERS = "\t;|,"  # The first wins a draw: decimal commas and commas of texts stand in every line, too
_SAMPLE = 60  # Lines that the delimiter is judged by
_SEPARATOR = re.compile(r"\ufeff?sep=(.)\r?\n", re.IGNORECASE)
_MOST_ABOVE = 20  # Lines of text that may stand above a table
_MOST_SWALLOWED = 200  # Lines that a quoted value may have


def read_values(text: str, delimiter: str) -> str:
    """A table of the values, below the lines of text above it; without a delimiter the one that most lines agree on."""
    named = _SEPARATOR.match(text)
    lines = text[named.end() if named else 0 :].split("\n")
    delimiter = named[1] if named else _delimiter(lines, delimiter or _DELIMITERS)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    above = _lines_above(lines, delimiter)

    def rows() -> Iterator[Mapping[int, str]]:
        for row in csv.reader(_mended_lines(lines[above:], delimiter), delimiter=delimiter):
            if len(row) > _COLUMNS:
                raise CorpusError(
                    f"a row has {len(row):,} columns; that is not a table. Read it as text: rename it to .txt"
                )
            if cells := {number: cell.strip() for number, cell in enumerate(row) if cell.strip()}:
                yield cells

    try:
        values = compact_table(rows)
    except csv.Error as error:
        raise CorpusError(f"cannot be read as a table: {error}") from error
    title = (plain_text(" ".join(filter(None, split_values(line, delimiter)))) for line in lines[:above])
    return "\n\n".join(filter(None, [*title, values]))


def _delimiter(lines: Sequence[str], choices: str) -> str:
    """The delimiter by which most lines have the same number of values; a comma where there is none."""
    sample = [line for line in lines[: 5 * _SAMPLE] if line.strip()][:_SAMPLE]

    def agreement(delimiter: str) -> int:
        widths = Counter(len(split_values(line[:10_000], delimiter)) for line in sample)
        widths.pop(1, None)
        return max(widths.values(), default=0)

    best = max(choices, key=agreement)
    return best if agreement(best) else choices[-1]


def _lines_above(lines: Sequence[str], delimiter: str) -> int:
    """Number of lines of text above a table: of at most two values, and of fewer than most lines below."""
    widths = [len(split_values(line[:10_000].rstrip().rstrip(delimiter), delimiter)) for line in lines[:_SAMPLE]]
    usual, number = Counter(width for width in widths if width > 1).most_common(1)[0] if max(widths) > 1 else (1, 0)
    first = widths.index(usual)
    if number < 2 or first > _MOST_ABOVE or any('"' in line for line in lines[:first]):  # of a value of several lines
        return 0
    lines_above = zip(lines[:first], widths, strict=False)
    is_text = (
        not line.strip(f"{delimiter} ") or (width < usual and width <= 2 and line[0] != delimiter)
        for line, width in lines_above
    )
    return first if all(is_text) else 0


def _mended_lines(lines: Sequence[str], delimiter: str) -> Iterator[str]:
    """Lines, with a single quotation mark that would swallow the rows below as a part of its value."""
    odd = [row for row, line in enumerate(lines) if line.count('"') % 2]
    opening = re.compile(rf'(?:^|{re.escape(delimiter)})\s*"(?!(?:[^"]|"")*"\s*(?:{re.escape(delimiter)}|$))')
    width = next((line.count(delimiter) for line in lines if delimiter in line and '"' not in line), 0)
    row = number = 0
    while row < len(lines):
        line = lines[row]
        while number < len(odd) and odd[number] < row:
            number += 1
        if number == len(odd) or odd[number] != row or not opening.search(line):
            yield f"{line}\n"
            row += 1
            continue
        stop = odd[number + 1] if number + 1 < len(odd) else len(lines)
        if _swallows(lines, row, stop, lambda other: other.count(delimiter) == width > 0, opening):
            yield delimiter.join(_quoted(value) for value in line.split(delimiter)) + "\n"
            row += 1
        else:
            yield from (f"{other}\n" for other in lines[row : stop + 1])
            row = stop + 1


def _swallows(
    lines: Sequence[str], row: int, stop: int, is_row: Callable[[str], bool], opening: re.Pattern[str]
) -> bool:
    """True if a quotation mark that opens in one line and closes in another has rows between."""
    between = lines[row + 1 : stop]
    if stop == len(lines) or len(between) > _MOST_SWALLOWED:
        return True
    if opening.search(lines[stop]) and is_row(lines[stop]):
        return True
    return bool(between) and 2 * sum(map(is_row, between)) > len(between)


def _quoted(value: str) -> str:
    escaped = value.strip().strip('"').replace('"', '""')
    return f'"{escaped}"'
