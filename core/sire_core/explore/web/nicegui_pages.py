"""The pages in NiceGUI: fields and buttons around the HTML of `explore.page` and `views`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from nicegui import app, ui

from sire_core.documents.heading_paths import joined_path, title_path
from sire_core.errors import ConfigurationError, SireError
from sire_core.explore import browse, neighbourhood
from sire_core.explore.corpus_map import CorpusMap
from sire_core.explore.paths import Names
from sire_core.explore.picture import kind_name
from sire_core.explore.result_page import HEADING, comparison_html, page_style, parts
from sire_core.explore.result_page import page as page_of_results
from sire_core.explore.short_titles import short_title, told_apart, with_short_title
from sire_core.explore.templates import render, style
from sire_core.explore.web import fragments
from sire_core.explore.web.explorer import (
    HITS,
    MOST_HITS,
    Explorer,
    ExplorerQuery,
    compared_query,
    known_or_first,
    number_of_hits,
)
from sire_core.reason import STRATEGIES
from sire_core.reason.steps import IntermediateAnswer, Retrieved, SubQuestion, Thought
from sire_core.search.explanation import text_below_title
from sire_core.search.passages import RETURNS
from sire_core.serve.outputs import found_text, sufficiency
from sire_core.text.pluralize import shorten
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup
    from nicegui import Client
    from nicegui.events import GenericEventArguments

    from sire_core.explore.picture import Picture
    from sire_core.explore.query_result import QueryResult
    from sire_core.reason.steps import Answer, ReasoningStep
    from sire_core.search.snapshot import SearchSnapshot


_PAINT_SECONDS = 0.08  # Seconds after which a page is painted, complete or not
_NONE = "(none)"
_MOST_LISTED = 200
_OPTIONS = "if (localStorage.sireOptions) document.querySelector('.sire-options').open = true"
# The browser shows that it waits before the server knows of it; the server ends it (`question_field`).
_WAITING = """
const wait = () => document.body.classList.add('sire-waiting');
document.addEventListener('click', event => { if (event.target.closest('.sire-ask button:first-of-type')) wait(); });
document.addEventListener('keydown', event => {
  if (event.key === 'Enter' && event.target.closest('.sire-ask input')) wait(); });
