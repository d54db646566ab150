"""A result as an HTML page and its picture as SVG: both work offline, without a script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from sire_core.explore.highlight import escaped
from sire_core.explore.markdown_html import highlighted, markdown_html
from sire_core.explore.name_kinds import NAME_KINDS
from sire_core.explore.picture import WAYPOINT, Branch, Link, Node, Picture, branches, kind_name, layout
from sire_core.explore.short_titles import told_apart
from sire_core.search.explanation import without_sessions
from sire_core.text.pluralize import count, shorten
from sire_core.text.snippets import snippet
from sire_core.types import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sire_core.explore.paths import Reason
    from sire_core.explore.query_result import QueryResult, ResultHit


_WIDTHS = {"question": 190, "entity": 154, WAYPOINT: 190}
_WIDTH = 210
_SIZES = ((1.0, 1.0, 32), (1.0, 0.75, 26), (1.0, 0.55, 22), (0.88, 0.5, 20), (0.78, 0.45, 18))
"""Scales of boxes and of the texts of links, and gaps between columns; the first that fits a window is taken."""
_ROOM, _HALF, _FILLED, _WIDEST = 1200, 572, 880, 2.0
"""Width of a picture that fits a window of 1,280 pixels, or half of it; that up to which boxes are made wider; and how
much at most."""
_BETWEEN = 18
_MARGIN = 12
_LINE_HEIGHT = 15
_PADDING = 9
_SIZE, _SMALL_LINE = 12, 14
_BOLD = 1.1
"""How much wider bold letters are."""
_LETTER_WIDTHS = {"ijl .,:;'|!`": 0.4, 'frtI()[]{}/\\"-': 0.48, "mwMW@%&": 1.0}
"""Widths of letters in a wide font, in parts of its size: no text may leave its box, whichever font a page has."""
_MARK = 14
"""Width of the mark of an entity's kind, with the space after it."""
_ABOVE = 6
"""Space between the text of a link and its line."""
_LABEL_LINES, _TEXT_LINES = 2, 4
_LEAST, _MOST = 1.0, 1.4
"""Scales of a picture in a small window, where it scrolls so that its letters can be read, and in a wide one."""

_KINDS = {
    "person": (
        ("#fde5d8", "#a8420a", "#40230f", "#f29a68"),
        "M5 0a2.4 2.4 0 1 1 0 4.8a2.4 2.4 0 1 1 0-4.8M.5 10a4.5 4.3 0 0 1 9 0z",
    ),
    "organization": (("#d8f1eb", "#00705a", "#0d322a", "#5cc9ac"), "M1 10V2L5 0L9 2V10H6V7H4V10z"),
    "place": (
        ("#f4f2c3", "#6a6300", "#333009", "#d6cd57"),
        "M5 0a3.6 3.6 0 0 1 3.6 3.6C8.6 6 5 10 5 10S1.4 6 1.4 3.6A3.6 3.6 0 0 1 5 0z",
    ),
    "title": (("#f8e3ef", "#97356f", "#3c1a2e", "#e69ac6"), "M1.5 0H6L8.5 2.5V10H1.5z"),
    "code": (
        ("#ddeffa", "#08658f", "#12303f", "#69bbe6"),
        "M3 1.5L4.2 2.6L2.2 5L4.2 7.4L3 8.5L0 5zM7 1.5L5.8 2.6L7.8 5L5.8 7.4L7 8.5L10 5z",
    ),
    "number": (
        ("#e7eaee", "#22282e", "#2b3037", "#f2f5f8"),
        "M2.3 0H3.8V10H2.3zM6.2 0H7.7V10H6.2zM0 2.3H10V3.8H0zM0 6.2H10V7.7H0z",
    ),
    "name": (("#fdf0d5", "#8f5f00", "#3a2e12", "#f0c561"), "M5 .3L9.7 5L5 9.7L.3 5z"),
}
"""Ground and edge of kinds of names in light and dark, and a mark in a square of 10, as no colour alone says a kind."""

