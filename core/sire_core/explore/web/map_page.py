"""The page *Map*: the documents as points, topics as a list for those who do not see them, and a search in both."""

from __future__ import annotations

import asyncio
import json
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi.responses import JSONResponse
from nicegui import app, ui

from sire_core.explore.corpus_map import CorpusMap
from sire_core.explore.highlight import escaped
from sire_core.explore.result_page import warning_html
from sire_core.explore.short_titles import compact_titles, distinct_titles
from sire_core.explore.web.explorer import HITS, number_of
from sire_core.explore.web.fragments import address, link
from sire_core.explore.web.nicegui_pages import (
    frame,
    go_to,
    guarded,
    page_of,
    question_field,
    render_with_timeout,
    show_html,
)
from sire_core.search.unanswered import unanswered_note
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.explore.web.explorer import Explorer
    from sire_core.search.snapshot import SearchSnapshot

_TITLES, _MAX_MAP_TITLE_LETTERS = 100, 40
"""Points whose titles are asked for at once, and letters of a title on the map."""
_STYLE = """
.sire-map{position:relative;width:100%;padding:0;background:none}
.sire-map canvas{width:100%;height:min(68vh,780px);border:1px solid var(--edge);border-radius:8px;touch-action:none;
display:block;cursor:grab;background:var(--ground)}
.sire-map [role=group]{display:flex;flex-wrap:wrap;gap:8px;align-items:center;padding:8px 0}
.sire-map button,.sire-map select{font:inherit;color:var(--ink);background:var(--box);border:1px solid var(--line);
border-radius:6px;padding:2px 12px;min-height:32px}
.sire-map ul{display:flex;flex-wrap:wrap;gap:2px 14px;list-style:none;margin:0;padding:0;font-size:13px}
.sire-map i,[data-topic]{display:inline-block;width:10px;height:10px;margin-right:5px} .sire-map i{border-radius:50%}
[data-topic][hidden]{display:none}
.sire-map p{margin:0 0 6px;font-size:13px;color:var(--soft)}
.sire-map [role=tooltip]{position:absolute;max-width:220px;background:var(--box);border:1px solid var(--line);
border-radius:6px;padding:3px 8px;font-size:13px;pointer-events:none}"""
_KEYS = "Arrow keys move it, plus and minus zoom, 0 shows all of it. Its topics and their documents are listed below."


def register(explorer: Explorer) -> None:
    """Register the page and what its script asks for."""

    @page_of("/map")
    async def map_page(recipe: str = "", q: str = "") -> None:
        frame(explorer, "Map", "/map", q)
        script = files(__package__).joinpath("map.js").read_text(encoding="utf-8")
        ui.add_head_html(f"<style>{_STYLE}</style><script>{script}</script>")
        await render_with_timeout(lambda: _show(explorer, recipe, q))

    @app.get("/map/data")
    async def data(recipe: str = "") -> JSONResponse:
        snapshot = await explorer.snapshot(recipe)
        return JSONResponse(await asyncio.to_thread(lambda: CorpusMap.of(snapshot).data()))

    @app.get("/map/documents")
    async def documents(points: str, recipe: str = "") -> JSONResponse:
        snapshot = await explorer.snapshot(recipe)
        corpus_map = await asyncio.to_thread(CorpusMap.of, snapshot)
        numbers = [number_of(number) for number in points.split(",", _TITLES)[:_TITLES] if number.isdecimal()]
        if not all(number < len(corpus_map.documents) for number in numbers):
            return JSONResponse({"error": f"There are only {len(corpus_map.documents)} points."}, 404)
        return JSONResponse(await asyncio.to_thread(_documents, snapshot, corpus_map, numbers, recipe))


def _documents(
    snapshot: SearchSnapshot, corpus_map: CorpusMap, points: Sequence[int], recipe: str
) -> list[dict[str, object]]:
    """Titles of points and the addresses of their documents."""
    titled = [corpus_map.title(snapshot, point) for point in points]
    labels = compact_titles(snapshot, [title for _, title in titled], _MAX_MAP_TITLE_LETTERS)
    return [
        {"point": point, "title": title, "short": short, "address": address(recipe, "document", name)}
        for point, (name, title), short in zip(points, titled, labels, strict=True)
    ]