"""
_EXPAND = "event => { const button = event.target.closest('[data-expand]'); if (button) emit(button.dataset.expand); }"
_PLACES = (("Ask", "/"), ("Map", "/map"), ("Browse", "/browse"), ("Reason", "/reason"))
page_of = partial(ui.page, response_timeout=60.0)
"""The framework times out after three seconds, but opening an index on a busy machine may take longer."""


def reason_panel(explorer: Explorer, question_of_address: str, strategy: str) -> None:
    """Draw the panel of reasoning, and answer the question of the address: steps as they come, or the evidence."""
    if explorer.model is None:
        ui.label("No language model was given (--llm): answers are sentences and table rows from the documents.")
    running: list[asyncio.Task[Any]] = []

    async def go() -> None:
        # A new question cancels the last one, which would cost more calls.
        for task in running:
            task.cancel()
        running[:] = [task for task in [asyncio.current_task()] if task]
        log.clear()
        text = question.value or ""
        go_to("/reason", {"q": text, "strategy": via.value}, f"{text or 'Reason'} - {explorer.title}")
        status.set_text("Reasoning ...")
        with log:
            await guarded(think)
        status.set_text("")

    question = question_field("Question", question_of_address, "Reason", go)
    via = ui.select(list(STRATEGIES), label="Strategy", value=strategy)
    via.style("min-width:130px").set_enabled(explorer.model is not None)
    log = ui.column().classes("sire-wide").props("role=log aria-label=Steps")
    status = ui.label("").props("role=status").classes("sire-piece")

    async def think() -> None:
        if (question.value or "").strip():
            await _steps(explorer, via.value, question.value, log)
        else:
            _alert("The question is empty: type one.")

    if question_of_address.strip():
        ui.timer(0, go, once=True)  # after the page is painted


async def _steps(explorer: Explorer, via: str, question: str, log: ui.column) -> None:
    """Draw the steps as they come, and stream the answer; without a model it is extracted."""
    from sire_core.reason import Answer, AnswerPiece, PassageSource, reason

    snapshot = await explorer.snapshot()
    piece = None
    source = PassageSource(explorer.index())
    run = (
        reason(via, source, question, stream=True)
        if explorer.model
        else reason("single", source, question, answer=False, k=2 * HITS)  # as many as `sire ask` reads
    )
    async with aclosing(run) as steps:
        async for step in steps:
            if log.is_deleted:  # the page was left
                return
            if isinstance(step, AnswerPiece):
                piece = piece or ui.label("").classes("sire-piece")
                piece.set_text(("" if step.restart else piece.text) + step.text)
            elif isinstance(step, Answer):
                if piece:  # the answer repeats it
                    piece.delete()
                show_html(
                    answer_html(step, snapshot)
                    if explorer.model
                    else fragments.nearest_html(question, step.hits, snapshot)
                )
            else:
                show_html(step_html(step, snapshot))


def step_html(step: ReasoningStep, snapshot: SearchSnapshot) -> Markup:
    """HTML of a step; the hits of a search open on a click."""
    if isinstance(step, Retrieved):
        return render("explorer", "hits", found_text(step), fragments.unit_links(snapshot, [h.unit for h in step.hits]))
    if isinstance(step, SubQuestion):
        return render("explorer", "step", "Searching:", step.text)
    if isinstance(step, IntermediateAnswer):
        return render("explorer", "step", step.question, step.text or "unknown")
    assert isinstance(step, Thought)
    return render("explorer", "step", "", step.text)


def answer_html(answer: Answer, snapshot: SearchSnapshot) -> Markup:
    """HTML of the answer, the passages that it cites, and whether they suffice."""
    cited = [(number, answer.hits[number - 1]) for number in answer.citations]
    shown = cited or list(enumerate(answer.hits[:5], 1))
    links = fragments.unit_links(snapshot, [hit.unit for _, hit in shown])
    return render(
        "explorer",
        "answer",
        answer.text,
        [(number, link) for (number, _), link in zip(shown, links, strict=True)],
        is_cited=bool(cited),
        sufficiency=sufficiency(answer),
        calls=answer.usage.calls,
        searches=answer.usage.retrievals,
    )


def show_html(content: str) -> None:
    """Show HTML whose text is already escaped."""
    ui.html(content, sanitize=False, tag="section").classes("sire sire-page")


def show_picture(snapshot: SearchSnapshot, picture: Picture, html_of: Callable[[Picture], str]) -> None:
    """Show HTML with a picture, and draw it again with the neighbours of a node whose button is pressed."""
    shown = picture

    async def expand(event: GenericEventArguments) -> None:
        nonlocal shown
        shown = await asyncio.to_thread(neighbourhood.expanded, snapshot, shown, str(event.args))
        element.set_content(html_of(shown))

    element = ui.html(html_of(picture), sanitize=False).classes("sire-wide")
    element.on("click", expand, js_handler=_EXPAND)


def heading(text: str, level: int = 2) -> None:
    """Show a heading."""
    ui.html(text, sanitize=False, tag=f"h{level}").style("font-size:20px;margin:0;line-height:1.3")


def asked_html(result: QueryResult, snapshot: SearchSnapshot, heading: str = "") -> Markup:
    """HTML of a result whose hits link to their pages, and their relative links to documents of the index."""
    addresses = partial(fragments.address, result.recipe), fragments.link_target(snapshot, result.recipe)
    return parts(result, *addresses, heading, fills=not heading)


async def guarded(show: Callable[[], Awaitable[None]]) -> None:
    """Show something, or the error message."""
    try:
        await show()
    except SireError as error:
        _alert(str(error))


async def render_with_timeout(show: Callable[[], Awaitable[None]]) -> None:
    """Show the content of a page; the frame is painted first if the content takes long."""
    status = ui.label("Reading the index ...").props("role=status").classes("sire-busy")
    early = asyncio.create_task(_painted(ui.context.client))
    try:
        await guarded(show)
    finally:
        early.cancel()
        status.delete()


async def _painted(client: Client) -> None:
    await asyncio.sleep(_PAINT_SECONDS)
    await client.connected()


def question_field(
    label: str,
    value: str,
    button: str,
    go: Callable[[], Awaitable[None]],
    clear: Callable[[], Awaitable[None]] | None = None,
) -> ui.input:
    """A field with its button; the return key presses it, and a second button empties the field."""

    async def run() -> None:
        try:
            await go()
        finally:
            ui.run_javascript("document.body.classList.remove('sire-waiting')")

    with ui.row().classes("sire-wide sire-low sire-ask"):
        field = ui.input(label, value=value).classes("sire-grow").style("min-width:min(100%,320px)")
        ui.button(button, on_click=run)
        if clear:
            ui.button("Clear", on_click=clear, color="grey-9").bind_enabled_from(field, "value", bool)
    field.on("keydown.enter", run)
    return field


def go_to(path: str, parameters: Mapping[str, object], title: str, *, again: bool = False) -> None:
    """Make the address and the title of the browser's tab those of a question; `again`: in place of the last one."""
    target = f"{path}?{urlencode(parameters, errors='replace')}"
    ui.run_javascript(f"sireGo({json.dumps(target)}, {json.dumps(shorten(title, HEADING))}, {json.dumps(again)})")


