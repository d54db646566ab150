"""All pages, in NiceGUI: fields and buttons around the HTML of `page` and `views`; here those to browse."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from nicegui import ui

from sire_core.errors import ConfigurationError
from sire_core.explore import browse, neighbours
from sire_core.explore.marks import escaped
from sire_core.explore.page import PAGE_STYLE
from sire_core.explore.paths import Names
from sire_core.explore.picture import kind_name
from sire_core.serve.page import views
from sire_core.serve.page.ask import AskPage, one_of, render_with_timeout, show_html
from sire_core.serve.page.explorer import Explorer, ExplorerQuery
from sire_core.serve.page.panels import evaluate_panel, reason_panel
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sire_core.search.snapshot import SearchSnapshot

__all__ = ["register"]

_STYLE = f"""{PAGE_STYLE}
body{{margin:0;font:14px/1.5 system-ui,sans-serif}} .q-layout,.q-page{{min-height:0!important}}
.sire-wide{{width:100%}} .sire-low{{align-items:flex-end}} .sire-grow{{flex-grow:1}} .sire-hidden{{display:none}}
.sire-page{{width:100%}}
h1,h2{{font-weight:600!important;letter-spacing:0}} .sire-page p{{margin:0 0 10px}}
.sire-page table{{border-collapse:collapse;font-size:14px;min-width:40%}}
.sire-page caption{{text-align:left;font-weight:600;padding:8px 10px}}
.sire-page th,.sire-page td{{text-align:left;padding:4px 10px;border-top:1px solid var(--edge);vertical-align:top}}
.sire-nav{{display:flex;gap:4px 20px;align-items:baseline;flex-wrap:wrap}}
header.sire-nav{{background:#1d4f9e;color:#fff;padding:12px 16px;font-size:15px}}
.sire-nav a{{color:#fff;text-decoration:none}} .sire-nav a[aria-current]{{text-decoration:underline;font-weight:600}}
[role=log]{{gap:4px}} [role=log] .sire-page{{padding:6px 14px}} [role=log] .sire-page p{{margin:0}}
[role=log] .sire-page h2{{font-size:16px}} .sire-page ul.plain{{list-style:none;padding:0;margin:0 0 8px}}
.sire-page summary{{cursor:pointer;color:var(--accent);list-style:disclosure-closed inside;display:list-item}}
.sire-page details[open] summary{{list-style-type:disclosure-open}} .sire-piece{{padding:6px 14px;font-size:15px}}
.sire-page details ol{{margin:4px 0;padding-left:28px}}
.sire-two{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:16px;width:100%}}
.sire-two>*{{min-width:0}}
:focus-visible{{outline:3px solid #b35900;outline-offset:2px}}"""

_PLACES = (("Ask", "/"), ("Browse", "/browse"), ("Reason", "/reason"), ("Evaluate", "/evaluate"))


_page = partial(ui.page, response_timeout=60.0)
"""The framework would give up after three seconds; opening an index on a busy machine may take as long."""


def register(explorer: Explorer) -> None:
    """Make the pages of an index."""

    @_page("/")
    async def ask_page(
        q: str = "",
        recipe: str = "",
        beside: str = "",
        k: int = 5,
        where: str = "",
        settings: str = "",
        returns: str = "passages",
    ) -> None:
        _frame(explorer, "Ask", "/")
        await AskPage(explorer).show(ExplorerQuery(q, recipe, k, where, settings, returns), beside)

    @_page("/browse")
    async def browse_page(
        kind: str = "document", recipe: str = "", text: str = "", tree: str = "", level: int = -1, start: int = 0
    ) -> None:
        _frame(explorer, "Browse", "/browse")
        await render_with_timeout(lambda: _browse(explorer, kind, recipe, text, tree, level, max(0, start)))

    @_page("/document")
    async def document_page(id: str = "", recipe: str = "") -> None:  # noqa: A002 - what addresses call it
        _frame(explorer, f"Document {id}", "/browse")
        await render_with_timeout(lambda: _document(explorer, id, recipe))

    @_page("/unit")
    async def unit_page(id: str = "", recipe: str = "") -> None:  # noqa: A002 - as above
        _frame(explorer, "Unit", "/browse")
        await render_with_timeout(lambda: _unit(explorer, id, recipe))

    @_page("/entity")
    async def entity_page(id: str = "", recipe: str = "") -> None:  # noqa: A002 - as above
        _frame(explorer, "Entity", "/browse")
        await render_with_timeout(lambda: _entity(explorer, id, recipe))

    @_page("/reason")
    async def reason_page() -> None:
        _frame(explorer, "Reason", "/reason")
        reason_panel(explorer)

    @_page("/evaluate")
    async def evaluate_page() -> None:
        _frame(explorer, "Evaluate", "/evaluate")
        evaluate_panel(explorer)


def _frame(explorer: Explorer, title: str, place: str) -> None:
    """What every page has: title, language, colours, the way to the other pages."""
    ui.colors(primary="#1d4f9e")
    ui.page_title(f"{title} - {explorer.title}")
    ui.add_head_html(f"<style>{_STYLE}</style><script>document.documentElement.lang = 'en'</script>")
    links = "".join(
        f'<a href="{target}"{" aria-current=page" if target == place else ""}>{name}</a>' for name, target in _PLACES
    )
    # In the page itself, not drawn by scripts: it is painted before these are read.
    ui.add_body_html(
        f'<header class="sire-nav"><div><b>sire</b> {escaped(explorer.title)}</div>'
        f'<nav class="sire-nav" aria-label="Pages">{links}</nav></header>'
    )
    ui.html(escaped(title), sanitize=False, tag="h1").style("font-size:24px;margin:0;line-height:1.3")


async def _browse(explorer: Explorer, kind: str, recipe: str, text: str, tree: str, level: int, start: int) -> None:
    recipes = explorer.recipes()
    recipe = one_of(recipe, recipes)
    snapshot = await explorer.snapshot(recipe)
    counts = snapshot.counts()
    kinds = {"document": counts.documents, **counts.kinds}
    if len(Names.of(snapshot).graph.entity_ids) and "entity" not in counts.kinds:
        kinds["entity"] = len(Names.of(snapshot).graph.entity_ids)
    here = {"recipe": recipe, "kind": kind, "text": text, "tree": tree, **({"level": str(level)} if level >= 0 else {})}
    show_html(
        "<p>Recipes: " + " | ".join(_chosen(name, name == recipe, {"recipe": name}) for name in recipes) + "</p><p>"
        + " | ".join(
            _chosen(f"{kind_name(name)} ({number:,})", name == kind, {"recipe": recipe, "kind": name})
            for name, number in kinds.items()
        )
        + "</p>"
    )  # fmt: skip
    if kind in ("document", "entity"):
        search = ui.input("Only those with these letters", value=text).style("min-width:min(100%,320px)")
        search.on("keydown.enter", lambda: ui.navigate.to(f"/browse?{urlencode({**here, 'text': search.value or ''})}"))
    # Lists read much of a large index: not on the loop that other people's pages wait for.
    show_html(await asyncio.to_thread(_lists, explorer, snapshot, here, start))


def _lists(explorer: Explorer, snapshot: SearchSnapshot, here: Mapping[str, str], start: int) -> str:
    kind, recipe = here["kind"], here["recipe"]
    if kind == "document":
        page = browse.documents(snapshot, here["text"], start)
    elif kind == "entity":
        page = browse.entities(snapshot, here["text"], start)
    else:
        level = int(here["level"]) if "level" in here else None
        page = browse.units(snapshot, kind, tree=here["tree"], level=level, start=start)
    content = views.page_html(f"{kind_name(kind).capitalize()}: ", page, kind, recipe, here, start)
    content += views.levels_html(browse.levels(snapshot), recipe)
    index = explorer.index(recipe)
    spent: list[tuple[str, int, int, int]] = []
    with suppress(ConfigurationError):  # not for those who see a part of the index only
        spent = index.spent()
    return content + views.failures_html(index.failures(), spent)


def _chosen(text: str, chosen: bool, given: dict[str, str]) -> str:
    return f"<b>{escaped(text)}</b>" if chosen else views.link(text, f"/browse?{urlencode(given)}")


async def _document(explorer: Explorer, name: str, recipe: str) -> None:
    snapshot = await explorer.snapshot(recipe)
    units = browse.document_units(snapshot, name)
    if not units:
        show_html(f"<p>There is no document {escaped(repr(name))} that may be seen.</p>")
    for unit in units:
        show_html(_unit_html(snapshot, unit.id, recipe))


async def _unit(explorer: Explorer, name: str, recipe: str) -> None:
    snapshot = await explorer.snapshot(recipe)
    picture = neighbours.unit_picture(snapshot, name)
    if picture is None:
        show_html("<p>There is no such unit, or it may not be seen.</p>")
        return
    show_html(_unit_html(snapshot, name, recipe) + views.picture_html(picture, recipe, "near"))


def _unit_html(snapshot: SearchSnapshot, name: str, recipe: str) -> str:
    position = Names.of(snapshot).position(name)
    assert position is not None  # found before
    unit, doc_ids = snapshot.view.pool.unit(position)
    derived = neighbours.derived_from(snapshot, name) if unit.kind is UnitKind.CHUNK else []
    return views.unit_html(unit, doc_ids, snapshot.view.units(derived[: 2 * browse.PAGE]), recipe)


async def _entity(explorer: Explorer, name: str, recipe: str) -> None:
    snapshot = await explorer.snapshot(recipe)
    card = browse.entity_card(snapshot, name)
    if card is None:
        show_html("<p>There is no such entity, or it may not be seen.</p>")
        return
    picture = neighbours.entity_picture(snapshot, name)
    show_html(views.entity_html(card, recipe) + views.picture_html(picture, recipe, "near"))
