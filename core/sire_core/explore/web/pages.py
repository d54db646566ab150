"""The pages of `sire explore`: a page is what its address asks for, sent part by part as soon as each is there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sire_core.documents.heading_paths import joined_path, title_path
from sire_core.errors import ConfigurationError, SireError
from sire_core.explore import browse, neighbourhood
from sire_core.explore.corpus_map import CorpusMap
from sire_core.explore.highlight import escaped
from sire_core.explore.paths import Names
from sire_core.explore.picture import kind_name
from sire_core.explore.result_page import HEADING, comparison_html, link, parts, warning_html
from sire_core.explore.result_page import page as page_of_results
from sire_core.explore.short_titles import compact_titles, distinct_titles, short_title, told_apart, with_short_title
from sire_core.explore.templates import markup, render, style
from sire_core.explore.web import fragments
from sire_core.explore.web.explorer import HITS, MOST_HITS, Explorer, ExplorerQuery, known_or_first, number_of
from sire_core.reason import STRATEGIES, Answer, AnswerPiece, PassageSource, reason
from sire_core.reason.steps import IntermediateAnswer, ReasoningStep, Retrieved, SubQuestion, Thought
from sire_core.search.explanation import text_below_title
from sire_core.search.search_options import RETURNS
from sire_core.search.unanswered import unanswered_note
from sire_core.serve.outputs import found_text, sufficiency
from sire_core.text.pluralize import count, shorten
from sire_core.types import Hit, UnitKind

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from sire_core.explore.query_result import QueryResult
    from sire_core.search.snapshot import SearchSnapshot

    Parts = AsyncGenerator[str, None]

_MOST_LISTED = 200
_PLACES = (("Ask", "/"), ("Map", "/map"), ("Browse", "/browse"), ("Reason", "/reason"))
_FILES = {"svg": "image/svg+xml", "html": "text/html"}
_MAX_TITLES, _MAX_MAP_TITLE_LETTERS = 100, 40
"""Points of the map whose titles are asked for at once, and letters of a title on it."""


@dataclass(frozen=True, slots=True)
class _Page:
    """A page: its frame, and what its address asks for."""

    title: str
    place: str  # Address of its entry in the navigation
    show: Callable[[Explorer, QueryParams], Parts]
    subject: str = ""  # Parameter of the address that titles the tab of the browser
    has_heading: bool = True

    async def respond(self, explorer: Explorer, request: Request) -> Response:
        """The page, part by part: the frame is painted before anything is read."""
        return StreamingResponse(self._parts(explorer, request.query_params), media_type="text/html")

    async def _parts(self, explorer: Explorer, here: QueryParams) -> Parts:
        tab = f"{shorten(here.get(self.subject, ''), HEADING) or self.title} - {explorer.title}"
        yield render("explorer", "top", tab, _style(), _header(explorer, self.place), self.title * self.has_heading)
        try:
            async with aclosing(self.show(explorer, here)) as shown:
                async for part in shown:
                    yield part
        except SireError as error:
            yield _alert(str(error))
        yield render("explorer", "end")


def application(explorer: Explorer) -> Starlette:
    """The pages of an index."""
    pages = {
        "/": _Page("Ask", "/", _ask, "q"),
        "/reason": _Page("Reason", "/reason", _reason, "q"),
        "/map": _Page("Map", "/map", _map, "q"),
        "/browse": _Page("Browse", "/browse", _browse),
        "/document": _Page("Document", "/browse", _document, "id", has_heading=False),
        "/unit": _Page("Passage", "/browse", _unit, has_heading=False),
        "/entity": _Page("Name", "/browse", _entity),
    }

    async def not_found(request: Request, _error: Exception) -> Response:
        content = render("explorer", "not_found", _header(explorer), request.url.path)
        return HTMLResponse(render("parts", "document", "No such page", _style(), "", content), 404)

    async def script(request: Request) -> Response:
        text = files(__package__).joinpath(request.url.path.lstrip("/")).read_text(encoding="utf-8")
        return Response(text, media_type="text/javascript")

    async def points(request: Request) -> Response:
        snapshot = await explorer.snapshot(request.query_params.get("recipe", ""))
        return JSONResponse(await asyncio.to_thread(lambda: CorpusMap.of(snapshot).data()))

    return Starlette(
        routes=[
            *(Route(path, partial(page.respond, explorer)) for path, page in pages.items()),
            *(Route(f"/{name}.js", script) for name in ("page", "map")),
            Route("/save", partial(_save, explorer)),
            Route("/map/data", points, middleware=[Middleware(GZipMiddleware)]),
            Route("/map/documents", partial(_titles_of_points, explorer)),
        ],
        exception_handlers={404: not_found},
    )


def _style() -> Markup:
    return style("picture", "page", "explorer")


def _header(explorer: Explorer, path: str = "") -> Markup:
    places = [(name, target, target == path) for name, target in _PLACES]
    return render("explorer", "header", explorer.title, places)


def _alert(text: str) -> Markup:
    return render("explorer", "alert", text)


def _reading() -> Markup:
    return render("explorer", "busy", "Reading the index ...")


def _section(content: str) -> Markup:
    return render("explorer", "section", content)


def _number(here: QueryParams, name: str, default: int = 0) -> int:
    text = here.get(name, "")
    return number_of(text) if text.isdecimal() else default


# --- questions --------------------------------------------------------------------------------------------------------


async def _ask(explorer: Explorer, here: QueryParams) -> Parts:
    """A question, its hits and the paths to them; optionally next to those of another recipe."""
    query, other, notes = explorer.read(here)
    snapshot = await explorer.snapshot(query.recipe)
    yield render(
        "explorer",
        "ask",
        query,
        other or ExplorerQuery(""),
        is_open=other is not None or replace(query, question="", recipe="") != ExplorerQuery(""),
        recipes=explorer.recipes(),
        compared=["", *explorer.compared()],
        returns=RETURNS,
        most=MOST_HITS,
        example=await asyncio.to_thread(browse.filter_example, snapshot),
        settings=fragments.settings_html(snapshot.recipe),
    )
    if "q" in here and not query.question.strip():
        notes = [*notes, "The question is empty: type one, or choose one of these."]
    for note in notes:
        yield _alert(note)
    yield _reading()
    if not query.question.strip():
        yield _section(await asyncio.to_thread(_start, explorer, snapshot, query.recipe))
        return
    searches = [await explorer.grown(each, here.getlist("grow")) for each in (query, other) if each]
    if other:
        comparison = comparison_html(*(result for result, _ in searches))
        yield _section(render("explorer", "compared", shorten(query.question, HEADING), comparison))
    sides = [asked_html(result, snapshot, result.search if other else "") for result, snapshot in searches]
    yield render("explorer", "results", sides, _kept(here))
    words, named = here.get("words", ""), here.get("why", "")
    units = await explorer.find(words) if words else []
    titles = told_apart([(unit.title, text_below_title(unit)) for unit in units])
    why = fragments.why_not_html(await explorer.why_not(query, named), query.recipe) if named else ""
    choices = [(unit.id, title) for unit, title in zip(units, titles, strict=True)]
    yield render("explorer", "find_passage", _kept(here), words, choices, why)


def _kept(here: QueryParams) -> list[tuple[str, str]]:
    """Fields that forms below a question send along."""
    return [(name, value) for name, value in here.multi_items() if name not in ("words", "why", "as")]


def _start(explorer: Explorer, snapshot: SearchSnapshot, recipe: str) -> Markup:
    """Where to start: example questions and the main entities."""
    named = str(snapshot.where)
    made: dict[str, list[str]] = snapshot.view.derived("example questions", dict)
    if named not in made:  # not inside of `derived`, for which the searches would wait
        made[named] = list(explorer.questions(snapshot))
    return fragments.start_html(made[named], *browse.main_names(snapshot), len(snapshot.document_ids()), recipe)


def asked_html(result: QueryResult, snapshot: SearchSnapshot, heading: str = "") -> Markup:
    """HTML of a result whose hits link to their pages, and their relative links to documents of the index."""
    addresses = partial(fragments.address, result.recipe), fragments.link_target(snapshot, result.recipe)
    return parts(result, *addresses, heading, fills=not heading)


async def _save(explorer: Explorer, request: Request) -> Response:
    """The picture of a question, or the page of it, as a file."""
    here = request.query_params
    form = here.get("as", "html")
    try:
        query, other, _ = explorer.read(here)
        searches = [await explorer.grown(each, here.getlist("grow")) for each in (query, other) if each]
    except SireError as error:
        return PlainTextResponse(str(error), 400)
    results = [result for result, _ in searches]
    content = results[0].svg() if form == "svg" else page_of_results(*results)
    headers = {"content-disposition": f'attachment; filename="question.{form}"'}
    return Response(content, media_type=_FILES[form], headers=headers) if form in _FILES else Response(status_code=404)


# --- reasoning --------------------------------------------------------------------------------------------------------


async def _reason(explorer: Explorer, here: QueryParams) -> Parts:
    """The steps as they come, and the answer while it is written; without a model it is extracted."""
    question = here.get("q", "")
    strategy, wrong = known_or_first(here.get("strategy") or "ircot", list(STRATEGIES), "strategy")
    has_model = explorer.model is not None
    yield render("explorer", "reason", question, list(STRATEGIES), strategy if has_model else "single", has_model)
    if wrong:
        yield _alert(wrong)
    if not question.strip():
        yield _alert("The question is empty: type one.") if "q" in here else ""
        return
    yield render("explorer", "busy", "Reasoning ...") + render("explorer", "log")
    snapshot = await explorer.snapshot()
    source = PassageSource(explorer.index())
    run = (
        reason(strategy, source, question, stream=True)
        if has_model
        else reason("single", source, question, answer=False, k=2 * HITS)  # as many as `sire ask` reads
    )
    is_written = False
    async with aclosing(run) as steps:
        async for step in steps:
            if isinstance(step, AnswerPiece):
                if not is_written or step.restart:
                    yield render("explorer", "answer_begins", goes_on=is_written)
                is_written = True
                yield escaped(step.text)
            elif isinstance(step, Answer) and has_model:
                begun = "" if is_written else render("explorer", "answer_begins", goes_on=False)
                yield begun + ("" if is_written else escaped(step.text or "No answer.")) + answer_html(step, snapshot)
            elif isinstance(step, Answer):
                yield _section(fragments.nearest_html(question, step.hits, snapshot))
            else:
                yield _section(step_html(step, snapshot))


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
    """HTML of the passages that an answer cites, and whether they suffice."""
    cited = [(number, answer.hits[number - 1]) for number in answer.citations]
    shown = cited or list(enumerate(answer.hits[:5], 1))
    links = fragments.unit_links(snapshot, [hit.unit for _, hit in shown])
    return render(
        "explorer",
        "answer_ends",
        [(number, link) for (number, _), link in zip(shown, links, strict=True)],
        is_cited=bool(cited),
        sufficiency=sufficiency(answer),
        calls=answer.usage.calls,
        searches=answer.usage.retrievals,
    )


# --- the map ----------------------------------------------------------------------------------------------------------


async def _map(explorer: Explorer, here: QueryParams) -> Parts:
    """Documents as points, topics as a list for those who do not see them, and the hits of a question in both."""
    recipe, question = here.get("recipe", ""), here.get("q", "")
    yield render("explorer", "find", question, recipe) + _reading()
    snapshot = await explorer.snapshot(recipe)
    corpus_map = await asyncio.to_thread(CorpusMap.of, snapshot)
    hits = await snapshot.asearch(question, HITS) if question.strip() else []
    lit = await asyncio.to_thread(_lit, snapshot, corpus_map, hits)
    if hits:
        titles = distinct_titles(snapshot, (hit.unit for hit in hits))
        items = [
            link(title, fragments.address(recipe, "unit", hit.unit.id)) for hit, title in zip(hits, titles, strict=True)
        ]
        way = link("How they were found", fragments.address_of("/", q=question, recipe=recipe, k=len(hits)))
        listed = render("explorer", "hits", count(len(hits), "hit"), items)
        yield render("explorer", "found", warning_html(unanswered_note(question, hits)) + listed, way)
    parameters = fragments.address_of("", recipe=recipe)
    yield render("explorer", "map", len(corpus_map.documents), parameters, json.dumps(lit))
    yield _section(topics_html(corpus_map, recipe))


def _lit(snapshot: SearchSnapshot, corpus_map: CorpusMap, hits: Sequence[Hit]) -> dict[str, Any]:
    """Points of hits and of the steps of their paths."""
    points, steps = corpus_map.walks(snapshot, hits)
    seen: dict[int, dict[str, Any]] = {}  # hits first, then what is passed on the way
    shown = [point for point in dict.fromkeys((*points, *chain(*steps))) if point >= 0]
    labels = compact_titles(snapshot, [corpus_map.title(snapshot, point)[1] for point in shown], _MAX_MAP_TITLE_LETTERS)
    for point, label in zip(shown, labels, strict=True):  # several hits of one document are one point
        ranks = [rank for rank, other in enumerate(points, 1) if other == point]
        seen[point] = {"point": point, "ranks": ranks, "title": label}
    return {
        "hits": [one for one in seen.values() if one["ranks"]],
        "passed": [one for one in seen.values() if not one["ranks"]],
        "steps": steps,
    }


def topics_html(corpus_map: CorpusMap, recipe: str) -> Markup:
    """The topics as a list, each with a link to its documents."""
    topics = [
        (
            link(label, fragments.address_of("/browse", topic=topic, recipe=recipe)),
            int((corpus_map.topics == topic).sum()),
        )
        for topic, label in enumerate(corpus_map.labels)
    ]
    return render("explorer", "topics", topics)


async def _titles_of_points(explorer: Explorer, request: Request) -> Response:
    """Titles of points of the map and the addresses of their documents."""
    recipe, wanted = request.query_params.get("recipe", ""), request.query_params.get("points", "")
    snapshot = await explorer.snapshot(recipe)
    corpus_map = await asyncio.to_thread(CorpusMap.of, snapshot)
    points = [number_of(number) for number in wanted.split(",", _MAX_TITLES)[:_MAX_TITLES] if number.isdecimal()]
    if not all(point < len(corpus_map.documents) for point in points):
        return JSONResponse({"error": f"There are only {len(corpus_map.documents)} points."}, 404)

    def read() -> list[dict[str, object]]:
        titled = [corpus_map.title(snapshot, point) for point in points]
        labels = compact_titles(snapshot, [title for _, title in titled], _MAX_MAP_TITLE_LETTERS)
        return [
            {"point": point, "title": title, "short": short, "address": fragments.address(recipe, "document", name)}
            for point, (name, title), short in zip(points, titled, labels, strict=True)
        ]

    return JSONResponse(await asyncio.to_thread(read))


# --- lists, documents, passages and names -----------------------------------------------------------------------------


async def _browse(explorer: Explorer, here: QueryParams) -> Parts:
    """Lists of documents, names and units."""
    yield _reading()
    recipes = explorer.recipes()
    recipe, wrong = known_or_first(here.get("recipe", ""), recipes, "recipe")
    if wrong:
        yield _alert(wrong)
    kind = here.get("kind", "document")
    named = {"recipe": recipe, "kind": kind, "text": here.get("text", ""), "tree": here.get("tree", "")}
    named |= {name: here[name] for name in ("level", "topic") if here.get(name, "").isdecimal()}
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
    yield _section(render("explorer", "choices", [("Recipes: ", addresses), ("", lists)]))
    if kind in ("document", "entity"):
        yield render("explorer", "filter_names", recipe, kind, named["text"])
    # Lists read much of a large index: not on the event loop.
    listed = await asyncio.to_thread(_lists, explorer, snapshot, named, _number(here, "start"))
    yield render("explorer", "drawn", _section(listed))


def _lists(explorer: Explorer, snapshot: SearchSnapshot, here: Mapping[str, str], start: int) -> Markup:
    kind, recipe = here["kind"], here["recipe"]
    caption = fragments.several(kind)
    if "topic" in here:
        corpus_map, topic = CorpusMap.of(snapshot), number_of(here["topic"])
        caption = f"Topic {dict(enumerate(corpus_map.labels)).get(topic, topic)}:"
        page = corpus_map.page(snapshot, topic, start)
        kind = "topic"
    elif kind == "document":
        page = browse.documents(snapshot, here["text"], start)
    elif kind == "entity":
        page = browse.entities(snapshot, here["text"], start)
    else:
        level = number_of(here["level"]) if "level" in here else None
        page = browse.units(snapshot, kind, tree=here["tree"], level=level, start=start)
    content = fragments.page_html(caption, page, here["kind"], recipe, here, start, fragments.ORDERS.get(kind, ""))
    content += fragments.levels_html(browse.levels(snapshot), recipe)
    index = explorer.index(recipe)
    spent: list[tuple[str, int, int, int]] = []
    with suppress(ConfigurationError):  # refused to users who see only a part of the index
        spent = index.spent()
    return content + fragments.failures_html(index.failures(), spent)


async def _document(explorer: Explorer, here: QueryParams) -> Parts:
    name, recipe = here.get("id", ""), here.get("recipe", "")
    yield _reading()
    snapshot = await explorer.snapshot(recipe)
    units = browse.document_units(snapshot, name)
    if not units:
        yield _missing("Document", f"There is no document {name!r}, or you may not see it.")
        return
    title = short_title(snapshot, title_path(units[0].title)[0]) or name

    def repeats(heading: str) -> bool:
        return short_title(snapshot, joined_path([title, heading])) == title

    target = fragments.link_target(snapshot, recipe)
    yield _section(fragments.document_html(name, title, units, recipe, target, repeats))


async def _unit(explorer: Explorer, here: QueryParams) -> Parts:
    """A passage or a derived unit, with its neighbours."""
    name, recipe = here.get("id", ""), here.get("recipe", "")
    yield _reading()
    snapshot = await explorer.snapshot(recipe)
    if Names.of(snapshot).position(name) is None:
        yield _missing("Passage", "There is no such passage or summary, or you may not see it.")
        return
    yield _section(await asyncio.to_thread(_unit_html, snapshot, name, recipe))
    yield await _neighbours(snapshot, name, recipe, here.getlist("grow"))
    yield _section(await asyncio.to_thread(_related_html, snapshot, name, recipe))


async def _neighbours(snapshot: SearchSnapshot, name: str, recipe: str, grown: Sequence[str]) -> Markup:
    """The picture of what is near a unit or a name, and near those of its nodes that are named."""
    picture = await asyncio.to_thread(neighbourhood.neighbour_picture, snapshot, name)
    if picture is None:
        return markup("")
    picture = await asyncio.to_thread(neighbourhood.grown, snapshot, picture, grown)
    return render("explorer", "drawn", fragments.neighbours_html(picture, recipe))


def _missing(heading: str, text: str) -> Markup:
    return _section(render("explorer", "missing", heading, text))


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


async def _entity(explorer: Explorer, here: QueryParams) -> Parts:
    """A name: its spellings, the passages that mention it, and its neighbours."""
    name, recipe, start = here.get("id", ""), here.get("recipe", ""), _number(here, "start")
    yield _reading()
    snapshot = await explorer.snapshot(recipe)
    card = await asyncio.to_thread(browse.entity_card, snapshot, name, start)
    if card is None:
        yield _missing("", "There is no such name, or you may not see it.")
        return
    yield _section(fragments.entity_html(card, recipe))
    yield await _neighbours(snapshot, name, recipe, here.getlist("grow"))
    yield _section(fragments.entity_lists_html(card, recipe, start))