class _QueryFields:
    """The fields of a question: what is asked, how is searched, and which recipe it is compared with."""

    def __init__(
        self, explorer: Explorer, query: ExplorerQuery, other: ExplorerQuery | None, go: Callable[[], Awaitable[None]]
    ) -> None:
        self._explorer = explorer
        recipes = explorer.recipes()
        self._question = question_field("Question", query.question, "Ask", go)
        if not query.question:
            self._question.props("autofocus")
        is_open = other is not None or replace(query, question="", recipe="") != ExplorerQuery("")
        with ui.element("details").classes("sire-options sire-wide").props("open" if is_open else ""):
            ui.html("Recipe and more options", sanitize=False, tag="summary")
            with ui.row().classes("sire-wide sire-low"):
                self._recipe = ui.select(recipes, label="Recipe", value=query.recipe).style("min-width:130px")
                self._hits = ui.number("Hits", value=query.k, min=1, max=MOST_HITS, precision=0).style("width:80px")
                self._filter = ui.input("Filter", value=query.filter)
                self._settings = ui.input("Settings, e.g. rounds=1", value=query.settings)
                self._returns = ui.select(list(RETURNS), label="Returns", value=query.returns)
            with ui.row().classes("sire-wide sire-low"):
                choices = [_NONE, *explorer.compared()]
                self._compare = ui.select(choices, label="Compare with", value=other.recipe if other else _NONE)
                self._compare.style("min-width:130px")
                self._compare_settings = ui.input("Settings of the other recipe", value=other.settings if other else "")
            for field in (self._filter, self._settings, self._compare_settings):
                field.style("min-width:min(100%,300px)")
            for entry in (self._hits, self._filter, self._settings, self._compare_settings):
                entry.on("keydown.enter", go)
            self._listed = ui.html("", sanitize=False, tag="section").classes("sire sire-page")
            self._recipe.on_value_change(self.describe)
        if not is_open:
            ui.run_javascript(_OPTIONS)

    async def describe(self) -> None:
        """Say what the filter and the settings may be."""
        snapshot = await self._explorer.snapshot(self._recipe.value)
        self._listed.set_content(fragments.settings_html(snapshot.recipe))
        example = await asyncio.to_thread(browse.filter_example, snapshot)
        self._filter.props["label"] = f'Filter, e.g. "{example}"' if example else "Filter"
        self._filter.update()

    def read(self) -> tuple[ExplorerQuery, ExplorerQuery | None]:
        """The query as it is typed now, and the one that it is compared with."""
        now = ExplorerQuery(
            question=self._question.value or "",
            recipe=self._recipe.value,
            k=number_of_hits(self._hits.value)[0],
            filter=self._filter.value or "",
            settings=self._settings.value or "",
            returns=self._returns.value,
        )
        second = "" if self._compare.value == _NONE else str(self._compare.value)
        other = compared_query(now, second, self._compare_settings.value or "")
        if other:  # maybe only its settings were typed
            self._compare.set_value(other.recipe)
        return now, other

    def wrong_hits(self) -> str:
        """Mistake in the number of hits; empty if there is none."""
        return number_of_hits(self._hits.value)[1]


