"""A picture as SVG: boxes in columns, each near the height of those that lead to it, and lines between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from sire_core.explore.name_kinds import NAME_KINDS
from sire_core.explore.picture import WAYPOINT, Link, Node, Picture, kind_name, layout
from sire_core.explore.templates import render, style

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDTHS = {"question": 190, "entity": 154, WAYPOINT: 190}
_WIDTH = 210
_SIZES = ((1.0, 1.0, 32), (1.0, 0.75, 26), (1.0, 0.55, 22), (0.88, 0.5, 20), (0.78, 0.45, 18))
"""Scales of boxes and of the texts of links, and gaps between columns; the first that fits a window is taken."""
WINDOW_WIDTH, HALF_WIDTH, _FILLED, _WIDEST = 1200, 572, 880, 2.0
"""Width of a picture that fits a window of 1,280 pixels, or half of it; that up to which boxes are made wider; and how
much at most."""
_BETWEEN = 18
_MARGIN = 12
_LINE_HEIGHT = 15
_PADDING = 9
_SIZE, _SMALL_LINE = 12, 14
_BOLD = 1.1  # Width of bold letters beside others
_LETTER_WIDTHS = {"ijl .,:;'|!`": 0.4, 'frtI()[]{}/\\"-': 0.48, "mwMW@%&": 1.0}
"""Widths of letters in a wide font, in parts of its size: no text may leave its box, whichever font a page has."""
_MARK = 14  # Width of the mark of an entity's kind, with the space after it
_TEXT_GAP = 6  # Space between the text of a link and its line
_LABEL_LINES, _TEXT_LINES = 2, 4
_MIN_SCALE, _MAX_SCALE = 1.0, 1.4
"""Scales of a picture in a small window, where it scrolls so that its letters can be read, and in a wide one."""
_HANGING = tuple(",.;:!")  # Narrow marks that may stand behind the end of a full line
_RULE = re.compile(r"([=\-_*~#.])\1{3,}")
"""A line that documents draw out of signs."""
_WORD_BREAK = re.compile(r"(?<=[\x2d/_.:])(?![\x2d/_.:])|(?<=[a-z])(?=[A-Z])")
"""Where a long word, such as a path, may go on in the next line."""


@dataclass(frozen=True, slots=True)
class _Box:
    node: Node
    x: float
    y: float
    width: float
    height: float
    label: tuple[str, ...]
    text: tuple[str, ...]

    @property
    def radius(self) -> int:
        """Radius of its corners."""
        return 14 if self.node.kind == "entity" else 6

    @property
    def mark_x(self) -> float:
        """Left edge of the mark of its kind."""
        return self.x + _PADDING

    @property
    def mark_y(self) -> float:
        """Upper edge of the mark of its kind."""
        return self.y + _PADDING + 1

    @property
    def lines(self) -> Iterator[tuple[str, float, float, str]]:
        """Its lines of text: the text, x and y of its beginning, and its class."""
        x = self.mark_x + (_MARK if self.node.name_kind else 0)
        for number, line in enumerate((*self.label, *self.text)):
            yield line, x, self.mark_y + 9 + number * _LINE_HEIGHT, "label" if number < len(self.label) else ""

    @property
    def description(self) -> str:
        """The whole text of the node."""
        node = self.node
        kind = f" ({NAME_KINDS[node.name_kind]})" if node.name_kind else ""
        return f"{kind_name(node.kind)}: {node.label}" + (f". {node.text}" if node.text else "") + kind


@dataclass(frozen=True, slots=True)
class _Line:
    reason: str
    curve: str
    labels: tuple[tuple[str, float, float, str], ...]


def document(picture: Picture) -> str:
    """A picture as an SVG file."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawing(picture, is_file=True)}\n'