_COLOURS = """--ground:#fff;--ink:#1a1d21;--soft:#5a6068;--line:#6b7480;--box:#f6f8fa;--edge:#c3cad2;--ask:#e3edfb;
--askline:#2a5db0;--made:#e6f4e8;--madeline:#2b6e38;--mark:#ffe79a;--accent:#1d4f9e"""
_DARK = """--ground:#14171b;--ink:#e8eaed;--soft:#adb5bf;--line:#98a2ae;--box:#1e2329;--edge:#434c57;--ask:#1d2c45;
--askline:#8ab4f8;--made:#17301d;--madeline:#8fd19e;--mark:#5c4a00;--accent:#8ab4f8"""


def _kind_colours(first: int) -> str:
    return ";".join(
        f"--{kind}:{colours[first]};--{kind}line:{colours[first + 1]}" for kind, (colours, _) in _KINDS.items()
    )


_KIND_RULES = "".join(f".sire .is-{kind}{{--of:var(--{kind});--at:var(--{kind}line)}}" for kind in _KINDS)
STYLE = f"""
.sire{{{_COLOURS};{_kind_colours(0)};color-scheme:light dark;
color:var(--ink);background:var(--ground);font:15px/1.5 system-ui,sans-serif}}
@media (prefers-color-scheme: dark){{.sire{{{_DARK};{_kind_colours(2)}}}}}
svg.sire text{{fill:var(--ink);font:12px system-ui,sans-serif}}
svg.sire .label{{font-weight:600}}
svg.sire .small{{fill:var(--soft)}}
svg.sire path{{fill:none;stroke:var(--line);stroke-width:1.3}}
svg.sire .head{{fill:var(--line);stroke:none}}
svg.sire rect{{fill:var(--box);stroke:var(--edge)}}
svg.sire .question rect{{fill:var(--ask);stroke:var(--askline)}}
svg.sire .entity rect{{fill:var(--of,var(--name));stroke:var(--at,var(--nameline))}}
svg.sire .entity .mark,.sire .mark path{{fill:var(--at);stroke:none}}
{_KIND_RULES}
svg.sire .derived rect{{fill:var(--made);stroke:var(--madeline);stroke-dasharray:5 3}}
svg.sire .hit rect{{stroke:var(--accent);stroke-width:2}}
svg.sire .more circle{{fill:var(--ground);stroke:var(--line)}} svg.sire .more{{cursor:pointer}}
svg.sire a:focus rect,svg.sire a:hover rect{{stroke-width:3;stroke:var(--accent)}}
""".strip()
"""Styles inside an element of the class `sire`; the contrast of colours is at least 4.5 to 1."""

