"""Tables of a PDF: lines with wide spaces in them, whose words stand in columns below each other."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from sire_core.files.pdf_lines import Cell, Line

_MAX_CELLS = 64
_MIN_ROWS, _MIN_ROWS_OF_WIDE = 3, 2
"""Rows of a table of two columns, and of more."""
_MIN_GUTTER = 0.3
"""Space between columns, as a share of the size of a letter."""
_MAX_ROW_GAP, _MAX_LINE_GAP = 2.5, 1.5
"""Between two rows, and two lines of a cell, in sizes of a letter."""
_MIN_PROSE_CHARS, _MIN_LONG_PROSE_CHARS = 15, 30
_MIN_LABEL_CHARS = 4
"""Shorter ones, before a column of text, are the numbers or marks of a list."""
LEADER = re.compile(r"(?:\.\s?){5}")
"""Dots that lead to the number of a page."""

_MAX_BASE_DIFFERENCE = 0.3
"""Between two lines that are parts of one row, in sizes of a letter."""
_MAX_HEADER_SHARE = 0.6
"""Letters of a header, as a share of those in a row below it."""

_MAX_CELL_LINES = 6

Columns = list[tuple[float, float]]


class _Row(NamedTuple):
    """Lines on one level of a page, beside each other, and their cells."""

    lines: list[Line]
    cells: list[Cell]


def mark_tables(page: Sequence[Line]) -> None:
    """Set `row` of the lines of tables. Text that stands in columns is none."""
    rows: list[_Row] = []
    columns: Columns = []
    for row in _rows(page):
        joined = _join_columns(columns, row) if rows and _is_below(rows[-1], row) else []
        goes_on = len(row.cells) == 1 and len(joined) == len(columns) and _column(columns, row.cells[0].left) > 0
        if not goes_on and len(joined) < max(2, len(columns) - 1, len(row.cells) - 1):
            _mark_rows(rows, columns)
            rows, joined = [], _join_columns([], row)
        if goes_on or _may_be_row(row):
            rows.append(row)
            columns = joined
        else:
            rows, columns = [], []
    _mark_rows(rows, columns)


def _rows(page: Sequence[Line]) -> list[_Row]:
    """Rows of a page; where a cell has several lines, those of the next one begin beside its first."""
    rows: list[_Row] = []
    for line in page:
        cells = line.cells or [Cell(line.left, line.right, line.text)]
        number = _row_beside(rows, line)
        if number is None:
            rows.append(_Row([line], list(cells)))
            continue
        row, below = rows[number], rows[number + 1 :]
        del rows[number + 1 :]
        parts = [row.cells[-1], *(part.cells[0] for part in below)]
        edges = min(part.left for part in parts), max(part.right for part in parts)
        row.cells[-1:] = [Cell(*edges, " ".join(part.text for part in parts)), *cells]
        row.lines.extend([*(line for part in below for line in part.lines), line])
    return rows


def _row_beside(rows: Sequence[_Row], line: Line) -> int | None:
    """Number of the row that a line continues to the right; between them are only further lines of its last cell."""
    for number in range(len(rows) - 1, max(-1, len(rows) - 1 - _MAX_CELL_LINES), -1):
        row = rows[number]
        if row.cells[-1].right > line.left or row.lines[-1].code or not line.upright:
            return None
        if abs(row.lines[0].base - line.base) < _MAX_BASE_DIFFERENCE * line.size:
            return number
        if len(row.cells) > 1:
            return None
    return None


def _may_be_row(row: _Row) -> bool:
    is_text = not any(line.code or line.running or LEADER.search(line.text) for line in row.lines)
    return 1 < len(row.cells) <= _MAX_CELLS and is_text


def _is_below(above: _Row, row: _Row) -> bool:
    first, last = row.lines[0], above.lines[0]
    gap = min(line.base for line in above.lines) - first.base
    if len(row.cells) == 1:
        return first.base < last.base and gap < _MAX_LINE_GAP * first.size and not (first.code or first.running)
    return 0 < gap < _MAX_ROW_GAP * first.size and abs(last.size - first.size) <= 0.1 * last.size and _may_be_row(row)


def _join_columns(columns: Columns, row: _Row) -> Columns:
    """Columns, those that a cell of the row bridges as one."""
    joined: Columns = []
    for left, right in sorted([*columns, *((cell.left, cell.right) for cell in row.cells)]):
        if joined and left < joined[-1][1] + _MIN_GUTTER * row.lines[0].size:
            joined[-1] = joined[-1][0], max(joined[-1][1], right)
        else:
            joined.append((left, right))
    return joined


def _column(columns: Columns, left: float) -> int:
    return bisect_right(columns, left + 1, key=lambda column: column[0]) - 1


def _mark_rows(rows: Sequence[_Row], columns: Columns) -> None:
    number = sum(len(row.cells) > 1 for row in rows)
    if len(columns) < 2 or number < (_MIN_ROWS_OF_WIDE if len(columns) > 2 else _MIN_ROWS):
        return
    parts: list[list[list[str]]] = []  # texts of each cell of each row
    for row in rows:
        if len(row.cells) > 1:
            parts.append([[] for _ in columns])
        for cell in row.cells:
            parts[-1][_column(columns, cell.left)].append(cell.text)
    texts = [[" ".join(cell).strip() for cell in row] for row in parts]
    by_column = [[cell for cell in column if cell] for column in zip(*texts, strict=True)]
    is_list = len(columns) == 2 and median(map(len, by_column[0])) < _MIN_LABEL_CHARS
    if is_list or sum(map(_is_prose, by_column)) > 1:
        return
    written = iter(texts)
    for row in rows:
        for line in row.lines:
            line.row = [""] * len(columns)
        if len(row.cells) > 1:
            row.lines[0].row = next(written)


def _is_prose(cells: Sequence[str]) -> bool:
    """True if a column holds lines of a text."""
    length = median(map(len, cells))
    goes_on = 2 * sum(cell[0].islower() for cell in cells) >= len(cells)
    return length >= (_MIN_PROSE_CHARS if goes_on else _MIN_LONG_PROSE_CHARS)


def has_header(rows: Sequence[Line]) -> bool:
    """True if the first row names all columns: in another font, or in few words with capitals and without numbers."""
    first, below = rows[0], [line for line in rows[1:] if any(line.row)]
    if not all(first.row) or any(letter.isdigit() for cell in first.row for letter in cell):
        return False
    if below and (first.font, first.bold) != (below[0].font, below[0].bold) == (below[-1].font, below[-1].bold):
        return True
    is_short = bool(below) and _length(first) <= _MAX_HEADER_SHARE * median(map(_length, below))
    return _has_capitals(first) and (is_short or not all(map(_has_capitals, below)))


def _length(line: Line) -> int:
    return sum(map(len, line.row))


def _has_capitals(line: Line) -> bool:
    return all(cell[:1].isupper() for cell in line.row)