async def _show(explorer: Explorer, recipe: str, asked: str) -> None:
    snapshot = await explorer.snapshot(recipe)
    corpus_map = await asyncio.to_thread(CorpusMap.of, snapshot)

    async def find() -> None:
        found.clear()
        question = field.value or ""
        go_to("/map", {"q": question, "recipe": recipe}, f"{question or 'Map'} - {explorer.title}")
        with found:
            await guarded(lambda: _find(snapshot, corpus_map, question, recipe))

    async def clear() -> None:
        field.set_value("")
        await find()

    field = question_field("Question", asked, "Find", find, clear)
    found = ui.column().classes("sire-wide").props("role=status")
    ui.html(_map_html(len(corpus_map.documents), recipe), sanitize=False).classes("sire-wide")
    show_html(topics_html(corpus_map, recipe))
    ui.run_javascript("sireMap.start()")
    if asked:
        await find()


async def _find(snapshot: SearchSnapshot, corpus_map: CorpusMap, question: str, recipe: str) -> None:
    """Light up hits and the steps of their paths, and list them."""
    hits = await snapshot.asearch(question, HITS) if question.strip() else []
    points, steps = await asyncio.to_thread(corpus_map.walks, snapshot, hits)
    seen: dict[int, dict[str, Any]] = {}  # hits first, then what is passed on the way
    shown = [point for point in dict.fromkeys((*points, *chain(*steps))) if point >= 0]
    labels = compact_titles(snapshot, [corpus_map.title(snapshot, point)[1] for point in shown], _MAX_MAP_TITLE_LETTERS)
    for point, label in zip(shown, labels, strict=True):  # several hits of one document are one point
        ranks = [rank for rank, other in enumerate(points, 1) if other == point]
        seen[point] = {"point": point, "ranks": ranks, "title": label}
    found = {
        "hits": [one for one in seen.values() if one["ranks"]],
        "passed": [one for one in seen.values() if not one["ranks"]],
        "steps": steps,
    }
    ui.run_javascript(f"sireMap.find({json.dumps(found)})")
    if hits:
        titles = distinct_titles(snapshot, (hit.unit for hit in hits))
        named = [(hit.unit.id, title) for hit, title in zip(hits, titles, strict=True)]
        show_html(warning_html(unanswered_note(question, hits)) + _hits_html(named, question, recipe))


def _map_html(documents: int, recipe: str) -> str:
    here = urlencode({"recipe": recipe}, errors="replace")
    name = f"Map of {count(documents, 'document')}. {_KEYS}"
    buttons = "".join(
        f'<button type="button" value="{key}" aria-label="{label}">{text}</button>'
        for key, text, label in (("+", "+", "Zoom in"), ("-", "\u2212", "Zoom out"), ("0", "All", "Show all of it"))
    )
    return (
        f'<div class="sire sire-map" data-points="/map/data?{here}" data-documents="/map/documents?{here}">'
        f'<div role="group" aria-label="Map">{buttons}<label>Colour by <select></select></label><ul></ul></div>'
        "<p>Each point is a document; similar documents lie close together. Colour and mark show the topic, or what is "
        "chosen above.</p>"
        f'<canvas tabindex="0" role="application" aria-label="{escaped(name)}"></canvas>'
        '<div role="tooltip" hidden></div></div>'
    )


def topics_html(corpus_map: CorpusMap, recipe: str) -> str:
    """The topics as a list, each with a link to its documents."""
    items = []
    for topic, label in enumerate(corpus_map.labels):
        target = f"/browse?{urlencode({'topic': topic, 'recipe': recipe}, errors='replace')}"
        documents = count(int((corpus_map.topics == topic).sum()), "document")
        items.append(f"<li><i data-topic></i>{link(label, target)} <small>{documents}</small></li>")
    return f'<h2>Topics</h2><ul class="names">{"".join(items)}</ul>'


def _hits_html(hits: Sequence[tuple[str, str]], question: str, recipe: str) -> str:
    items = "".join(f"<li>{link(title, address(recipe, 'unit', name))}</li>" for name, title in hits)
    asked = urlencode({"q": question, "recipe": recipe, "k": len(hits)}, errors="replace")
    listed = f"<details><summary>{count(len(hits), 'hit')}</summary><ol>{items}</ol></details>"
    return f"{listed}<p>{link('How they were found', f'/?{asked}')}</p>"
