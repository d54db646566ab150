"""A result as an HTML page that works offline, without a script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sire_core.explore.drawing import HALF_WIDTH, WINDOW_WIDTH, drawing
from sire_core.explore.markdown_html import highlighted, markdown_html
from sire_core.explore.picture import Picture, branches
from sire_core.explore.short_titles import told_apart
from sire_core.explore.templates import markup, render, style
from sire_core.search.explanation import without_sessions
from sire_core.text.pluralize import count, shorten
from sire_core.text.snippets import snippet
from sire_core.types import digest

if TYPE_CHECKING:
    from markupsafe import Markup

    from sire_core.explore.paths import Reason
    from sire_core.explore.query_result import QueryResult, ResultHit

    AddressOf = Callable[[str, str], str]

# Nothing may be loaded and nothing may run, even if something were not escaped.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_BODY = "body{margin:0;background:#fff}@media (prefers-color-scheme: dark){body{background:#14171b}}\n"
_WIDTH_OF = re.compile(r'width="(\d+)"')
_MAX_SNIPPET_LETTERS, _MAX_WHOLE_HIT_LETTERS = 360, 480
"""Letters of the sentences of a folded hit, and of a hit that is shown as a whole."""
_WIDE = 900  # Width from which the letters of a picture that fits 700 pixels are too small
HEADING = 300  # Letters of a question that are its heading
_STEPS = {"vector": "text", "entity": "link", "question": "name"}  # Names of the steps of paths on pages


def page_style() -> Markup:
    """Styles inside an element of the classes `sire sire-page`; the contrast of colours is at least 4.5 to 1."""
    return style("picture", "page")


def page(*results: QueryResult) -> str:
    """A whole page of one question; of two results with their ranks side by side."""
    title = shorten(results[0].question, HEADING)
    comparison = comparison_html(*results[:2]) if len(results) > 1 else ""
    sides = [parts(result, heading=result.search, fills=not comparison) for result in results]
    content = render("parts", "results", title, comparison, sides)
    return f"{render('parts', 'document', title, markup(_BODY) + page_style(), markup(_POLICY), content)}\n"


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A table that scrolls in a narrow window."""
    return render("parts", "table", caption, head, rows)


def link(text: str, target: str) -> Markup:
    """A link."""
    return render("parts", "link", text, target)


def comparison_html(one: QueryResult, other: QueryResult) -> Markup:
    """Ranks of the hits of two searches; each rank links to its hit."""

    def cell(result: QueryResult, rank: int, text: str = "") -> str:
        if not rank:
            return f"not among the first {len(result.hits)}" if result.hits else "no hits"
        return link(text or str(rank), f"#{_prefix(result)}-{rank}")

    rows = [
        (cell(*((one, first) if first else (other, second)), title), cell(one, first), cell(other, second))
        for title, first, second in compared(one, other)
    ]
    return table(f"Ranks with {one.search} and {other.search}", ("passage", one.search, other.search), rows)


def compared(one: QueryResult, other: QueryResult) -> Iterator[tuple[str, int, int]]:
    """Title, rank in one result and rank in the other (0 if it is not among the hits) of every hit of two results."""
    ranks = [{hit.id: hit.rank for hit in result.hits} for result in (one, other)]
    hits = {hit.id: hit for result in (one, other) for hit in result.hits}
    titles = told_apart([(hit.title, hit.text) for hit in hits.values()])
    for name, title in zip(hits, titles, strict=True):
        yield title, ranks[0].get(name, 0), ranks[1].get(name, 0)


def fragment(result: QueryResult) -> str:
    """The part of a page for notebooks."""
    return f"<style>{page_style()}</style>{parts(result)}"