def drawing(
    picture: Picture,
    *,
    links: Mapping[str, str] | None = None,
    is_file: bool = False,
    name: str = "p",
    expands: bool = False,
    fills: bool = True,
) -> Markup:
    """A picture as an SVG element; with `fills` as wide as a window, else as half of one.

    `links` are addresses of nodes by id; `name` is a prefix of its ids, unique on a page. With `expands` every node has
    a button that asks for its neighbours (`data-expand`); `is_file` puts its style into it.
    """
    columns, routes = _boxes(picture, fills=fills)
    boxes = {box.node.id: box for column in columns for box in column}
    width = max((box.x + box.width for box in boxes.values()), default=0) + _MARGIN
    height = max((box.y + box.height for box in boxes.values()), default=0) + _MARGIN
    edges = {box.node.id: max(other.x + other.width for other in column) for column in columns for box in column}
    least = f"min-width:{_MIN_SCALE * width:.0f}px;min-height:{_MIN_SCALE * height:.0f}px"
    return render(
        "parts",
        "svg",
        title=picture.title,
        width=width,
        height=height,
        scale="" if is_file else f"max-width:{_MAX_SCALE * width:.0f}px;{least}",
        name=name,
        style=style("picture") if is_file else "",
        lines=[_line(link, [boxes[stop] for stop in stops], edges) for link, stops in routes],
        boxes=[box for box in boxes.values() if box.node.kind != WAYPOINT],
        links=links or {},
        expands=expands,
    )


def _boxes(picture: Picture, *, fills: bool) -> tuple[list[list[_Box]], list[tuple[Link, list[str]]]]:
    """Boxes in columns, each near the height of those that lead to it, and what every link passes."""
    layers, routes = layout(picture)
    layers = [layer for layer in layers if layer]
    for boxes, texts, gap in _SIZES:
        width = _total_width(layers, boxes, texts, gap)
        if width <= (WINDOW_WIDTH if fills else HALF_WIDTH):
            break
    boxes_width = _total_width(layers, 1, 0, 0)
    boxes *= max(1.0, min(_WIDEST, 1 + (_FILLED - width) / max(boxes_width, 1))) if fills else 1
    leading: dict[str, list[str]] = {}
    for _, stops in routes:
        for stop, other in pairwise(stops):
            leading.setdefault(other, []).append(stop)
            leading.setdefault(stop, []).append(other)
    middles: dict[str, float] = {}
    columns: list[list[_Box]] = []
    x = float(_MARGIN)
    for layer in layers:
        column, wanted, y = list[_Box](), list[float](), 0.0
        for box in (_sized(node, boxes, texts) for node in layer):
            column.append(replace(box, x=x, y=y))
            linked_middles = [middles[name] for name in leading.get(box.node.id, ()) if name in middles]
            wanted += [sum(linked_middles) / len(linked_middles) - box.height / 2 - y] if linked_middles else []
            y += box.height + _BETWEEN
        shift = sum(wanted) / len(wanted) if wanted else -y / 2
        columns.append([replace(box, y=box.y + shift) for box in column])
        middles |= {box.node.id: box.y + box.height / 2 for box in columns[-1]}
        x += max(box.width for box in column) + gap
    top = min((box.y for column in columns for box in column), default=0.0) - _MARGIN
    return [[replace(box, y=box.y - top) for box in column] for column in columns], routes


def _total_width(layers: Sequence[Sequence[Node]], boxes: float, texts: float, gap: float) -> float:
    """Width of columns of boxes and texts of these scales, with gaps between them."""
    widths = (max(_sized(node, boxes, texts).width for node in layer) for layer in layers)
    return sum(widths) + gap * (len(layers) - 1) + 2 * _MARGIN