NEAREST = "Nearest sentences"
PAGE_STYLE = f"""{STYLE}
.sire-page{{padding:16px 20px;border-radius:8px;overflow-wrap:break-word}}
.sire-page h1{{font-size:24px;margin:0;line-height:1.3;font-weight:600}}
.sire-page table{{border-collapse:collapse;font-size:14px;min-width:40%}}
.sire-page caption{{text-align:left;font-weight:600;padding:8px 10px}}
.sire-page th,.sire-page td{{text-align:left;padding:4px 10px;border-top:1px solid var(--edge);vertical-align:top}}
.sire-page h2{{font-size:20px;margin:0 0 4px;line-height:1.3}}
.sire-page h3{{font-size:16px;margin:0;line-height:1.3}}
.sire-page h2,.sire-page h3{{font-weight:600;letter-spacing:0}}
.sire-page .meta{{color:var(--soft);margin:0 0 10px;font-size:13px}}
.sire-page .scroll{{overflow-x:auto;border:1px solid var(--edge);border-radius:8px;margin:12px 0}}
.sire-page .scroll>svg{{display:block;background:none;width:100%;height:auto;max-height:78vh}}
.sire-page .picture .scroll{{max-height:80vh;overflow:auto;background:
linear-gradient(90deg,var(--ground) 40%,transparent) 0 0/56px 100%,
linear-gradient(270deg,var(--ground) 40%,transparent) 100% 0/56px 100%,
linear-gradient(var(--ground) 40%,transparent) 0 0/100% 56px,
linear-gradient(0deg,var(--ground) 40%,transparent) 0 100%/100% 56px,
linear-gradient(90deg,var(--edge),transparent) 0 0/16px 100%,
linear-gradient(270deg,var(--edge),transparent) 100% 0/16px 100%,
linear-gradient(var(--edge),transparent) 0 0/100% 16px,
linear-gradient(0deg,var(--edge),transparent) 0 100%/100% 16px;
background-repeat:no-repeat;background-attachment:local,local,local,local,scroll,scroll,scroll,scroll}}
.sire-page .picture button{{font:inherit;min-width:34px;min-height:28px;margin-right:6px;color:var(--ink);
background:var(--box);border:1px solid var(--line);border-radius:6px}}
.sire-page ol.hits{{list-style:none;padding:0;margin:0}}
.sire-page ol.hits>li{{border:1px solid var(--edge);border-radius:8px;padding:12px 14px;margin:10px 0}}
.sire-page li:target{{outline:3px solid var(--accent)}}
.sire-page .text{{margin:8px 0;max-width:80ch}}
.sire-page .quotes p{{white-space:pre-wrap}}
.sire-page .text.plain,.sire-page .text pre{{white-space:pre-wrap}}
.sire-page .text p,.sire-page .text ul,.sire-page .text ol{{margin:0 0 8px}}
.sire-page .text p.heading{{font-weight:600}}
.sire-page .text ul,.sire-page .text ol{{padding-left:22px}} .sire-page .text pre{{background:var(--box);padding:8px}}
.sire-page .text .wide{{overflow-x:auto;margin:0 0 8px}} .sire-page .text table{{border-collapse:collapse;min-width:0}}
.sire-page .fold:has(details[open])>.short,.sire-page .fold .aside{{display:none}}
.sire-page .fold summary{{cursor:pointer;color:var(--accent);font-size:13px;width:fit-content}}
.sire-page .short p{{margin:0}}
.sire-page .text td,.sire-page .text th{{border:1px solid var(--edge);padding:2px 8px;text-align:left}}
.sire-page ul.why{{margin:4px 0 0;padding-left:20px;font-size:13px}}
.sire-page mark{{background:var(--mark);color:inherit;padding:0 1px;border-radius:2px}}
.sire-page mark.name{{background:var(--of,var(--name));box-shadow:inset 0 -2px var(--at,var(--nameline))}}
.sire .mark{{width:.8em;height:.8em;margin-right:.4em;flex:none}}
.sire-page ul.legend{{list-style:none;padding:0;margin:-4px 0 12px;display:flex;flex-wrap:wrap;gap:2px 16px;
font-size:13px;color:var(--soft)}} .sire-page ul.names+ul.legend{{margin-top:0}}
.sire-page .outline{{display:none;list-style:none;margin:12px 0;padding:0}} .sire-page .outline ul{{list-style:none}}
.sire-page .outline ul{{margin:0 0 0 5px;padding:0 0 0 9px;border-left:2px solid var(--edge)}}
.sire-page .outline li{{margin:6px 0}} .sire-page .outline small{{color:var(--soft);font-size:13px}}
.sire-page .outline .node{{border:1px solid var(--at,var(--edge));background:var(--of,var(--box));border-radius:6px;
padding:6px 10px;display:flex;gap:8px;align-items:start}} .sire-page .outline .node>div{{flex-grow:1;min-width:0}}
.sire-page .outline .node.question{{border-color:var(--askline);background:var(--ask)}}
.sire-page .outline .node.derived{{border:1px dashed var(--madeline);background:var(--made)}}
.sire-page .outline .node.hit{{border:2px solid var(--accent)}} .sire-page .outline .node.entity{{border-radius:14px}}
.sire-page .outline a{{color:var(--ink);font-weight:600;text-decoration:underline}}
.sire-page .outline p{{margin:2px 0 0;font-size:13px}} .sire-page .picture{{container-type:inline-size}}
@container (max-width:520px){{.sire-page .picture>.scroll,.sire-page .picture>[data-zoom]{{display:none}}
.sire-page .outline{{display:block}}}} @container (max-width:700px){{.sire-page .wide>.scroll,
.sire-page .wide>[data-zoom]{{display:none}} .sire-page .wide>.outline{{display:block}}
.sire-two:has(.wide) .picture>:is(.scroll,[data-zoom]){{display:none}} .sire-two:has(.wide) .outline{{display:block}}}}
.sire-page .further{{display:none}}
@container (min-width:701px) and (max-width:1250px){{.sire-page .further{{display:inline}}}}
.sire-page a{{color:var(--accent);text-decoration:underline}} .sire-page svg a{{text-decoration:none}}"""
"""Styles inside an element of the classes `sire sire-page`."""
# Nothing may be loaded and nothing may run, even if something were not escaped.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_BODY = "body{margin:0;background:#fff}@media (prefers-color-scheme: dark){body{background:#14171b}}"