def parts(
    result: QueryResult,
    address: AddressOf | None = None,
    target: AddressOf | None = None,
    heading: str = "",
    *,
    fills: bool = True,
) -> Markup:
    """The part of a page without its style.

    Args:
        result: The result.
        address: Returns the address of a unit or an entity by its kind and id.
        target: Returns the address of a relative link by the id of its document; empty if it leads nowhere.
        heading: Its heading; empty for the question.
        fills: Whether the picture may be as wide as the page.
    """
    name = _prefix(result)
    links = {hit.id: f"#{name}-{hit.rank}" for hit in result.hits}
    if address is not None:
        others = [node for node in result.picture.nodes if node.kind != "question" and node.id not in links]
        links |= {node.id: address(node.kind, node.id) for node in others}
    label = f"The paths to the hits of {result.search}"
    moves = address is not None
    drawn = region(result.picture, label, links, name, moves=moves, fills=fills) if result.hits else markup("")
    kinds = {node.id: node.name_kind for node in result.picture.nodes}
    sentences = [
        (highlighted(sentence.quoted, result.question), link(f"[{sentence.hit}]", f"#{name}-{sentence.hit}"))
        for sentence in result.extracts
    ]
    notes = [
        count(len(result.hits), "hit"),
        f"recipe {result.search}",
        *([f"filter {result.filter}"] if result.filter else []),
        f"{result.units:,} texts searched in {result.seconds * 1000:.0f} ms{', loading included' * result.is_first}",
    ]
    return render(
        "parts",
        "result",
        result,
        heading=heading or shorten(result.question, HEADING),
        notes=notes,
        sentences=sentences,
        picture=drawn + left_out_html(result.picture, address, f"#{name}-1"),
        hits=[_hit(hit, result.question, kinds, name, address, target) for hit in result.hits],
    )


def _prefix(result: QueryResult) -> str:
    """Prefix of the ids of a result: several may stand on one page, also in a notebook."""
    return f"sire-{digest(result.question, result.search, result.filter, *(hit.id for hit in result.hits), size=4)}"


def region(
    picture: Picture, label: str, links: Mapping[str, str], name: str, *, moves: bool, fills: bool = True
) -> Markup:
    """A picture in a region that scrolls, with buttons for the page's script if it moves; a list if it is narrow."""
    svg = drawing(picture, links=links, name=name, expands=moves, fills=fills)
    size = _WIDTH_OF.search(svg)
    width = int(size[1]) if size else 0
    return render(
        "parts",
        "region",
        drawing=svg,
        branches=branches(picture),
        kinds=[node.name_kind for node in picture.nodes],
        label=label,
        links=links,
        moves=moves,
        is_wide=width > (_WIDE if fills else HALF_WIDTH),
        continues=width > WINDOW_WIDTH,
    )


def left_out_html(picture: Picture, address: AddressOf | None, rest: str = "") -> Markup:
    """Number of nodes that are not drawn, with links to where they are listed.

    `rest` is the address of the list of those that are neighbours of no node; empty for none.
    """
    nodes = {node.id: node for node in picture.nodes}
    left_out = []
    for name, number in picture.not_drawn:
        node = nodes.get(name)
        text = f"{count(number, 'more neighbour')} of {node.label}" if node else count(number, "node")
        left_out.append((text, f"{address(node.kind, name)}#more" if node and address else "" if node else rest))
    return render("parts", "not_drawn", left_out) if left_out else markup("")


def warning_html(note: str) -> Markup:
    """A warning above hits; nothing for none."""
    return render("parts", "warning", note)


def _hit(
    hit: ResultHit,
    question: str,
    kinds: Mapping[str, str],
    name: str,
    address: AddressOf | None,
    target: AddressOf | None,
) -> Markup:
    """A hit: the sentences that answer, and all of it behind a button; a short hit as a whole."""
    of_document = partial(target, hit.doc_ids[0]) if target and hit.doc_ids else None
    over = {label: kinds.get(node, "") for reason in hit.reasons for node, label in reason.over}
    names = {label: over.get(label, "") for label in hit.names}
    sentences = ""
    if len(hit.text) > _MAX_WHOLE_HIT_LETTERS:
        sentences = snippet(without_sessions(hit.text), question, _MAX_SNIPPET_LETTERS, hit.led_by)
    return render(
        "parts",
        "hit",
        hit,
        name,
        title=hit.name if address is None else link(hit.name, address(hit.kind, hit.id)),
        text=markdown_html(hit.text, question, names, of_document),
        snippet=sentences and highlighted(sentences, question, names),
        reasons=list(map(_reason, hit.reasons)),
    )


def _reason(reason: Reason) -> tuple[str, str, str]:
    """A step on the path to a hit: what it is called, its note, and the nodes that it passes."""
    # The names of the question are in the note as it spells them, whatever passages call them.
    over = ", ".join(label for _, label in reason.over if label not in reason.note and reason.step != "question")
    step = reason.step.split(":")[0]  # "vector:chunk" says to programs what kind of unit it was; the hit says it here
    return _STEPS.get(step, step), reason.note, over
