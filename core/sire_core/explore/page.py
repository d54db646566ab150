"""A result as an HTML page and its picture as SVG: both work offline, without a script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from sire_core.algorithms.pluralize import count
from sire_core.explore.highlight import escaped
from sire_core.explore.markdown import highlighted, markdown_html
from sire_core.explore.picture import WAYPOINT, Link, Node, Picture, kind_name, layout
from sire_core.types import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sire_core.explore.paths import Reason
    from sire_core.explore.query_result import QueryResult, ResultHit


_WIDTHS = {"question": 190, "entity": 140, WAYPOINT: 190}
_WIDTH = 210
_GAP = 32
_BETWEEN = 18
_MARGIN = 12
_LINE = 15
_PADDING = 9
_SIZE, _SMALL, _SMALL_LINE = 12, 11, 13
_BOLD = 1.1
"""How much wider bold letters are."""
_LETTERS = {"ijl .,:;'|!`": 0.4, 'frtI()[]{}/\\"-': 0.48, "mwMW@%&": 1.0}
"""Widths of letters in a wide font, in parts of its size: no text may leave its box, whichever font a page has."""
_ABOVE = 6
"""Space between the text of a link and its line."""
_LABEL_LINES, _TEXT_LINES = 2, 4
_MOST = 1.4
"""Maximum scale of a picture in a wide window; in a narrow or low one all of it is shown."""

_COLOURS = """--ground:#fff;--ink:#1a1d21;--soft:#5a6068;--line:#6b7480;--box:#f6f8fa;--edge:#c3cad2;--ask:#e3edfb;
--askline:#2a5db0;--name:#fdf0d5;--nameline:#8f5f00;--made:#e6f4e8;--madeline:#2b6e38;--mark:#ffe79a;--accent:#1d4f9e"""
_DARK = """--ground:#14171b;--ink:#e8eaed;--soft:#adb5bf;--line:#98a2ae;--box:#1e2329;--edge:#434c57;--ask:#1d2c45;
--askline:#8ab4f8;--name:#3a2e12;--nameline:#f0c561;--made:#17301d;--madeline:#8fd19e;--mark:#5c4a00;--accent:#8ab4f8"""

