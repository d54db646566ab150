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
from sire_core.explore.result_page import link, warning_html
from sire_core.explore.short_titles import compact_titles, distinct_titles
from sire_core.explore.templates import render
from sire_core.explore.web.explorer import HITS, number_of
from sire_core.explore.web.fragments import address, address_of
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

    from markupsafe import Markup

    from sire_core.explore.web.explorer import Explorer
    from sire_core.search.snapshot import SearchSnapshot

_MAX_TITLES, _MAX_MAP_TITLE_LETTERS = 100, 40
"""Points whose titles are asked for at once, and letters of a title on the map."""


def register(explorer: Explorer) -> None:
    """Register the page and what its script asks for."""

    @page_of("/map")
    async def map_page(recipe: str = "", q: str = "") -> None:
        frame(explorer, "Map", "/map", q)
        script = files(__package__).joinpath("map.js").read_text(encoding="utf-8")
        ui.add_head_html(f"<script>{script}</script>")
        await render_with_timeout(lambda: _show(explorer, recipe, q))

    @app.get("/map/data")
    async def data(recipe: str = "") -> JSONResponse:
        snapshot = await explorer.snapshot(recipe)
        return JSONResponse(await asyncio.to_thread(lambda: CorpusMap.of(snapshot).data()))

    @app.get("/map/documents")
    async def documents(points: str, recipe: str = "") -> JSONResponse:
        snapshot = await explorer.snapshot(recipe)
        corpus_map = await asyncio.to_thread(CorpusMap.of, snapshot)
        numbers = [number_of(number) for number in points.split(",", _MAX_TITLES)[:_MAX_TITLES] if number.isdecimal()]
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


async def _show(explorer: Explorer, recipe: str, question_of_address: str) -> None:
    snapshot = await explorer.snapshot(recipe)
    corpus_map = await asyncio.to_thread(CorpusMap.of, snapshot)

    async def find() -> None:
        hits_column.clear()
        question = field.value or ""
        go_to("/map", {"q": question, "recipe": recipe}, f"{question or 'Map'} - {explorer.title}")
        with hits_column:
            await guarded(lambda: _find(snapshot, corpus_map, question, recipe))

    async def clear() -> None:
        field.set_value("")
        await find()

    field = question_field("Question", question_of_address, "Find", find, clear)
    hits_column = ui.column().classes("sire-wide").props("role=status")
    here = urlencode({"recipe": recipe}, errors="replace")
    ui.html(render("explorer", "map", len(corpus_map.documents), here), sanitize=False).classes("sire-wide")
    show_html(topics_html(corpus_map, recipe))
    ui.run_javascript("sireMap.start()")
    if question_of_address:
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
    lit = {
        "hits": [one for one in seen.values() if one["ranks"]],
        "passed": [one for one in seen.values() if not one["ranks"]],
        "steps": steps,
    }
    ui.run_javascript(f"sireMap.find({json.dumps(lit)})")
    if hits:
        titles = distinct_titles(snapshot, (hit.unit for hit in hits))
        named = [(hit.unit.id, title) for hit, title in zip(hits, titles, strict=True)]
        show_html(warning_html(unanswered_note(question, hits)) + _hits_html(named, question, recipe))


def topics_html(corpus_map: CorpusMap, recipe: str) -> Markup:
    """The topics as a list, each with a link to its documents."""
    topics = [
        (link(label, address_of("/browse", topic=topic, recipe=recipe)), int((corpus_map.topics == topic).sum()))
        for topic, label in enumerate(corpus_map.labels)
    ]
    return render("explorer", "topics", topics)


def _hits_html(hits: Sequence[tuple[str, str]], question: str, recipe: str) -> Markup:
    items = [link(title, address(recipe, "unit", name)) for name, title in hits]
    way = link("How they were found", address_of("/", q=question, recipe=recipe, k=len(hits)))
    return render("explorer", "found", render("explorer", "hits", count(len(hits), "hit"), items), way)