_WIDTH_OF = re.compile(r'width="(\d+)"')
_SNIPPET, _SHORT_HIT = 360, 480
"""Letters of a hit that is folded, and of one that is not."""
_WIDE = 900
"""Width from which the letters of a picture that fits 700 pixels are too small."""
HEADING = 300
"""Letters of a question that are its heading."""
_HANGING = tuple(",.;:!")
"""Narrow marks that may stand behind the end of a full line."""
_RULE = re.compile(r"([=\-_*~#.])\1{3,}")
"""A line that documents draw out of signs."""
_STEPS = {"vector": "text", "entity": "link", "question": "name"}
"""What steps of paths are called on pages."""
_COSINE = re.compile(r"cosine (-?[\d.]+) with the question")
_ENDS = re.compile(r"(?<=[\x2d/_.:])(?![\x2d/_.:])|(?<=[a-z])(?=[A-Z])")
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


def document(picture: Picture) -> str:
    """A picture as an SVG file."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawing(picture, style=True)}\n'


def drawing(
    picture: Picture,
    *,
    links: Mapping[str, str] | None = None,
    style: bool = False,
    name: str = "p",
    expands: bool = False,
    fills: bool = True,
) -> str:
    """A picture as an SVG element.

    Args:
        picture: What is drawn.
        links: Addresses of nodes, by id.
        style: Whether its style is part of it, for a file of its own.
        name: Prefix of its ids, unique on a page.
        expands: Whether every node has a button that asks for its neighbours (`data-expand`).
        fills: Whether it takes the width of a window; else of half of one.
    """
    columns, routes = _boxes(picture, fills=fills)
    boxes = {box.node.id: box for column in columns for box in column}
    width = max((box.x + box.width for box in boxes.values()), default=0) + _MARGIN
    height = max((box.y + box.height for box in boxes.values()), default=0) + _MARGIN
    edges = {box.node.id: max(other.x + other.width for other in column) for column in columns for box in column}
    lines = [_line(link, [boxes[stop] for stop in stops], edges) for link, stops in routes]
    nodes = [
        _node(box, (links or {}).get(box.node.id, ""), expands) for box in boxes.values() if box.node.kind != WAYPOINT
    ]
    body = (f"<style>{STYLE}</style>" if style else "") + f"<title>{escaped(picture.title)}</title>"
    least = f"min-width:{_LEAST * width:.0f}px;min-height:{_LEAST * height:.0f}px"
    scale = "" if style else f'style="max-width:{_MOST * width:.0f}px;{least}" '
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sire" role="group" aria-label="{escaped(picture.title)}" '
        f'{scale}width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">{body}'
        f'<defs><marker id="{name}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        f'<g marker-end="url(#{name}-head)">{"".join(lines)}</g>{"".join(nodes)}</svg>'
    )


def _boxes(picture: Picture, *, fills: bool) -> tuple[list[list[_Box]], list[tuple[Link, list[str]]]]:
    """Boxes in columns, each near the height of those that lead to it, and what every link passes."""
    layers, routes = layout(picture)
    layers = [layer for layer in layers if layer]
    for boxes, texts, gap in _SIZES:
        width = _total_width(layers, boxes, texts, gap)
        if width <= (_ROOM if fills else _HALF):
            break
    own = _total_width(layers, 1, 0, 0)
    boxes *= max(1.0, min(_WIDEST, 1 + (_FILLED - width) / max(own, 1))) if fills else 1
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
            known = [middles[name] for name in leading.get(box.node.id, ()) if name in middles]
            wanted += [sum(known) / len(known) - box.height / 2 - y] if known else []
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
        return _Box(node, 0, 0, width, len(text) * _SMALL_LINE + _ABOVE, (), text)
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
                kept = _fitting(lines[-1], room - 1)
                whole = kept if kept == lines[-1] else kept.rpartition(" ")[0] or kept
                return (*lines[:-1], f"{whole}\u2026")
    return (*lines, line) if line else tuple(lines)


def _parts(word: str, room: float) -> Iterator[str]:
    """Parts of a word that fit on a line; a word that fits is one."""
    for part in [word] if _width(word) <= room else _ENDS.split(word):
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
    known = next((width for letters, width in _LETTER_WIDTHS.items() if letter in letters), 0.0)
    return known or (1.1 if east_asian_width(letter) in "WF" else 0.78 if letter.isupper() else 0.64)


def _fitting(text: str, room: float) -> str:
    """The letters of a text that fit, at least one."""
    end, width = 0, 0.0
    for letter in text:
        width += _letter_width(letter)
        if width > room and end:
            break
        end += 1
    return text[:end]


def _node(box: _Box, target: str, expands: bool) -> str:
    node = box.node
    radius = 14 if node.kind == "entity" else 6
    x, y = box.x + _PADDING + (_MARK if node.name_kind else 0), box.y + _PADDING + 10
    texts = [_text(line, x, y + i * _LINE_HEIGHT, "label") for i, line in enumerate(box.label)]
    texts += [_text(line, x, y + (len(box.label) + i) * _LINE_HEIGHT, "") for i, line in enumerate(box.text)]
    whole = f"{kind_name(node.kind)}: {node.label}" + (f". {node.text}" if node.text else "")
    sign = ""
    if node.name_kind:
        whole += f" ({NAME_KINDS[node.name_kind]})"
        place = f"translate({box.x + _PADDING:.0f} {box.y + _PADDING + 1:.0f})"
        sign = f'<path class="mark" transform="{place}" d="{_KINDS[node.name_kind][1]}"/>'
    markup = (
        f'<g class="{_node_class(node)}"><title>{escaped(whole)}</title>'
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="{radius}"/>'
        f"{sign}{''.join(texts)}</g>"
    )
    linked = f'<a href="{escaped(target)}">{markup}</a>' if target else markup
    if not expands or node.kind == "question":
        return linked
    x, y = box.x + box.width, box.y + box.height
    return (
        f'{linked}<g class="more" role="button" tabindex="0" data-expand="{escaped(node.id)}" '
        f'aria-label="Show neighbours of {escaped(node.label)}"><circle cx="{x:.0f}" cy="{y:.0f}" r="9"/>'
        f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">+</text></g>'
    )


def _text(line: str, x: float, y: float, kind: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}"{f" class={kind!r}" if kind else ""}>{escaped(line)}</text>'


def _line(link: Link, stops: Sequence[_Box], edges: Mapping[str, float]) -> str:
    """A line from box to box with its text: level along the width of a column, curved between two columns."""
    boxes = stops if stops[0].x <= stops[-1].x else stops[::-1]
    first, *waypoints, last = boxes
    heights = [box.y + box.height - (_ABOVE / 2 if box.node.kind == WAYPOINT else box.height / 2) for box in boxes]
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
    reason = f"<title>{escaped(link.reason)}</title>" if link.reason else ""
    labels = "".join(
        _text(line, box.x + 4, box.y + (number + 1) * _SMALL_LINE - 3, "small")
        for box in waypoints
        for number, line in enumerate(box.text)
    )
    return f'<g>{reason}<path d="{curve}"/>{labels}</g>'


def page(*results: QueryResult) -> str:
    """A whole page of one question; of two results with their ranks side by side."""
    title = escaped(shorten(results[0].question, HEADING))
    if len(results) == 1:
        content = parts(results[0])
    else:
        sides = "".join(parts(result, heading=result.search) for result in results)
        content = f'<div class="sire sire-page"><h1>{title}</h1>{comparison_html(*results[:2])}</div>'
        content += f'<div class="sire-two">{sides}</div>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><title>{title}</title><style>{_BODY}\n{PAGE_STYLE}</style></head>'
        f"<body><main>{content}</main></body></html>\n"
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are HTML, captions and titles are text. It scrolls in a narrow window."""
    titles = "".join(f'<th scope="col">{escaped(cell)}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}"><table><caption>'
        f"{escaped(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def comparison_html(one: QueryResult, other: QueryResult) -> str:
    """Ranks of the hits of two searches; each rank links to its hit."""

    def cell(result: QueryResult, rank: int, text: str = "") -> str:
        if not rank:
            return f"not among the first {len(result.hits)}" if result.hits else "no hits"
        return f'<a href="#{_prefix(result)}-{rank}">{escaped(text) or rank}</a>'

    rows = [
        (cell(*((one, first) if first else (other, second)), title), cell(one, first), cell(other, second))
        for title, first, second in compared(one, other)
    ]
    return table(f"Ranks with {one.search} and {other.search}", ("passage", one.search, other.search), rows)


def compared(one: QueryResult, other: QueryResult) -> Iterator[tuple[str, int, int]]:
    """Title, rank in one result and rank in the other (0 if it is not among the hits) of every hit of two results."""
    ranks = [{hit.id: hit.rank for hit in result.hits} for result in (one, other)]
    hits = {hit.id: hit for result in (one, other) for hit in result.hits}
    titles = told_apart([(hit.title, hit.text) for hit in hits.values()])
    for name, title in zip(hits, titles, strict=True):
        yield title, ranks[0].get(name, 0), ranks[1].get(name, 0)


def fragment(result: QueryResult) -> str:
    """The part of a page for notebooks."""
    return f"<style>{PAGE_STYLE}</style>{parts(result)}"


def parts(
    result: QueryResult,
    address: Callable[[str, str], str] | None = None,
    target: Callable[[str, str], str] | None = None,
    heading: str = "",
) -> str:
    """The part of a page without its style.

    Args:
        result: What is shown.
        address: Returns the address of a unit or an entity by its kind and id.
        target: Returns the address of a relative link by the id of its document; empty if it leads nowhere.
        heading: What stands above it; empty for the question.
    """
    name = _prefix(result)
    links = {hit.id: f"#{name}-{hit.rank}" for hit in result.hits}
    if address is not None:
        others = [node for node in result.picture.nodes if node.kind != "question" and node.id not in links]
        links |= {node.id: address(node.kind, node.id) for node in others}
    label = f"The paths to the hits of {result.search}"
    moves = address is not None
    drawn = region(result.picture, label, links, name, moves=moves, fills=not heading) if result.hits else ""
    drawn += left_out_html(result.picture, address, f"#{name}-1")
    notes = [
        count(len(result.hits), "hit"),
        f"recipe {result.search}",
        *([f"filter {result.filter}"] if result.filter else []),
        f"{result.units:,} texts searched in {result.seconds * 1000:.0f} ms{', loading included' * result.is_first}",
    ]
    size = f"The texts of the hits have {count(result.tokens, 'token')}."
    return (
        f'<section class="sire sire-page"><h2>{escaped(heading or shorten(result.question, HEADING))}</h2>'
        f'<p class="meta" title="{size}">{escaped("; ".join(notes))}</p>'
        f"{warning_html(result.note)}{_extracts(result, name)}"
        f"{drawn}"
        f"{hits_html(result, name, address, target)}</section>"
    )


def _prefix(result: QueryResult) -> str:
    """Prefix of the ids of a result: several may stand on one page, also in a notebook."""
    return f"sire-{digest(result.question, result.search, result.filter, *(hit.id for hit in result.hits), size=4)}"


def region(
    picture: Picture, label: str, links: Mapping[str, str], name: str, *, moves: bool, fills: bool = True
) -> str:
    """A picture in a region that scrolls, with buttons for the page's script if it moves; a list if it is narrow."""
    svg = drawing(picture, links=links, name=name, expands=moves, fills=fills)
    buttons = "".join(
        f'<button type="button" data-zoom="{factor}" aria-label="{text}">{sign}</button>'
        for factor, sign, text in (
            ("1.4", "+", "Zoom in"),
            ("0.7", "\u2212", "Zoom out"),
            ("0", "All", "Whole picture"),
        )
    )
    size = _WIDTH_OF.search(svg)
    width = int(size[1]) if size else 0
    is_wide = width > (_WIDE if fills else _HALF)
    if moves and width > _ROOM:
        buttons += '<span class="meta further">The picture continues to the right: scroll, or press All.</span>'
    listed = "".join(_branch(branch, links, expands=moves) for branch in branches(picture))
    return (
        f'<div class="picture{" moves" if moves else ""}{" wide" if is_wide else ""}">{buttons if moves else ""}'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(label)}">{svg}</div>'
        f'<ul class="outline" aria-label="{escaped(label)}">{listed}</ul></div>'
        f"{legend(node.name_kind for node in picture.nodes)}"
    )


