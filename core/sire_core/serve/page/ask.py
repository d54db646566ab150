"""The page Ask: a question, its hits and the paths to them; and what several pages share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nicegui import ui

from sire_core.errors import SireError
from sire_core.explore.page import PAGE_STYLE, parts
from sire_core.search.passages import RETURNS
from sire_core.serve.page import views
from sire_core.serve.page.explorer import ExplorerQuery

if TYPE_CHECKING:
    from nicegui import Client

    from sire_core.explore.shown import ShownQuestion
    from sire_core.serve.page.explorer import Explorer

__all__ = [
    "AskPage",
    "asked_html",
    "guarded",
    "heading",
    "one_of",
    "question_field",
    "render_with_timeout",
    "show_html",
]

_AT_ONCE = 0.5
"""Seconds after which a page is painted, whether everything is there or not."""


def show_html(content: str) -> None:
    """HTML whose text is escaped already."""
    ui.html(content, sanitize=False, tag="section").classes("sire sire-page")


def heading(text: str, level: int = 2) -> None:
    """A heading of our own words."""
    ui.html(text, sanitize=False, tag=f"h{level}").style("font-size:20px;margin:0;line-height:1.3")


def asked_html(asked: ShownQuestion) -> str:
    """A question with its hits, which lead to their own pages."""
    return parts(asked, lambda kind, name: views.address(asked.recipe, kind, name))


async def guarded(show: Callable[[], Awaitable[None]]) -> None:
    """Show something, or what is wrong."""
    try:
        await show()
    except SireError as error:
        ui.label(str(error)).props("role=alert").classes("text-negative")


async def render_with_timeout(show: Callable[[], Awaitable[None]]) -> None:
    """Show what a page is about. What takes long, such as the first look at a large index, follows the painted page."""
    status = ui.label("Reading the index ...").props("role=status")
    early = asyncio.create_task(_painted(ui.context.client))
    try:
        await guarded(show)
    finally:
        early.cancel()
        status.delete()


async def _painted(client: Client) -> None:
    await asyncio.sleep(_AT_ONCE)
    await client.connected()


def question_field(label: str, value: str, button: str, go: Callable[[], Awaitable[None]]) -> ui.input:
    """A field with its button; the return key is as good."""
    with ui.row().classes("sire-wide sire-low"):
        field = ui.input(label, value=value).classes("sire-grow").style("min-width:min(100%,320px)")
        ui.button(button, on_click=go)
    field.on("keydown.enter", go)
    return field


def one_of(value: str, known: list[str]) -> str:
    """A value, or the first known one."""
    return value if value in known else known[0]


_NOTHING = "nothing"

# A picture as PNG: the browser draws the SVG, twice as large, and hands it over as a file.
_PNG = """
const svg = document.querySelector('.sire-page svg.sire'); const url = URL.createObjectURL(
  new Blob([new XMLSerializer().serializeToString(svg).replace('>', '><style>' + %s + '</style>')],
  {type: 'image/svg+xml'})); const image = new Image(); image.onload = () => {
  const canvas = document.createElement('canvas'); canvas.width = 2 * svg.width.baseVal.value;
  canvas.height = 2 * svg.height.baseVal.value; const pen = canvas.getContext('2d');
  pen.fillStyle = getComputedStyle(svg).backgroundColor; pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height); const a = document.createElement('a');
  a.href = canvas.toDataURL('image/png'); a.download = 'question.png'; a.click(); URL.revokeObjectURL(url); };
image.src = url;
"""


class AskPage:
    """A question, its hits and the paths to them; beside those of another recipe."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer

    async def show(self, asking: ExplorerQuery, beside: str) -> None:
        """The fields, and what was asked in the address."""
        recipes = self._explorer.recipes()

        async def go() -> None:
            now, second = asked()
            given = {"q": now.question, "recipe": now.recipe, "beside": second, "k": now.k, "where": now.where}
            given |= {"settings": now.settings, "returns": now.returns}
            ui.navigate.history.push(f"/?{urlencode(given, errors='replace')}")
            await self._answer(found, now, second)

        question = question_field("Question", asking.question, "Ask", go)
        with ui.row().classes("sire-wide sire-low"):
            recipe = ui.select(recipes, label="Recipe", value=one_of(asking.recipe, recipes)).style("min-width:130px")
            other = ui.select([_NOTHING, *recipes], label="Beside", value=one_of(beside, [_NOTHING, *recipes]))
            other.style("min-width:130px")
            hits = ui.number("Hits", value=asking.k, min=1, max=100, precision=0).style("width:80px")
            where = ui.input("Filter, such as year>1990", value=asking.where).style("min-width:min(100%,230px)")
            settings = ui.input("Settings, such as rounds=1", value=asking.settings)
            settings.style("min-width:min(100%,230px)")
            returns = ui.select(list(RETURNS), label="Returns", value=one_of(asking.returns, list(RETURNS)))
        found = ui.column().classes("sire-wide")

        def asked() -> tuple[ExplorerQuery, str]:
            now = ExplorerQuery(
                question=question.value or "",
                recipe=recipe.value,
                k=int(hits.value or 5),
                where=where.value or "",
                settings=settings.value or "",
                returns=returns.value,
            )
            return now, "" if other.value == _NOTHING else str(other.value)

        if asking.question:
            now = asked()
            with found:
                await render_with_timeout(lambda: self._found(*now))

    async def _answer(self, place: Any, asking: ExplorerQuery, beside: str) -> None:
        place.clear()
        with place:
            await guarded(lambda: self._found(asking, beside))

    async def _found(self, asking: ExplorerQuery, beside: str) -> None:
        asked = await self._explorer.ask(asking)
        others = [await self._explorer.ask(_with_recipe(asking, beside))] if beside else []
        with ui.row():
            ui.button("Save picture as SVG", on_click=lambda: ui.download.content(asked.svg(), "question.svg"))
            ui.button("Save picture as PNG", on_click=lambda: ui.run_javascript(_png()))
            ui.button("Save page", on_click=lambda: ui.download.content(asked.html(), "question.html"))
        if others:
            show_html(views.comparison_html(asked, others[0]))
        with ui.element("div").classes("sire-two"):
            for shown in (asked, *others):
                ui.html(asked_html(shown), sanitize=False)
        self._why_not(asking)

    def _why_not(self, asking: ExplorerQuery) -> None:
        heading("Why not this passage?")

        async def find() -> None:
            found.clear()
            with found:
                units = await self._explorer.find(wanted.value or "")
                if not units:
                    ui.label("No passage has these words.")
                for unit in units:
                    ui.button(unit.title or unit.id, on_click=lambda _, name=unit.id: why(name)).props("flat no-caps")

        async def why(name: str) -> None:
            answer.clear()
            with answer:
                await guarded(lambda: reasons(name))

        async def reasons(name: str) -> None:
            show_html(views.why_not_html(await self._explorer.why_not(asking, name), asking.recipe))

        wanted = question_field("Words of the passage", "", "Find it", find)
        found, answer = ui.column(), ui.column().classes("sire-wide")


def _png() -> str:
    return _PNG % json.dumps(PAGE_STYLE)


def _with_recipe(asking: ExplorerQuery, recipe: str) -> ExplorerQuery:
    """The same question to another recipe, whose settings are its own."""
    return ExplorerQuery(asking.question, recipe, asking.k, asking.where, "", asking.returns)
