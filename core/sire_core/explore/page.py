"""A result as an HTML page and its picture as SVG: both work offline, without a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from sire_core.algorithms.pluralize import count
from sire_core.explore.highlight import escaped
from sire_core.explore.markdown import highlighted, markdown_html
from sire_core.explore.picture import Link, Node, Picture, columns, kind_name
from sire_core.types import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sire_core.explore.paths import Reason
    from sire_core.explore.query_result import QueryResult, ResultHit


_WIDTHS = {"question": 190, "entity": 140}
_WIDTH = 210
_GAP = 84
_BETWEEN = 18
_MARGIN = 12
_LINE = 15
_PADDING = 9
_LETTER, _BOLD = 6.6, 7.4
_LABEL_LINES, _TEXT_LINES = 2, 4
_LEAST = 0.75
"""Minimum scale of a picture in a narrow window; below it, the picture scrolls."""

_COLOURS = """--ground:#fff;--ink:#1a1d21;--soft:#5a6068;--line:#6b7480;--box:#f6f8fa;--edge:#c3cad2;--ask:#e3edfb;
--askline:#2a5db0;--name:#fdf0d5;--nameline:#8f5f00;--made:#e6f4e8;--madeline:#2b6e38;--mark:#ffe79a;--accent:#1d4f9e"""
_DARK = """--ground:#14171b;--ink:#e8eaed;--soft:#adb5bf;--line:#98a2ae;--box:#1e2329;--edge:#434c57;--ask:#1d2c45;
--askline:#8ab4f8;--name:#3a2e12;--nameline:#f0c561;--made:#17301d;--madeline:#8fd19e;--mark:#5c4a00;--accent:#8ab4f8"""

STYLE = f"""
.sire{{{_COLOURS};color:var(--ink);background:var(--ground);font:15px/1.5 system-ui,sans-serif}}
@media (prefers-color-scheme: dark){{.sire{{{_DARK}}}}}
.sire svg text{{fill:var(--ink);font:12px system-ui,sans-serif}}
.sire svg .label{{font-weight:600}}
.sire svg .small{{fill:var(--soft);font-size:11px;paint-order:stroke;stroke:var(--ground);stroke-width:4px}}
.sire svg path{{fill:none;stroke:var(--line);stroke-width:1.3}}
.sire svg .head{{fill:var(--line);stroke:none}}
.sire svg rect{{fill:var(--box);stroke:var(--edge)}}
.sire svg .question rect{{fill:var(--ask);stroke:var(--askline)}}
.sire svg .entity rect{{fill:var(--name);stroke:var(--nameline)}}
.sire svg .derived rect{{fill:var(--made);stroke:var(--madeline);stroke-dasharray:5 3}}
.sire svg .hit rect{{stroke:var(--accent);stroke-width:2}}
.sire svg a:focus rect,.sire svg a:hover rect{{stroke-width:3;stroke:var(--accent)}}
""".strip()
"""Styles inside an element of the class `sire`; the contrast of colours is at least 4.5 to 1."""

PAGE_STYLE = f"""{STYLE}
.sire-page{{padding:16px 20px;border-radius:8px;overflow-wrap:anywhere}}
.sire-page h2{{font-size:20px;margin:0 0 4px;line-height:1.3}}
.sire-page h3{{font-size:16px;margin:0;line-height:1.3}}
.sire-page h2,.sire-page h3{{font-weight:600;letter-spacing:0}}
.sire-page .meta{{color:var(--soft);margin:0 0 10px;font-size:13px}}
.sire-page .scroll{{overflow-x:auto;border:1px solid var(--edge);border-radius:8px;margin:12px 0}}
.sire-page .scroll svg{{display:block;max-width:100%;height:auto}}
.sire-page ol.hits{{list-style:none;padding:0;margin:0}}
.sire-page ol.hits>li{{border:1px solid var(--edge);border-radius:8px;padding:12px 14px;margin:10px 0}}
.sire-page li:target{{outline:3px solid var(--accent)}}
.sire-page .text{{overflow-wrap:anywhere;margin:8px 0;max-width:80ch}}
.sire-page .text.plain,.sire-page .text pre{{white-space:pre-wrap}}
.sire-page .text p,.sire-page .text ul,.sire-page .text ol{{margin:0 0 8px}}
.sire-page .text p.heading{{font-weight:600}}
.sire-page .text ul,.sire-page .text ol{{padding-left:22px}} .sire-page .text pre{{background:var(--box);padding:8px}}
.sire-page .text table{{border-collapse:collapse;display:block;overflow-x:auto}}
.sire-page .text td,.sire-page .text th{{border:1px solid var(--edge);padding:2px 8px;text-align:left}}
.sire-page ul.why{{margin:4px 0 0;padding-left:20px;font-size:13px;overflow-wrap:anywhere}}
.sire-page mark{{background:var(--mark);color:inherit;padding:0 1px;border-radius:2px}}
.sire-page mark.name{{background:var(--name);box-shadow:inset 0 -2px var(--nameline)}}
.sire-page a{{color:var(--accent);text-decoration:underline}} .sire-page svg a{{text-decoration:none}}"""
"""Styles inside an element of the classes `sire sire-page`."""
# Nothing may be loaded and nothing may run, even if something were not escaped.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_BODY = "body{margin:0;background:#fff}@media (prefers-color-scheme: dark){body{background:#14171b}}"


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


