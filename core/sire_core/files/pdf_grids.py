"""Grids of ruled tables: the lines that are drawn on a page of a PDF, and the cells between them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from ctypes import c_float, c_int
from itertools import pairwise
from typing import Any, NamedTuple

from sire_core.files.pdf_code import pdfium

_MAX_WIDTH = 3.0  # Points: what is drawn thinner is a line
_TOUCH = 2.5  # Points: lines that are no further apart touch, and parallel ones are one
_MAX_OBJECTS, _MAX_POINTS, _MAX_RULES = 50_000, 1_000, 500
"""On a page, of one path, and on a page after those that go on are joined; a page with more has drawings."""

Box = tuple[float, float, float, float]  # Left, bottom, right and top, in points


class Rule(NamedTuple):
    """A level or upright line: its place across its direction, and where it begins and ends."""

    at: float
    start: float
    end: float


class Grid(NamedTuple):
    """A ruled table: its borders from left to right and from top to bottom, and the area that each cell is a part of.

    An area has the number of its first cell, counted by rows.
    """

    lefts: Sequence[float]
    tops: Sequence[float]
    areas: Sequence[int]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.lefts) - 1

    def area(self, x: float, y: float) -> int | None:
        """Area around a point; None outside of the table."""
        column = bisect_right(self.lefts, x) - 1
        row = bisect_right(self.tops, -y, key=lambda top: -top) - 1
        is_inside = 0 <= column < self.columns and 0 <= row < len(self.tops) - 1
        return self.areas[row * self.columns + column] if is_inside else None


class PageGrids(NamedTuple):
    """Ruled tables of a page, the smallest first, and the upright lines in them from left to right."""

    grids: Sequence[Grid] = ()
    upright: Sequence[Rule] = ()

    def parts(self, left: float, right: float, y: float) -> bool:
        """True if a line stands between two letters."""
        first = bisect_left(self.upright, left - 0.5, key=lambda rule: rule.at)
        last = bisect_right(self.upright, right + 0.5, key=lambda rule: rule.at)
        return any(rule.start <= y <= rule.end for rule in self.upright[first:last])


def page_grids(page: Any) -> PageGrids:
    """Find the ruled tables of a page."""
    level: list[Rule] = []
    upright: list[Rule] = []
    for left, bottom, right, top in _lines(page):
        if top - bottom < _MAX_WIDTH < right - left:
            level.append(Rule((bottom + top) / 2, left, right))
        elif right - left < _MAX_WIDTH < top - bottom:
            upright.append(Rule((left + right) / 2, bottom, top))
    level, upright = _joined_rules(level), _joined_rules(upright)
    if not upright or len(level) < 2 or len(level) + len(upright) > _MAX_RULES:
        return PageGrids()
    parts = defaultdict[int, tuple[list[Rule], list[Rule]]](lambda: ([], []))
    labels = _least(len(level) + len(upright), _touching(level, upright))
    for number, label in enumerate(labels):
        is_level = number < len(level)
        parts[label][not is_level].append(level[number] if is_level else upright[number - len(level)])
    grids = [_grid(*part) for part in parts.values() if len(part[0]) > 1 and part[1]]
    grids = [grid for grid in grids if len(set(grid.areas)) > 2 and len(grid.tops) > 2 and grid.columns > 1]
    return PageGrids(sorted(grids, key=_size), upright) if grids else PageGrids()


def _size(grid: Grid) -> float:
    return (grid.lefts[-1] - grid.lefts[0]) * (grid.tops[0] - grid.tops[-1])


def _lines(page: Any) -> Iterator[Box]:
    """Boxes of the lines that are drawn on a page, and of the sides of what is drawn with more points."""
    library, handle = pdfium(), page.raw
    sides = [c_float() for _ in range(4)]
    is_filled, is_stroked = c_int(), c_int()
    for number in range(min(library.FPDFPage_CountObjects(handle), _MAX_OBJECTS)):
        item = library.FPDFPage_GetObject(handle, number)
        if library.FPDFPageObj_GetType(item) != library.FPDF_PAGEOBJ_PATH:
            continue
        if not library.FPDFPageObj_GetBounds(item, *sides):
            continue
        left, bottom, right, top = (side.value for side in sides)
        if min(right - left, top - bottom) < _MAX_WIDTH:
            yield left, bottom, right, top
        elif library.FPDFPath_GetDrawMode(item, is_filled, is_stroked) and is_stroked.value:
            yield from _sides(library, item)


def _sides(library: Any, path: Any) -> Iterator[Box]:
    matrix, x, y = library.FS_MATRIX(), c_float(), c_float()
    total = library.FPDFPath_CountSegments(path)
    if total > _MAX_POINTS or not library.FPDFPageObj_GetMatrix(path, matrix):
        return
    first = last = (0.0, 0.0)
    for number in range(total):
        segment = library.FPDFPath_GetPathSegment(path, number)
        library.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = library.FPDFPathSegment_GetType(segment)
        ends = [last] if kind == library.FPDF_SEGMENT_LINETO else []
        if kind == library.FPDF_SEGMENT_MOVETO:
            first = point
        if library.FPDFPathSegment_GetClose(segment):
            ends.append(first)
        for end in ends:
            yield min(end[0], point[0]), min(end[1], point[1]), max(end[0], point[0]), max(end[1], point[1])
        last = point


def _joined_rules(rules: list[Rule]) -> list[Rule]:
    """Parallel lines, those on one level that go on as one."""
    joined: list[Rule] = []
    level: list[Rule] = []
    for rule in [*sorted(rules), Rule(float("inf"), 0, 0)]:
        if level and rule.at - level[-1].at > _TOUCH:
            at = level[0].at
            start, end = level[0].start, level[0].end
            for part in sorted(level, key=lambda one: one.start):
                if part.start - end > _TOUCH:
                    joined.append(Rule(at, start, end))
                    start, end = part.start, part.end
                start, end = min(start, part.start), max(end, part.end)
            joined.append(Rule(at, start, end))
            level = []
        level.append(rule)
    return joined


def _touching(level: Sequence[Rule], upright: Sequence[Rule]) -> Iterator[tuple[int, int]]:
    """Numbers of lines that touch; those of upright ones follow the others."""
    for number, rule in enumerate(level):
        first = bisect_left(upright, rule.start - _TOUCH, key=lambda other: other.at)
        last = bisect_right(upright, rule.end + _TOUCH, key=lambda other: other.at)
        for other in range(first, last):
            if upright[other].start - _TOUCH <= rule.at <= upright[other].end + _TOUCH:
                yield number, len(level) + other


def _least(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each number the least of those that pairs join it with."""
    least = list(range(count))
    for first, second in pairs:
        one, other = _root(least, first), _root(least, second)
        least[max(one, other)] = min(one, other)
    for number in range(count):
        least[number] = least[least[number]]
    return least