def left_out_html(picture: Picture, address: Callable[[str, str], str] | None, rest: str = "") -> str:
    """Number of nodes that are not drawn, with links to where they are listed.

    Args:
        picture: The picture.
        address: Returns the address of a node's page by its kind and id; None if there are no pages.
        rest: Address of the list of those that are neighbours of no node; empty for none.
    """
    nodes = {node.id: node for node in picture.nodes}
    parts = []
    for name, number in picture.not_drawn:
        node = nodes.get(name)
        text = f"{count(number, 'more neighbour')} of {node.label}" if node else count(number, "node")
        target = f"{address(node.kind, name)}#more" if node and address else "" if node else rest
        parts.append(f'<a href="{escaped(target)}">{escaped(text)}</a>' if target else escaped(text))
    return f'<p class="meta">Not drawn: {", ".join(parts)}</p>' if parts else ""


def legend(kinds: Iterable[str]) -> str:
    """What the marks and colours of some kinds of names mean; nothing for none."""
    known = set(kinds)
    if known <= {"", "name"}:  # one sign for names of which nothing is known says nothing
        return ""
    items = "".join(f"<li>{mark(kind, says=False)}{words}</li>" for kind, words in NAME_KINDS.items() if kind in known)
    return f'<ul class="legend" aria-label="Kinds of names">{items}</ul>' if items else ""