def drawing(picture: Picture, *, links: Mapping[str, str] | None = None, style: bool = False, name: str = "p") -> str:
    """A picture as an SVG element."""
    boxes = _boxes(picture)
    width = max((box.x + box.width for box in boxes.values()), default=0) + _MARGIN
    height = max((box.y + box.height for box in boxes.values()), default=0) + _MARGIN
    lines = [_line(link, boxes[link.source], boxes[link.target]) for link in picture.links]
    nodes = [_node(box, (links or {}).get(box.node.id, "")) for box in boxes.values()]
    body = (f"<style>{STYLE}</style>" if style else "") + f"<title>{escaped(picture.title)}</title>"
    least = "" if style else f'style="min-width:{_LEAST * width:.0f}px" '
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sire" role="group" aria-label="{escaped(picture.title)}" '
        f'{least}width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">{body}'
        f'<defs><marker id="{name}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        f'<g marker-end="url(#{name}-head)">{"".join(lines)}</g>{"".join(nodes)}</svg>'
    )


def _boxes(picture: Picture) -> dict[str, _Box]:
    node_columns = columns(picture)
    sized = [[_sized(node) for node in column] for column in node_columns]
    tallest = max((_height(column) for column in sized), default=0)
    boxes: dict[str, _Box] = {}
    x = float(_MARGIN)
    for column in sized:
        y = _MARGIN + (tallest - _height(column)) / 2
        for box in column:
            boxes[box.node.id] = _Box(box.node, x, y, box.width, box.height, box.label, box.text)
            y += box.height + _BETWEEN
        x += max((box.width for box in column), default=0) + _GAP
    return boxes


def _height(column: list[_Box]) -> float:
    return sum(box.height for box in column) + _BETWEEN * (len(column) - 1)


def _sized(node: Node) -> _Box:
    width = _WIDTHS.get(node.kind, _WIDTH)
    room = width - 2 * _PADDING
    label = _lines(f"[{node.rank}] {node.label}" if node.rank else node.label, int(room / _BOLD), _LABEL_LINES)
    text = _lines(node.text, int(room / _LETTER), _TEXT_LINES) if node.text and node.text != node.label else ()
    return _Box(node, 0, 0, width, (len(label) + len(text)) * _LINE + 2 * _PADDING - 2, label, text)