STYLE = f"""
.sire{{{_COLOURS};color:var(--ink);background:var(--ground);font:15px/1.5 system-ui,sans-serif}}
@media (prefers-color-scheme: dark){{.sire{{{_DARK}}}}}
svg.sire text{{fill:var(--ink);font:12px system-ui,sans-serif}}
svg.sire .label{{font-weight:600}}
svg.sire .small{{fill:var(--soft);font-size:11px;paint-order:stroke;stroke:var(--ground);stroke-width:4px}}
svg.sire path{{fill:none;stroke:var(--line);stroke-width:1.3}}
svg.sire .head{{fill:var(--line);stroke:none}}
svg.sire rect{{fill:var(--box);stroke:var(--edge)}}
svg.sire .question rect{{fill:var(--ask);stroke:var(--askline)}}
svg.sire .entity rect{{fill:var(--name);stroke:var(--nameline)}}
svg.sire .derived rect{{fill:var(--made);stroke:var(--madeline);stroke-dasharray:5 3}}
svg.sire .hit rect{{stroke:var(--accent);stroke-width:2}}
svg.sire .more circle{{fill:var(--ground);stroke:var(--line)}} svg.sire .more{{cursor:pointer}}
svg.sire a:focus rect,svg.sire a:hover rect{{stroke-width:3;stroke:var(--accent)}}
""".strip()
"""Styles inside an element of the class `sire`; the contrast of colours is at least 4.5 to 1."""

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
.sire-page .scroll svg{{display:block;width:100%;height:auto;max-height:78vh}}
@media (max-width:600px){{.sire-page .moves svg{{min-height:220px}}}}
.sire-page .picture button{{font:inherit;min-width:34px;min-height:28px;margin-right:6px;color:var(--ink);
background:var(--box);border:1px solid var(--line);border-radius:6px}}
.sire-page ol.hits{{list-style:none;padding:0;margin:0}}
.sire-page ol.hits>li{{border:1px solid var(--edge);border-radius:8px;padding:12px 14px;margin:10px 0}}
.sire-page li:target{{outline:3px solid var(--accent)}}
.sire-page .text{{margin:8px 0;max-width:80ch}}
.sire-page .text.plain,.sire-page .text pre{{white-space:pre-wrap}}
.sire-page .text p,.sire-page .text ul,.sire-page .text ol{{margin:0 0 8px}}
.sire-page .text p.heading{{font-weight:600}}
.sire-page .text ul,.sire-page .text ol{{padding-left:22px}} .sire-page .text pre{{background:var(--box);padding:8px}}
.sire-page .text table{{border-collapse:collapse;display:block;overflow-x:auto}}
.sire-page .text td,.sire-page .text th{{border:1px solid var(--edge);padding:2px 8px;text-align:left}}
.sire-page ul.why{{margin:4px 0 0;padding-left:20px;font-size:13px}}
.sire-page mark{{background:var(--mark);color:inherit;padding:0 1px;border-radius:2px}}
.sire-page mark.name{{background:var(--name);box-shadow:inset 0 -2px var(--nameline)}}
.sire-page a{{color:var(--accent);text-decoration:underline}} .sire-page svg a{{text-decoration:none}}"""
"""Styles inside an element of the classes `sire sire-page`."""
# Nothing may be loaded and nothing may run, even if something were not escaped.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_BODY = "body{margin:0;background:#fff}@media (prefers-color-scheme: dark){body{background:#14171b}}"


_RULE = re.compile(r"([=\-_*~#.])\1{3,}")
"""A line that documents draw out of signs."""
_PART = re.compile(r"[^\x2d/_.:]+[\x2d/_.:]*|[\x2d/_.:]+")
"""Part of a long word, such as a path, after which a line may end."""


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
) -> str:
    """A picture as an SVG element.

    Args:
        picture: What is drawn.
        links: Addresses of nodes, by id.
        style: Whether its style is part of it, for a file of its own.
        name: Prefix of its ids, unique on a page.
        expands: Whether every node has a button that asks for its neighbours (`data-expand`).
    """
    columns, routes = _boxes(picture)
    boxes = {box.node.id: box for column in columns for box in column}
    width = max((box.x + box.width for box in boxes.values()), default=0) + _MARGIN
    height = max((box.y + box.height for box in boxes.values()), default=0) + _MARGIN
    edges = {box.node.id: max(other.x + other.width for other in column) for column in columns for box in column}
    lines = [_line(link, [boxes[stop] for stop in stops], edges) for link, stops in routes]
    nodes = [
        _node(box, (links or {}).get(box.node.id, ""), expands) for box in boxes.values() if box.node.kind != WAYPOINT
    ]
    body = (f"<style>{STYLE}</style>" if style else "") + f"<title>{escaped(picture.title)}</title>"
    scale = "" if style else f'style="max-width:{_MOST * width:.0f}px" '
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sire" role="group" aria-label="{escaped(picture.title)}" '
        f'{scale}width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">{body}'
        f'<defs><marker id="{name}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        f'<g marker-end="url(#{name}-head)">{"".join(lines)}</g>{"".join(nodes)}</svg>'
    )


def _boxes(picture: Picture) -> tuple[list[list[_Box]], list[tuple[Link, list[str]]]]:
    """Boxes in columns, each near the height of those that lead to it, and what every link passes."""
    layers, routes = layout(picture)
    leading: dict[str, list[str]] = {}
    for _, stops in routes:
        for stop, other in pairwise(stops):
            leading.setdefault(other, []).append(stop)
            leading.setdefault(stop, []).append(other)
    middles: dict[str, float] = {}
    columns: list[list[_Box]] = []
    x = float(_MARGIN)
    for layer in filter(None, layers):
        column, wanted, y = list[_Box](), list[float](), 0.0
        for box in map(_sized, layer):
            column.append(replace(box, x=x, y=y))
            known = [middles[name] for name in leading.get(box.node.id, ()) if name in middles]
            wanted += [sum(known) / len(known) - box.height / 2 - y] if known else []
            y += box.height + _BETWEEN
        shift = sum(wanted) / len(wanted) if wanted else -y / 2
        columns.append([replace(box, y=box.y + shift) for box in column])
        middles |= {box.node.id: box.y + box.height / 2 for box in columns[-1]}
        x += max(box.width for box in column) + _GAP
    top = min((box.y for column in columns for box in column), default=0.0) - _MARGIN
    return [[replace(box, y=box.y - top) for box in column] for column in columns], routes


def _sized(node: Node) -> _Box:
    if node.kind == WAYPOINT:
        text = _lines(node.label, _WIDTHS[WAYPOINT] / _SMALL, _TEXT_LINES)
        width = max(map(_width, text), default=0) * _SMALL
        return _Box(node, 0, 0, width, len(text) * _SMALL_LINE + _ABOVE, (), text)
    width = _WIDTHS.get(node.kind, _WIDTH)
    room = (width - 2 * _PADDING) / _SIZE
    label = _lines(f"[{node.rank}] {node.label}" if node.rank else node.label, room / _BOLD, _LABEL_LINES)
    text = _lines(node.text, room, _TEXT_LINES) if node.text and node.text != node.label else ()
    return _Box(node, 0, 0, width, (len(label) + len(text)) * _LINE + 2 * _PADDING - 2, label, text)


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
    for part in [word] if _width(word) <= room else _PART.findall(word):
        rest = part
        while _width(rest) > room:  # a text without spaces
            head = _fitting(rest, room)
            yield head
            rest = rest[len(head) :]
        yield rest


def _width(text: str) -> float:
    """Width of a text in parts of the size of its font."""
    return sum(map(_letter_width, text))


@lru_cache(1 << 12)
def _letter_width(letter: str) -> float:
    known = next((width for letters, width in _LETTERS.items() if letter in letters), 0.0)
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
    kind = node.kind if node.kind in ("question", "entity", "chunk") else "derived"
    radius = 14 if kind == "entity" else 6
    x, y = box.x + _PADDING, box.y + _PADDING + 10
    texts = [_text(line, x, y + i * _LINE, "label") for i, line in enumerate(box.label)]
    texts += [_text(line, x, y + (len(box.label) + i) * _LINE, "") for i, line in enumerate(box.text)]
    whole = f"{kind_name(node.kind)}: {node.label}" + (f". {node.text}" if node.text else "")
    markup = (
        f'<g class="{kind}{" hit" if node.rank else ""}"><title>{escaped(whole)}</title>'
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="{radius}"/>'
        f"{''.join(texts)}</g>"
    )
    linked = f'<a href="{escaped(target)}">{markup}</a>' if target else markup
    if not expands or kind == "question":
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
    if len(results) == 1:
        content = parts(results[0])
    else:
        sides = "".join(parts(result, heading=result.search) for result in results)
        content = (
            f'<div class="sire sire-page"><h1>{escaped(results[0].question)}</h1>{comparison_html(*results[:2])}</div>'
            f"{sides}"
        )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><title>{escaped(results[0].question)}</title><style>{_BODY}\n{PAGE_STYLE}</style></head>'
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
    titles = {hit.id: hit.title or hit.id for result in (one, other) for hit in result.hits}
    for name, title in titles.items():
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
    left_out = result.picture.left_out
    label = f"The paths to the hits of {result.search}"
    drawn = region(result.picture, label, links, name, moves=address is not None) if result.hits else ""
    notes = [
        count(len(result.hits), "hit"),
        f"recipe {result.search}",
        *([f"filter {result.filter}"] if result.filter else []),
        f"{result.units:,} units searched in {result.seconds * 1000:.0f} ms{', loading included' * result.is_first}",
        count(result.tokens, "token"),
        *([f"{count(left_out, 'node')} not drawn"] if left_out else []),
    ]
    return (
        f'<section class="sire sire-page"><h2>{escaped(heading or result.question)}</h2>'
        f'<p class="meta">{escaped("; ".join(notes))}</p>'
        f"{f'<p><b>{escaped(result.note)}</b></p>' if result.note else ''}{_extracts(result, name)}"
        f"{drawn}"
        f"{hits_html(result, name, address, target)}</section>"
    )


def _prefix(result: QueryResult) -> str:
    """Prefix of the ids of a result: several may stand on one page, also in a notebook."""
    return f"sire-{digest(result.question, result.search, result.filter, *(hit.id for hit in result.hits), size=4)}"


def region(picture: Picture, label: str, links: Mapping[str, str], name: str, *, moves: bool) -> str:
    """A picture in a region that scrolls; where it moves, with buttons for the script of the page."""
    svg = drawing(picture, links=links, name=name, expands=moves)
    buttons = "".join(
        f'<button type="button" data-zoom="{factor}" aria-label="{text}">{sign}</button>'
        for factor, sign, text in (
            ("1.4", "+", "Zoom in"),
            ("0.7", "\u2212", "Zoom out"),
            ("0", "All", "Whole picture"),
        )
    )
    return (
        f'<div class="picture{" moves" if moves else ""}">{buttons if moves else ""}'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(label)}">{svg}</div></div>'
    )


def _extracts(result: QueryResult, name: str) -> str:
    """The sentences that answer, each with a link to its hit."""
    sentences = "".join(
        f'<p>{highlighted(sentence.text, result.question)} <a href="#{name}-{sentence.hit}">[{sentence.hit}]</a></p>'
        for sentence in result.extracts
    )
    return f'<h3>Extracted, word for word</h3><div class="text">{sentences}</div>' if sentences else ""


def hits_html(
    result: QueryResult,
    name: str,
    address: Callable[[str, str], str] | None = None,
    target: Callable[[str, str], str] | None = None,
) -> str:
    """Hits with their texts and reasons as a list."""
    items = (_hit(hit, result.question, name, address, target) for hit in result.hits)
    return f'<ol class="hits">{"".join(items)}</ol>'


def _hit(
    hit: ResultHit,
    question: str,
    name: str,
    address: Callable[[str, str], str] | None,
    target: Callable[[str, str], str] | None,
) -> str:
    documents = ", ".join(hit.doc_ids[:6]) + (f" and {len(hit.doc_ids) - 6} more" if len(hit.doc_ids) > 6 else "")
    page = f", page {hit.page}" if hit.page else ""
    about = f"{kind_name(hit.kind)}, score {hit.score:.4f}, from {documents}{page}"
    title = escaped(hit.title or f"{kind_name(hit.kind)} {hit.id}")
    if address is not None:
        title = f'<a href="{escaped(address(hit.kind, hit.id))}">{title}</a>'
    of_document = partial(target, hit.doc_ids[0]) if target and hit.doc_ids else None
    why = "".join(f"<li>{_reason(reason)}</li>" for reason in hit.reasons)
    return (
        f'<li id="{name}-{hit.rank}"><h3>[{hit.rank}] {title}</h3><p class="meta">{escaped(about)}</p>'
        f'{markdown_html(hit.text, question, hit.names, of_document)}<ul class="why">{why}</ul></li>'
    )


def _reason(reason: Reason) -> str:
    # The names of the question are in the note as it spells them, whatever passages call them.
    over = ", ".join(label for _, label in reason.over if label not in reason.note and reason.step != "question")
    note = f": {escaped(reason.note)}" if reason.note else ""
    step = reason.step.split(":")[0]  # "vector:chunk" says to programs what kind of unit it was; the hit says it here
    return f"<b>{escaped(step)}</b>{note}{f' ({escaped(over)})' if over else ''}"