def mark(kind: str, *, says: bool = True) -> str:
    """The mark of a kind of names, in its colour; it says the kind, unless words beside it do."""
    said = f'role="img" aria-label="{NAME_KINDS[kind]}"' if says else 'aria-hidden="true"'
    return f'<svg class="mark is-{kind}" viewBox="0 0 10 10" {said}><path d="{_KINDS[kind][1]}"/></svg>'


def _branch(branch: Branch, links: Mapping[str, str], *, expands: bool) -> str:
    """A node with what it leads to as an item of a list, which a narrow window shows instead of a picture."""
    node = branch.node
    label = escaped(f"[{node.rank}] {node.label}" if node.rank else node.label)
    sign = mark(node.name_kind) if node.name_kind else ""
    named = f'<a href="{escaped(links[node.id])}">{label}</a>' if links.get(node.id) else f"<b>{label}</b>"
    text = f"<p>{escaped(node.text)}</p>" if node.text and node.text != node.label else ""
    more = (
        f'<button type="button" data-expand="{escaped(node.id)}" '
        f'aria-label="Show neighbours of {escaped(node.label)}">+</button>'
        if expands and node.kind != "question"
        else ""
    )
    below = "".join(_branch(other, links, expands=expands) for other in branch.below) + "".join(
        f"<li>{_why(link)}<div>\u2192 {escaped(other.label)}</div></li>" for link, other in branch.others
    )
    return (
        f'<li>{_why(branch.link)}<div class="node {_node_class(node)}"><div>{sign}{named}{text}</div>{more}</div>'
        f"{f'<ul>{below}</ul>' if below else ''}</li>"
    )