class AskPage:
    """A question, its hits and the paths to them; optionally next to those of another recipe."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._latest: list[ExplorerQuery] = []

    async def show(self, query: ExplorerQuery, other: ExplorerQuery | None, notes: Sequence[str]) -> None:
        """Draw the fields, what is to say about the address, and the result of its question."""

        async def go() -> None:
            now, second = fields.read()
            parameters = {"q": now.question, "recipe": now.recipe, "k": now.k, "filter": now.filter}
            parameters |= {"settings": now.settings, "returns": now.returns}
            parameters |= {"compare": second.recipe, "compare_settings": second.settings} if second else {}
            go_to("/", parameters, f"{now.question or 'Ask'} - {self._explorer.title}")
            await self._answer(result, now, second, [fields.wrong_hits()])

        fields = _QueryFields(self._explorer, query, other, go)
        result = ui.column().classes("sire-wide")
        now = fields.read()
        with result:
            for note in notes:
                _alert(note)
            has_question = bool(query.question.strip())
            await render_with_timeout(lambda: self._show_results(*now) if has_question else self._start(now[0]))
        await guarded(fields.describe)

    async def _start(self, query: ExplorerQuery) -> None:
        """Show where to start: example questions and the main entities."""
        snapshot = await self._explorer.snapshot(query.recipe)

        def read() -> str:
            named = str(snapshot.where)
            made: dict[str, list[str]] = snapshot.view.derived("example questions", dict)
            if named not in made:  # not inside of `derived`, for which the searches would wait
                made[named] = list(self._explorer.questions(snapshot))
            documents = len(snapshot.document_ids())
            return fragments.start_html(made[named], *browse.main_names(snapshot), documents, query.recipe)

        show_html(await asyncio.to_thread(read))

    async def _answer(
        self, column: Any, query: ExplorerQuery, other: ExplorerQuery | None, notes: Sequence[str]
    ) -> None:
        column.clear()
        with column:
            for note in filter(None, notes):
                _alert(note)
            if not query.question.strip():
                _alert("The question is empty: type one, or choose one of these.")
                await guarded(lambda: self._start(query))
                return
            status = ui.label("Searching ...").props("role=status").classes("sire-busy")
            await asyncio.sleep(0)  # the browser is told before the search begins
            await guarded(lambda: self._show_results(query, other))
            status.delete()

    async def _show_results(self, query: ExplorerQuery, other: ExplorerQuery | None) -> None:
        queries = self._latest = [query, *([other] if other else [])]
        results = [await self._explorer.ask(each) for each in queries]
        if self._latest is not queries:  # another question was asked meanwhile
            return
        if other:
            show_html(render("explorer", "compared", shorten(query.question, HEADING), comparison_html(*results)))
        with ui.element("div").classes("sire-two"):
            for number, each in enumerate(queries):
                self._show_result(
                    results, number, await self._explorer.snapshot(each.recipe, each.filter, each.settings)
                )
        with ui.row():
            ui.button("Save picture as SVG", on_click=lambda: ui.download.content(results[0].svg(), "question.svg"))
            ui.button("Save picture as PNG", on_click=lambda: ui.run_javascript(f"sirePng({json.dumps(page_style())})"))
            ui.button("Save page", on_click=lambda: ui.download.content(page_of_results(*results), "question.html"))
        self._why_not(query)

    def _show_result(self, results: list[QueryResult], number: int, snapshot: SearchSnapshot) -> None:
        """Show a result; when its picture grows, what is saved grows with it."""

        def html_of(picture: Picture) -> str:
            results[number] = replace(results[number], picture=picture)
            heading = results[number].search if len(results) > 1 else ""
            return asked_html(results[number], snapshot, heading)

        show_picture(snapshot, results[number].picture, html_of)

    def _why_not(self, query: ExplorerQuery) -> None:
        heading("Why not this passage?")

        async def find() -> None:
            matches.clear()
            answer.clear()
            with matches:
                units = await self._explorer.find(wanted.value or "")
                if not units:
                    ui.label("No passage has one of these words in its title or text.")
                for unit, title in zip(units, told_apart([(u.title, text_below_title(u)) for u in units]), strict=True):
                    button = ui.button(title, on_click=lambda _, name=unit.id: why(name))
                    button.props("flat no-caps align=left").classes("sire-left")

        async def why(name: str) -> None:
            answer.clear()
            with answer:
                await guarded(lambda: reasons(name))

        async def reasons(name: str) -> None:
            show_html(fragments.why_not_html(await self._explorer.why_not(query, name), query.recipe))
            ui.run_javascript("sireShow('why-not')")

        wanted = question_field("Words of the passage", "", "Find it", find)
        matches, answer = ui.column(), ui.column().classes("sire-wide")


def _alert(text: str) -> None:
    ui.label(text).props("role=alert").classes("text-negative")


def register(explorer: Explorer) -> None:
    """Register the pages of an index."""
    _register_questions(explorer)

    @app.exception_handler(404)
    async def not_found(request: Request, _error: Exception) -> HTMLResponse:
        content = render("explorer", "not_found", _header(explorer), request.url.path)
        return HTMLResponse(render("parts", "document", "No such page", _style(), "", content), 404)

    @page_of("/browse")
    async def browse_page(
        kind: str = "document",
        recipe: str = "",
        text: str = "",
        tree: str = "",
        level: int = -1,
        topic: int = -1,
        start: int = 0,
    ) -> None:
        frame(explorer, "Browse", "/browse")
        here = {"recipe": recipe, "kind": kind, "text": text, "tree": tree}
        here |= {name: str(value) for name, value in (("level", level), ("topic", topic)) if value >= 0}
        await render_with_timeout(lambda: _browse(explorer, here, max(0, start)))

    @page_of("/document")
    async def document_page(id: str = "", recipe: str = "") -> None:  # noqa: A002 - what addresses call it
        frame(explorer, "Document", "/browse", id, heading=False)
        await render_with_timeout(lambda: _document(explorer, id, recipe))

    @page_of("/unit")
    async def unit_page(id: str = "", recipe: str = "") -> None:  # noqa: A002 - as above
        frame(explorer, "Passage", "/browse", heading=False)
        await render_with_timeout(lambda: _unit(explorer, id, recipe))

    @page_of("/entity")
    async def entity_page(id: str = "", recipe: str = "", start: int = 0) -> None:  # noqa: A002 - as above
        frame(explorer, "Name", "/browse")
        await render_with_timeout(lambda: _entity(explorer, id, recipe, max(0, start)))


def _register_questions(explorer: Explorer) -> None:
    """Register the pages that take a question."""

    @page_of("/")
    async def ask_page(
        q: str = "",
        recipe: str = "",
        compare: str = "",
        compare_settings: str = "",
        k: str = "5",
        filter: str = "",
        settings: str = "",
        returns: str = "passages",
    ) -> None:
        frame(explorer, "Ask", "/", q)

        async def show() -> None:
            recipes = explorer.recipes()
            shown_recipe, *notes = known_or_first(recipe, recipes, "recipe")
            kind, wrong_kind = known_or_first(returns, list(RETURNS), "kind of results")
            other, wrong_other = known_or_first(compare, explorer.compared(), "recipe") if compare else ("", "")
            hits, wrong_hits = number_of_hits(k)
            query = ExplorerQuery(q, shown_recipe, hits, filter, settings, kind)
            notes = [note for note in (*notes, wrong_kind, wrong_other, wrong_hits) if note]
            await AskPage(explorer).show(query, compared_query(query, other, compare_settings), notes)

        await guarded(show)

    @page_of("/reason")
    async def reason_page(q: str = "", strategy: str = "") -> None:
        frame(explorer, "Reason", "/reason", q)
        strategy, wrong = known_or_first(strategy or "ircot", list(STRATEGIES), "strategy")
        if wrong:
            _alert(wrong)
        reason_panel(explorer, q, strategy if explorer.model else "single")


def frame(explorer: Explorer, title: str, path: str, subject: str = "", *, heading: bool = True) -> None:
    """Draw what all pages share: title (in the tab the subject, if there is one), language, colours, navigation."""
    ui.colors(primary="#1d4f9e")
    ui.page_title(f"{shorten(subject, HEADING) or title} - {explorer.title}")
    script = files(__package__).joinpath("page.js").read_text(encoding="utf-8")
    script = f"document.documentElement.lang = 'en';{_WAITING}{script}"
    ui.add_head_html(f"<style>{_style()}</style><script>{script}</script>")
    # In the page itself, not drawn by scripts: it is painted before these are read.
    ui.add_body_html(_header(explorer, path))
    if heading:
        ui.html(title, sanitize=False, tag="h1").style("font-size:24px;margin:0;line-height:1.3")


def _style() -> Markup:
    return style("picture", "page", "explorer")


def _header(explorer: Explorer, path: str = "") -> Markup:
    places = [(name, target, target == path) for name, target in _PLACES]
    return render("explorer", "header", explorer.title, places)


async def _browse(explorer: Explorer, here: Mapping[str, str], start: int) -> None:
    recipes = explorer.recipes()
    recipe, wrong = known_or_first(here["recipe"], recipes, "recipe")
    if wrong:
        _alert(wrong)
    kind = here["kind"]
    here = {**here, "recipe": recipe}
    snapshot = await explorer.snapshot(recipe)
    counts = snapshot.counts()
    kinds = {"document": counts.documents, **counts.kinds}
    if entities := await asyncio.to_thread(browse.entity_count, snapshot):
        kinds["entity"] = entities
    lists = [
        (f"{kind_name(name)} ({number:,})", fragments.address_of("/browse", recipe=recipe, kind=name), name == kind)
        for name, number in kinds.items()
    ]
    addresses = [(name, fragments.address_of("/browse", recipe=name), name == recipe) for name in recipes]
    show_html(render("explorer", "choices", [("Recipes: ", addresses), ("", lists)]))

    async def filter_names() -> None:
        text = search.value or ""
        named = {**here, "text": text}
        content = await asyncio.to_thread(_lists, explorer, snapshot, named, 0)
        if text == (search.value or ""):  # nothing was typed meanwhile
            listed.set_content(content)
            go_to("/browse", named, f"Browse - {explorer.title}", again=True)

    if kind in ("document", "entity"):
        search = ui.input("Filter by name", value=here["text"], on_change=filter_names)
        search.style("min-width:min(100%,320px)").props("debounce=250")
    # Lists read much of a large index: not on the event loop.
    content = await asyncio.to_thread(_lists, explorer, snapshot, here, start)
    listed = ui.html(content, sanitize=False, tag="section").classes("sire sire-page")


def _lists(explorer: Explorer, snapshot: SearchSnapshot, here: Mapping[str, str], start: int) -> str:
    kind, recipe = here["kind"], here["recipe"]
    caption = fragments.several(kind)
    if "topic" in here:
        corpus_map, topic = CorpusMap.of(snapshot), int(here["topic"])
        caption = f"Topic {dict(enumerate(corpus_map.labels)).get(topic, topic)}:"
        page = corpus_map.page(snapshot, topic, start)
        kind = "topic"
    elif kind == "document":
        page = browse.documents(snapshot, here["text"], start)
    elif kind == "entity":
        page = browse.entities(snapshot, here["text"], start)
    else:
        level = int(here["level"]) if "level" in here else None
        page = browse.units(snapshot, kind, tree=here["tree"], level=level, start=start)
    content = fragments.page_html(caption, page, here["kind"], recipe, here, start, fragments.ORDERS.get(kind, ""))
    content += fragments.levels_html(browse.levels(snapshot), recipe)
    index = explorer.index(recipe)
    spent: list[tuple[str, int, int, int]] = []
    with suppress(ConfigurationError):  # refused to users who see only a part of the index
        spent = index.spent()
    return content + fragments.failures_html(index.failures(), spent)


async def _document(explorer: Explorer, name: str, recipe: str) -> None:
    snapshot = await explorer.snapshot(recipe)
    units = browse.document_units(snapshot, name)
    if not units:
        show_html(render("explorer", "missing", "Document", f"There is no document {name!r}, or you may not see it."))
        return
    title = short_title(snapshot, title_path(units[0].title)[0]) or name

    def repeats(heading: str) -> bool:
        return short_title(snapshot, joined_path([title, heading])) == title

    show_html(fragments.document_html(name, title, units, recipe, fragments.link_target(snapshot, recipe), repeats))


async def _unit(explorer: Explorer, name: str, recipe: str) -> None:
    snapshot = await explorer.snapshot(recipe)
    picture = neighbourhood.neighbour_picture(snapshot, name)
    if picture is None or Names.of(snapshot).position(name) is None:
        show_html(
            render("explorer", "missing", "Passage", "There is no such passage or summary, or you may not see it.")
        )
        return
    show_html(await asyncio.to_thread(_unit_html, snapshot, name, recipe))
    show_picture(snapshot, picture, lambda shown: fragments.neighbours_html(shown, recipe))
    show_html(await asyncio.to_thread(_related_html, snapshot, name, recipe))


def _unit_html(snapshot: SearchSnapshot, name: str, recipe: str) -> Markup:
    position = Names.of(snapshot).position(name)
    assert position is not None  # found before
    unit, doc_ids = snapshot.view.pool.unit(position)
    target = partial(fragments.link_target(snapshot, recipe), doc_ids[0]) if doc_ids else None
    is_passage = unit.kind is UnitKind.CHUNK
    passages = [other.id for other in browse.document_units(snapshot, doc_ids[0])] if is_passage and doc_ids else []
    unit = replace(with_short_title(snapshot, unit), text=text_below_title(unit))
    return fragments.unit_html(unit, doc_ids, passages, recipe, target)


def _related_html(snapshot: SearchSnapshot, name: str, recipe: str) -> Markup:
    related = {
        caption: [with_short_title(snapshot, unit) for unit in units]
        for caption, units in neighbourhood.related(snapshot, name, _MOST_LISTED).items()
    }
    return fragments.related_html(neighbourhood.mentioned_entities(snapshot, name), related, recipe)


async def _entity(explorer: Explorer, name: str, recipe: str, start: int) -> None:
    snapshot = await explorer.snapshot(recipe)
    card = await asyncio.to_thread(browse.entity_card, snapshot, name, start)
    if card is None:
        show_html(render("explorer", "missing", "", "There is no such name, or you may not see it."))
        return
    show_html(fragments.entity_html(card, recipe))
    picture = neighbourhood.neighbour_picture(snapshot, name)
    if picture is not None:
        show_picture(snapshot, picture, lambda shown: fragments.neighbours_html(shown, recipe))
    show_html(fragments.entity_lists_html(card, recipe, start))