def _sized(node: Node, boxes: float, texts: float) -> _Box:
    if node.kind == WAYPOINT:
        text = _lines(node.label, texts * _WIDTHS[WAYPOINT] / _SIZE, _TEXT_LINES) if texts else ()
        width = max(map(_width, text), default=0) * _SIZE
        return _Box(node, 0, 0, width, len(text) * _SMALL_LINE + _TEXT_GAP, (), text)
    width = _WIDTHS.get(node.kind, _WIDTH) * boxes
    if node.kind == "entity":  # a long name is not broken where there is room beside it
        longest = max(map(_width, node.label.split()), default=0) * _SIZE * _BOLD + 2 * _PADDING + _MARK + 2
        width = max(width, min(longest, _WIDTH))
    room = (width - 2 * _PADDING - (_MARK if node.name_kind else 0)) / _SIZE
    named = f"[{node.rank}] {node.label}" if node.rank else node.label
    label = _lines(named, room / _BOLD, _LABEL_LINES + (boxes < 1))
    text = _lines(node.text, room, _TEXT_LINES) if node.text and node.text != node.label else ()
    return _Box(node, 0, 0, width, (len(label) + len(text)) * _LINE_HEIGHT + 2 * _PADDING - 2, label, text)


def _lines(text: str, room: float, max_lines: int) -> tuple[str, ...]:
    """A text in lines of limited width; long words end a line after a sign, or are cut if they have none."""
    lines: list[str] = []
    line = ""
    for word in _RULE.sub(r"\1\1\1", text).split():
        for number, part in enumerate(_parts(word, room)):
            longer = f"{line} {part}" if line and not number else line + part
            if _width(longer) <= room:
                line = longer
                continue
            lines += [line] if line else []
            line = part
            if len(lines) == max_lines:
                beginning = _fitting(lines[-1], room - 1)
                whole = beginning if beginning == lines[-1] else beginning.rpartition(" ")[0] or beginning
                return (*lines[:-1], f"{whole}\u2026")
    return (*lines, line) if line else tuple(lines)


def _parts(word: str, room: float) -> Iterator[str]:
    """Parts of a word that fit on a line; a word that fits is one."""
    for part in [word] if _width(word) <= room else _WORD_BREAK.split(word):
        rest = part
        while _width(rest) > room:  # a text without spaces
            head = _fitting(rest, room)
            if rest[len(head) :] in _HANGING:  # no line is a mark alone
                break
            yield head
            rest = rest[len(head) :]
        yield rest


def _width(text: str) -> float:
    """Width of a text in parts of the size of its font."""
    return sum(map(_letter_width, text))


@lru_cache(1 << 12)
def _letter_width(letter: str) -> float:
    listed_width = next((width for letters, width in _LETTER_WIDTHS.items() if letter in letters), 0.0)
    return listed_width or (1.1 if east_asian_width(letter) in "WF" else 0.78 if letter.isupper() else 0.64)


def _fitting(text: str, room: float) -> str:
    """The letters of a text that fit, at least one."""
    end, width = 0, 0.0
    for letter in text:
        width += _letter_width(letter)
        if width > room and end:
            break
        end += 1
    return text[:end]


def _line(link: Link, stops: Sequence[_Box], edges: Mapping[str, float]) -> _Line:
    """A line from box to box with its text: level along the width of a column, curved between two columns."""
    boxes = stops if stops[0].x <= stops[-1].x else stops[::-1]
    first, *waypoints, last = boxes
    heights = [box.y + box.height - (_TEXT_GAP / 2 if box.node.kind == WAYPOINT else box.height / 2) for box in boxes]
    points = [(first.x + first.width, heights[0]), (edges[first.node.id], heights[0])]
    if first.x == last.x:
        turn = waypoints[0]
        points += [(turn.x, heights[1]), (edges[last.node.id], heights[2]), (last.x + last.width, heights[2])]
    else:
        for box, height in zip(waypoints, heights[1:], strict=False):
            points += [(box.x, height), (edges[box.node.id], height)]
        points.append((last.x, heights[-1]))
    if boxes[0] is not stops[0]:
        points.reverse()
    curve = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (x1 + x2) / 2
        level = f"H{x2:.0f}" if x1 != x2 else ""
        curve += level if y1 == y2 else f"C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    labels = (
        (text, box.x + 4, box.y + (number + 1) * _SMALL_LINE - 3, "small")
        for box in waypoints
        for number, text in enumerate(box.text)
    )
    return _Line(link.reason, curve, tuple(labels))