def _why(link: Link | None) -> str:
    reason = (link.label or link.reason) if link else ""
    return f"<small>{escaped(reason)}</small>" if reason else ""


def _node_class(node: Node) -> str:
    kind = node.kind if node.kind in ("question", "entity", "chunk") else "derived"
    return f"{kind}{f' is-{node.name_kind}' if node.name_kind else ''}{' hit' if node.rank else ''}"


def warning_html(note: str) -> str:
    """A warning above hits; nothing for none."""
    return f'<p role="note"><b>{escaped(note)}</b></p>' if note else ""


def _extracts(result: QueryResult, name: str) -> str:
    """The sentences that answer, each with a link to its hit."""
    sentences = "".join(
        f'<p>{highlighted(sentence.quoted, result.question)} <a href="#{name}-{sentence.hit}">[{sentence.hit}]</a></p>'
        for sentence in result.extracts
    )
    return f'<h3>{NEAREST}</h3><div class="text quotes">{sentences}</div>' if sentences else ""


def hits_html(
    result: QueryResult,
    name: str,
    address: Callable[[str, str], str] | None = None,
    target: Callable[[str, str], str] | None = None,
) -> str:
    """Hits with their texts and reasons as a list."""
    kinds = {node.id: node.name_kind for node in result.picture.nodes}
    items = (_hit(hit, result.question, kinds, name, address, target) for hit in result.hits)
    return f'<ol class="hits">{"".join(items)}</ol>'