def _root(least: list[int], number: int) -> int:
    while least[number] != number:
        least[number] = number = least[least[number]]
    return number


def _grid(level: Sequence[Rule], upright: Sequence[Rule]) -> Grid:
    """The grid of lines that touch; where outer lines are missing, the others end at its sides."""
    lefts, bottoms = _borders(upright, level), _borders(level, upright)
    tops = bottoms[::-1]
    columns, rows = len(lefts) - 1, len(tops) - 1
    middles = [(left + right) / 2 for left, right in pairwise(lefts)]
    heights = [(top + bottom) / 2 for top, bottom in pairwise(tops)]
    walls, floors = _by_place(upright), _by_place(level)
    pairs = [
        (row * columns + column - 1, row * columns + column)
        for column in range(1, columns)
        for row in range(rows)
        if not _covers(walls[lefts[column]], heights[row])
    ]
    pairs += [
        ((row - 1) * columns + column, row * columns + column)
        for row in range(1, rows)
        for column in range(columns)
        if not _covers(floors[tops[row]], middles[column])
    ]
    return Grid(lefts, tops, _least(rows * columns, pairs))


def _borders(across: Sequence[Rule], along: Sequence[Rule]) -> list[float]:
    places = sorted({rule.at for rule in across})
    start, end = min(rule.start for rule in along), max(rule.end for rule in along)
    before = [start] if start < places[0] - _TOUCH else []
    return [*before, *places, *([end] if end > places[-1] + _TOUCH else [])]


def _by_place(rules: Sequence[Rule]) -> defaultdict[float, list[Rule]]:
    by_place = defaultdict[float, list[Rule]](list)
    for rule in rules:
        by_place[rule.at].append(rule)
    return by_place


def _covers(rules: Sequence[Rule], point: float) -> bool:
    return any(rule.start <= point <= rule.end for rule in rules)
