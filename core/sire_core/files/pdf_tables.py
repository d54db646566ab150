"""Tables of a PDF: lines with wide spaces in them, whose words stand in columns below each other."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from sire_core.files.html import LONGEST_REPEATED
from sire_core.files.pdf_grids import Grid
from sire_core.files.pdf_lines import Cell, Line

_MAX_CELLS = 64
_MIN_ROWS, _MIN_ROWS_OF_WIDE = 3, 2  # Rows of a table of two columns, and of more
_MIN_GUTTER = 0.3  # Space between columns, as a share of the size of a letter
_MAX_ROW_GAP, _MAX_LINE_GAP = 2.5, 1.5  # Between two rows, and two lines of a cell, in sizes of a letter
_MIN_PROSE_CHARS, _MIN_LONG_PROSE_CHARS = 15, 30
_MIN_LABEL_CHARS = 4  # Shorter ones, before a column of text, are the numbers or marks of a list
LEADER = re.compile(r"(?:\.\s?){5}")  # Dots that lead to the number of a page

_MAX_BASE_DIFFERENCE = 0.3  # Between two lines that are parts of one row, in sizes of a letter
_MAX_HEADER_SHARE = 0.6  # Letters of a header, as a share of those in a row below it

_MAX_CELL_LINES = 6
_PARAGRAPH_END = "\n\n"

Columns = list[tuple[float, float]]


class _Row(NamedTuple):
    """Lines on one level of a page, beside each other, and their cells."""

    lines: list[Line]
    cells: list[Cell]


def join_ruled_rows(page: list[Line], grids: Iterable[Grid]) -> None:
    """Put one line in the place of those in each row of ruled tables."""
    for grid in grids:
        inside: defaultdict[int, list[Line]] = defaultdict(list)
        outside: list[Line] = []
        first = 0
        for line in page:
            parts = _parts(line)
            areas = [grid.area((part.left + part.right) / 2, part.base + part.size / 3) for part in parts]
            if all(area is None for area in areas):
                outside.append(line)
                continue
            first = first if inside else len(outside)
            for area, part in zip(areas, parts, strict=True):
                (outside if area is None else inside[area]).append(part)
        if len({area % grid.columns for area in inside}) > 1 < len({area // grid.columns for area in inside}):
            page[:] = [*outside[:first], *_ruled_rows(inside, grid), *outside[first:]]


def _parts(line: Line) -> Sequence[Line]:
    """The cells of a line as lines; the line itself if it has none or is a row of a table within a cell."""
    if len(line.cells) < 2 or line.ruled:
        return [line]
    return [replace(line, text=cell.text, left=cell.left, right=cell.right, cells=()) for cell in line.cells]


def _ruled_rows(inside: Mapping[int, list[Line]], grid: Grid) -> Iterator[Line]:
    """A line for each row; a cell that reaches down stands in all of its rows."""
    texts = {area: _cell_text(lines) for area, lines in inside.items()}
    for start in range(0, len(grid.areas), grid.columns):
        areas = grid.areas[start : start + grid.columns]
        begun = [area for area in dict.fromkeys(areas) if area >= start]
        lines = [line for area in begun for line in inside.get(area, ())]
        if lines:
            row = [""] * grid.columns
            for area in set(areas):
                text = texts.get(area, "")
                row[area % grid.columns] = text if area >= start or len(text) <= LONGEST_REPEATED else ""
            words = " ".join(line.text for line in lines)
            cells = [Cell(lines[0].left, lines[0].right, texts.get(area, "")) for area in begun]
            yield replace(
                lines[0], text=words, low=min(line.low for line in lines), cells=cells, row=row, ruled=grid, typed=None
            )


def _cell_text(lines: Sequence[Line]) -> str:
    """Lines of a cell, with an empty one between its paragraphs."""
    text = lines[0].text
    for above, line in pairwise(lines):
        is_next = 0 <= above.low - line.base < _MAX_LINE_GAP * line.size
        text += f"{' ' if is_next else _PARAGRAPH_END}{line.text}"
    return text


def mark_tables(page: Sequence[Line]) -> None:
    """Set `row` of the lines of tables that are not ruled. Text that stands in columns is none."""
    for is_ruled, lines in groupby(page, key=lambda line: line.ruled is not None):
        if not is_ruled:
            _mark_columns(list(lines))


def _mark_columns(page: Sequence[Line]) -> None:
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
    gap = min(line.low for line in above.lines) - first.base
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


def has_header(rows: Sequence[Line], *, goes_on: bool) -> bool:
    """True if the first row names all columns: in another font, or in few words with capitals and without numbers.

    Words do not tell where the table goes on from the page before.
    """
    first, below = rows[0], [line for line in rows[1:] if any(line.row)]
    names = [cell.text for cell in first.cells] if first.ruled else first.row
    if not all(names):
        return False
    if below and (first.font, first.bold) != (below[0].font, below[0].bold) == (below[-1].font, below[-1].bold):
        return True
    if goes_on or any(letter.isdigit() for name in names for letter in name):
        return False
    is_short = bool(below) and _length(first) <= _MAX_HEADER_SHARE * median(map(_length, below))
    return _has_capitals(names) and (is_short or not all(_has_capitals(line.row) for line in below))


def _length(line: Line) -> int:
    return sum(map(len, line.row))


def _has_capitals(cells: Sequence[str]) -> bool:
    return all(cell[:1].isupper() for cell in cells)
