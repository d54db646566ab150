"""What several pages share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nicegui import ui

from sire_core.errors import SireError
from sire_core.explore.page import parts
from sire_core.serve.page import views

if TYPE_CHECKING:
    from nicegui import Client

    from sire_core.explore.shown import ShownQuestion

__all__ = ["asked_html", "guarded", "heading", "one_of", "question_field", "show_html", "shown_in_time"]

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


async def shown_in_time(show: Callable[[], Awaitable[None]]) -> None:
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
