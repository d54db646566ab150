"""The page Ask: a question, its hits and the paths to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nicegui import ui

from sire_core.explore.page import PAGE_STYLE
from sire_core.search.passages import RETURNS
from sire_core.serve.page import views
from sire_core.serve.page.explorer import Asking
from sire_core.serve.page.parts import asked_html, guarded, heading, one_of, question_field, show_html, shown_in_time

if TYPE_CHECKING:
    from sire_core.serve.page.explorer import Explorer

__all__ = ["AskPage"]

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

    async def show(self, asking: Asking, beside: str) -> None:
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

        def asked() -> tuple[Asking, str]:
            now = Asking(
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
                await shown_in_time(lambda: self._found(*now))

    async def _answer(self, place: Any, asking: Asking, beside: str) -> None:
        place.clear()
        with place:
            await guarded(lambda: self._found(asking, beside))

    async def _found(self, asking: Asking, beside: str) -> None:
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

    def _why_not(self, asking: Asking) -> None:
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


def _with_recipe(asking: Asking, recipe: str) -> Asking:
    """The same question to another recipe, whose settings are its own."""
    return Asking(asking.question, recipe, asking.k, asking.where, "", asking.returns)