def _lines(text: str, letters: int, max_lines: int) -> tuple[str, ...]:
    """A text in lines of limited length; wide letters count twice, long words are cut."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        while True:
            longer = f"{line} {word}" if line else word
            if _broad(longer) <= letters:
                line = longer
                break
            if line:
                lines.append(line)
                line = ""
            else:
                head = _fitting(word, letters)
                lines.append(head)
                word = word[len(head) :]  # noqa: PLW2901 - what is left of it
            if len(lines) == max_lines:
                return (*lines[:-1], f"{_fitting(lines[-1], letters - 1)}\u2026")
    return (*lines, line) if line else tuple(lines)


def _broad(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _fitting(text: str, letters: int) -> str:
    end = 0
    width = 0
    for letter in text:
        width += _broad(letter)
        if width > letters and end:
            break
        end += 1
    return text[:end]


def _node(box: _Box, target: str) -> str:
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
    return f'<a href="{escaped(target)}">{markup}</a>' if target else markup


def _text(line: str, x: float, y: float, kind: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}"{f" class={kind!r}" if kind else ""}>{escaped(line)}</text>'


def _line(link: Link, source: _Box, target: _Box) -> str:
    """A curve between two boxes; within a column, and backwards, it bends around the right."""
    y1, y2 = source.y + source.height / 2, target.y + target.height / 2
    x1 = source.x + source.width
    if target.x > source.x:
        x2 = target.x
        bend = (x2 - x1) / 2
        curve = f"M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
        x, y = x2 - _GAP / 2, y1 + (y2 - y1) * (1 - _GAP / 2 / (x2 - x1)) - 4
    else:
        x2 = target.x + target.width
        out = max(x1, x2) + _GAP / 2
        curve = f"M{x1:.0f} {y1:.0f}C{out:.0f} {y1:.0f} {out:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
        x, y = out - 8, (y1 + y2) / 2
    reason = f"<title>{escaped(link.reason)}</title>" if link.reason else ""
    label = f'<text class="small" text-anchor="middle" x="{x:.0f}" y="{y:.0f}">{escaped(link.label)}</text>'
    return f'<g>{reason}<path d="{curve}"/>{label if link.label else ""}</g>'


def page(result: QueryResult) -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><title>{escaped(result.question)}</title><style>{_BODY}\n{PAGE_STYLE}</style></head>'
        f"<body><main>{parts(result)}</main></body></html>\n"
    )


def fragment(result: QueryResult) -> str:
    """The part of a page for notebooks."""
    return f"<style>{PAGE_STYLE}</style>{parts(result)}"


def parts(result: QueryResult, address: Callable[[str, str], str] | None = None) -> str:
    """The part of a page without its style."""
    # Several of these may stand on one page, in a notebook: their ids must differ.
    name = f"sire-{digest(result.question, result.recipe, result.filter, *(hit.id for hit in result.hits), size=4)}"
    links = {hit.id: f"#{name}-{hit.rank}" for hit in result.hits}
    if address is not None:
        others = [node for node in result.picture.nodes if node.kind != "question" and node.id not in links]
        links |= {node.id: address(node.kind, node.id) for node in others}
    left_out = result.picture.left_out
    notes = [
        count(len(result.hits), "hit"),
        f"recipe {result.recipe}",
        *([f"filter {result.filter}"] if result.filter else []),
        f"{result.units:,} units searched in {result.seconds * 1000:.0f} ms",
        count(result.tokens, "token"),
        *([f"{count(left_out, 'node')} not drawn"] if left_out else []),
    ]
    return (
        f'<section class="sire sire-page"><h2>{escaped(result.question)}</h2>'
        f'<p class="meta">{escaped("; ".join(notes))}</p>{_extracts(result, name)}'
        '<div class="scroll" tabindex="0" role="region" aria-label="The paths to the hits of '
        f'{escaped(result.recipe)}">'
        f"{drawing(result.picture, links=links, name=name)}</div>{hits_html(result, name, address)}</section>"
    )


def _extracts(result: QueryResult, name: str) -> str:
    """The sentences that answer, each with a link to its hit."""
    sentences = "".join(
        f'<p>{highlighted(sentence.text, result.question)} <a href="#{name}-{sentence.hit}">[{sentence.hit}]</a></p>'
        for sentence in result.extracts
    )
    return f'<h3>Extracted, word for word</h3><div class="text">{sentences}</div>' if sentences else ""


def hits_html(result: QueryResult, name: str, address: Callable[[str, str], str] | None = None) -> str:
    """Hits with their texts and reasons as a list."""
    return f'<ol class="hits">{"".join(_hit(hit, result.question, name, address) for hit in result.hits)}</ol>'


def _hit(hit: ResultHit, question: str, name: str, address: Callable[[str, str], str] | None) -> str:
    documents = ", ".join(hit.doc_ids[:6]) + (f" and {len(hit.doc_ids) - 6} more" if len(hit.doc_ids) > 6 else "")
    about = f"{kind_name(hit.kind)}, score {hit.score:.4f}, from {documents}"
    title = escaped(hit.title or f"{kind_name(hit.kind)} {hit.id}")
    if address is not None:
        title = f'<a href="{escaped(address(hit.kind, hit.id))}">{title}</a>'
    why = "".join(f"<li>{_reason(reason)}</li>" for reason in hit.reasons)
    return (
        f'<li id="{name}-{hit.rank}"><h3>[{hit.rank}] {title}</h3><p class="meta">{escaped(about)}</p>'
        f'{markdown_html(hit.text, question, hit.names)}<ul class="why">{why}</ul></li>'
    )


def _reason(reason: Reason) -> str:
    over = ", ".join(label for _, label in reason.over if label not in reason.note)
    note = f": {escaped(reason.note)}" if reason.note else ""
    step = reason.step.split(":")[0]  # "vector:chunk" says to programs what kind of unit it was; the hit says it here
    return f"<b>{escaped(step)}</b>{note}{f' ({escaped(over)})' if over else ''}"