def _hit(
    hit: ResultHit,
    question: str,
    kinds: Mapping[str, str],
    name: str,
    address: Callable[[str, str], str] | None,
    target: Callable[[str, str], str] | None,
) -> str:
    page = f", page {hit.page}" if hit.page else ""
    about = f"{kind_name(hit.kind)} from {hit.documents}{page}"
    score = f"Score {hit.score:.4f}; comparable with those of this question and recipe only."
    title = escaped(hit.name)
    if address is not None:
        title = f'<a href="{escaped(address(hit.kind, hit.id))}">{title}</a>'
    of_document = partial(target, hit.doc_ids[0]) if target and hit.doc_ids else None
    why = "".join(f"<li>{_reason(reason)}</li>" for reason in hit.reasons)
    over = {label: kinds.get(name, "") for reason in hit.reasons for name, label in reason.over}
    names = {name: over.get(name, "") for name in hit.names}
    return (
        f'<li id="{name}-{hit.rank}"><h3>[{hit.rank}] {title}</h3><p class="meta" title="{score}">{escaped(about)}</p>'
        f'{_folded(hit, question, names, of_document)}<ul class="why">{why}</ul></li>'
    )


def _folded(hit: ResultHit, question: str, names: Mapping[str, str], target: Callable[[str], str] | None) -> str:
    """The sentences of a hit that answer, and all of it behind a button; a short hit as a whole."""
    whole = markdown_html(hit.text, question, names, target)
    if len(hit.text) <= _SHORT_HIT:
        return whole
    sentences = snippet(without_sessions(hit.text), question, _SNIPPET, hit.led_by)
    return (
        f'<div class="fold"><div class="text short"><p>{highlighted(sentences, question, names)}</p></div>'
        f'<details><summary>Show all<span class="aside"> of hit {hit.rank}</span></summary>{whole}</details></div>'
    )


def _reason(reason: Reason) -> str:
    # The names of the question are in the note as it spells them, whatever passages call them.
    over = ", ".join(label for _, label in reason.over if label not in reason.note and reason.step != "question")
    said = _COSINE.sub(r"similarity to the question \1", reason.note)
    note = f": {escaped(said)}" if said else ""
    step = reason.step.split(":")[0]  # "vector:chunk" says to programs what kind of unit it was; the hit says it here
    return f"<b>{escaped(_STEPS.get(step, step))}</b>{note}{f' ({escaped(over)})' if over else ''}"
