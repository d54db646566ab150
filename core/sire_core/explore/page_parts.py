"""What several pages share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nicegui import ui

from sire_core.errors import SireError
from sire_core.explore import views
from sire_core.explore.page import parts

if TYPE_CHECKING:
    from sire_core.explore.shown import ShownQuestion

__all__ = ["asked_html", "guarded", "heading", "one_of", "question_field", "show_html"]


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
