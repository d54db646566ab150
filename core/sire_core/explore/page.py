"""One question as HTML: a page that works offline, and the part of it that notebooks display. No script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.algorithms.wording import count
from sire_core.explore.highlight import escaped
from sire_core.explore.picture import kind_name
from sire_core.explore.svg import STYLE, drawing
from sire_core.types import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sire_core.explore.highlight import Piece
    from sire_core.explore.paths import Reason
    from sire_core.explore.query_result import QueryResult, ResultHit

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
.sire-page .text{{white-space:pre-wrap;overflow-wrap:anywhere;margin:8px 0;max-width:80ch}}
.sire-page ul.why{{margin:4px 0 0;padding-left:20px;font-size:13px;overflow-wrap:anywhere}}
.sire-page mark{{background:var(--mark);color:inherit;padding:0 1px;border-radius:2px}}
.sire-page mark.name{{background:var(--name);box-shadow:inset 0 -2px var(--nameline)}}
.sire-page a{{color:var(--accent);text-decoration:underline}} .sire-page svg a{{text-decoration:none}}"""
"""Of a page and of its parts, inside an element of the classes `sire sire-page`."""

# Nothing may be loaded and nothing may run, even if something were not escaped.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_BODY = "body{margin:0;background:#fff}@media (prefers-color-scheme: dark){body{background:#14171b}}"


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
    """The same as part of another page, for example of a notebook."""
    return f"<style>{PAGE_STYLE}</style>{parts(result)}"


def parts(result: QueryResult, address: Callable[[str, str], str] | None = None) -> str:
    """The same without its style."""
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
        f'<p class="meta">{escaped("; ".join(notes))}</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="The paths to the hits of '
        f'{escaped(result.recipe)}">'
        f"{drawing(result.picture, links=links, name=name)}</div>{hits_html(result.hits, name, address)}</section>"
    )


def hits_html(hits: Sequence[ResultHit], name: str, address: Callable[[str, str], str] | None = None) -> str:
    """Hits with their texts and reasons as a list."""
    return f'<ol class="hits">{"".join(_hit(hit, name, address) for hit in hits)}</ol>'


def _hit(hit: ResultHit, name: str, address: Callable[[str, str], str] | None) -> str:
    documents = ", ".join(hit.doc_ids[:6]) + (f" and {len(hit.doc_ids) - 6} more" if len(hit.doc_ids) > 6 else "")
    about = f"{kind_name(hit.kind)}, score {hit.score:.4f}, from {documents}"
    title = escaped(hit.title or f"{kind_name(hit.kind)} {hit.id}")
    if address is not None:
        title = f'<a href="{escaped(address(hit.kind, hit.id))}">{title}</a>'
    why = "".join(f"<li>{_reason(reason)}</li>" for reason in hit.reasons)
    return (
        f'<li id="{name}-{hit.rank}"><h3>[{hit.rank}] {title}</h3><p class="meta">{escaped(about)}</p>'
        f'<div class="text">{text_html(hit.pieces)}</div><ul class="why">{why}</ul></li>'
    )


def text_html(pieces: Sequence[Piece]) -> str:
    """A text with its marks."""
    marks = {"": "{}", "word": "<mark>{}</mark>", "name": '<mark class="name">{}</mark>'}
    return "".join(marks[kind].replace("{}", escaped(text)) for text, kind in pieces)


def _reason(reason: Reason) -> str:
    over = ", ".join(label for _, label in reason.over if label not in reason.note)
    note = f": {escaped(reason.note)}" if reason.note else ""
    step = reason.step.split(":")[0]  # "vector:chunk" says to programs what kind of unit it was; the hit says it here
    return f"<b>{escaped(step)}</b>{note}{f' ({escaped(over)})' if over else ''}"
