"""HTML of lists, documents, names and answers in the explorer. No framework, no script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from sire_core.documents.blocks import HEADING
from sire_core.documents.document_names import citation, cited_names
from sire_core.explore.browse import PAGE, EntityCard, Page, TableRow, document_ids, linked_document
from sire_core.explore.highlight import plain_text
from sire_core.explore.markdown_html import OutlineEntry, highlighted, markdown_html
from sire_core.explore.picture import Picture, kind_name
from sire_core.explore.result_page import left_out_html, link, region, table
from sire_core.explore.short_titles import distinct_titles
from sire_core.explore.templates import NEAREST, markup, render
from sire_core.metadata_values import shown_value
from sire_core.search.extracts import extract_with_note

if TYPE_CHECKING:
    from markupsafe import Markup

    from sire_core.explore.why_not import WhyNot
    from sire_core.protocols import Recipe
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Failure, Hit, Unit


def address_of(path: str, **parameters: object) -> str:
    """Address of a page with its parameters."""
    return f"{path}?{urlencode(parameters, errors='replace')}"


def address(recipe: str, kind: str, name: str) -> str:
    """Address of the page of a unit, an entity or a document."""
    return address_of(f"/{kind if kind in ('document', 'entity') else 'unit'}", id=name, recipe=recipe)


def name_address(recipe: str, row: TableRow, kind: str = "entity") -> str:
    """Address of the page of a row; of a name that is no entity, of its search."""
    return address(recipe, kind, row.id) if row.id else address_of("/", q=row.label, recipe=recipe)


def link_target(snapshot: SearchSnapshot, recipe: str) -> Callable[[str, str], str]:
    """Resolves relative links of a document, by its id, to addresses of documents of the index."""
    visible_ids = document_ids(snapshot)

    def target(doc_id: str, link: str) -> str:
        name = linked_document(link, doc_id, visible_ids)
        return address(recipe, "document", name) if name else ""

    return target


def start_html(
    questions: Sequence[str], left_out: str, main: Sequence[TableRow], documents: int, recipe: str
) -> Markup:
    """Where to start: questions that this corpus answers, and what it mentions most."""
    return render(
        "explorer",
        "start",
        [link(text, address_of("/", q=text)) for text in questions],
        left_out,
        [(row, name_address(recipe, row)) for row in main],
        documents,
        address_of("/browse", kind="entity", recipe=recipe),
    )


ORDERS = {
    "document": ", by title",
    "entity": ", most frequent first",
    "chunk": ", in the order of the documents",
    "topic": ", most typical first",
}
"""Order of lists in words, by what they hold."""


def unit_links(snapshot: SearchSnapshot, units: Sequence[Unit]) -> list[Markup]:
    """A link to each of some units."""
    titles = distinct_titles(snapshot, units)
    links = zip(units, titles, strict=True)
    return [link(title, address(snapshot.recipe.name, unit.kind.value, unit.id)) for unit, title in links]


def nearest_html(question: str, hits: Sequence[Hit], snapshot: SearchSnapshot) -> Markup:
    """The sentences that answer best, each with a link to its passage, where no model answers."""
    links = unit_links(snapshot, [hit.unit for hit in hits])
    extracts, note = extract_with_note(question, hits)
    sentences = [
        (highlighted(sentence.quoted, question), markup("<small>from {}</small>").format(links[sentence.hit - 1]))
        for sentence in extracts
    ]
    return render("explorer", "nearest", note, NEAREST, sentences)


def several(kind: str) -> str:
    """Units of a kind in words, as a caption begins."""
    name = kind_name(kind).capitalize()
    return name.replace("ummary", "ummaries") if "ummary" in name else f"{name}s"


def page_html(
    caption: str, page: Page, kind: str, recipe: str, here: Mapping[str, str], start: int, order: str = ""
) -> Markup:
    """A list in an order that its caption says, with links to its rows and to the previous and next page."""
    rows = [
        (render("explorer", "name", row.name_kind, link(row.label, name_address(recipe, row, kind))), row.about)
        for row in page.rows
    ]
    numbers = f"{caption} {_range_text(start, len(rows), page.total)}{order}"
    return render(
        "explorer",
        "listed",
        numbers if rows else f"{caption.rstrip(':')}: none",
        rows,
        [row.name_kind for row in page.rows],
        _ways("/browse", here, start, page.total),
    )


def picture_html(picture: Picture | None, recipe: str, name: str) -> Markup:
    """A picture whose nodes link to their pages, and what it leaves out with links to where that is listed."""
    if picture is None or len(picture.nodes) < 2:
        return markup("")
    links = {node.id: address(recipe, node.kind, node.id) for node in picture.nodes if node.kind != "question"}
    left_out = left_out_html(picture, partial(address, recipe))
    return region(picture, picture.title, links, name, moves=True) + left_out


def neighbours_html(picture: Picture, recipe: str) -> Markup:
    """A section with a picture of neighbours."""
    return markup('<section class="sire sire-page">{}</section>').format(picture_html(picture, recipe, "near"))


def related_html(entities: Sequence[tuple[str, str]], related: Mapping[str, Sequence[Unit]], recipe: str) -> Markup:
    """The entities of a passage as links, and by caption the units that it was made from, or that were made from it."""
    tables = [
        (caption, [(kind_name(u.kind.value), link(u.title, address(recipe, "unit", u.id))) for u in units])
        for caption, units in related.items()
        if units
    ]
    return render("explorer", "related", [link(n, address(recipe, "entity", i)) for i, n in entities], tables)


def unit_html(
    unit: Unit, doc_ids: Sequence[str], passages: Sequence[str], recipe: str, target: Callable[[str], str] | None
) -> Markup:
    """A passage or derived unit: its text and documents; a passage with its place among those of its document."""
    number = passages.index(unit.id) if unit.id in passages else -1
    anchor = f"#passage-{number + 1}" if number >= 0 else ""
    level = f", level {unit.level}" if unit.level else ""
    tree = f", tree {unit.tree}" if unit.tree else ""
    shown = {key: shown_value(value) for key, value in unit.metadata.items()}
    return render(
        "explorer",
        "unit",
        title=unit.title,
        about=f"{kind_name(unit.kind.value)}{level}{tree}" + (f" {number + 1} of {len(passages)}" if anchor else ""),
        documents=[
            link(citation(cited_names([name], unit.metadata, {})), address(recipe, "document", name) + anchor)
            for name in doc_ids
        ],
        links=[
            link(text, address(recipe, "unit", passages[other]))
            for text, other in (("previous", number - 1), ("next", number + 1))
            if anchor and 0 <= other < len(passages)
        ],
        text=markdown_html(unit.text, target=target),
        metadata=[(key, value) for key, value in shown.items() if value not in doc_ids],
    )


def document_html(
    name: str,
    title: str,
    passages: Sequence[Unit],
    recipe: str,
    target: Callable[[str, str], str],
    repeats: Callable[[str], bool],
) -> Markup:
    """A document to read: its passages in order under one title, with an outline that leads to its headings.

    `target` gives the address of a relative link by the id of its document; `repeats` tells whether a heading only
    repeats the title.
    """
    outline: list[OutlineEntry] = []
    rows = [dict(passage.metadata) for passage in passages]
    common = {key: value for key, value in rows[0].items() if all(row.get(key) == value for row in rows)}
    pieces = []
    for number, (passage, row) in enumerate(zip(passages, rows, strict=True), 1):
        differing = "".join(f", {key} {shown_value(value)}" for key, value in row.items() if key not in common)
        first = passage.blocks[0]
        words = plain_text(passage.text[first.start : first.end]).rstrip(":")
        text = passage.text[first.end :] if first.kind == HEADING and repeats(words) else passage.text
        place_link = link(f"passage {number}{differing}", address(recipe, "chunk", passage.id))
        pieces.append((place_link, markdown_html(text, target=partial(target, name), outline=outline)))
    shown = {key: shown_value(value) for key, value in common.items()}
    metadata = [(key, value) for key, value in shown.items() if value != name]
    return render("explorer", "document", name, title, metadata, outline, pieces)


def entity_html(card: EntityCard, recipe: str) -> Markup:
    """An entity: its names and why they are the same, its passages and relations."""
    joined = {name: rest for name, *rest in card.joined}
    names = []
    for name, passages in card.spellings:
        passage, title, other = joined.get(name, ("", "", ""))
        why: str = "" if name == card.spellings[0][0] else "another spelling of the name, or a similar name"
        if passage:
            why = render("explorer", "joined", link(title, address(recipe, "unit", passage)), other)
        names.append((name, f"{passages:,}", why))
    return render("explorer", "entity", card, names)


def entity_lists_html(card: EntityCard, recipe: str, start: int) -> Markup:
    """A page of the passages that mention an entity, each with the sentence that does, and its relations."""
    passages = [(link(title, address(recipe, "unit", name)), sentence) for name, title, sentence in card.passages]
    relations = [(link(text, address(recipe, "unit", name)),) for name, text in card.relations[:PAGE]]
    return render(
        "explorer",
        "entity_lists",
        f"Passages in which it was found as a name: {_range_text(start, len(passages), card.total)}",
        passages,
        _ways("/entity", {"id": card.id, "recipe": recipe}, start, card.total),
        f"Relations: {_range_text(0, len(relations), len(card.relations))}",
        relations,
    )


def _range_text(start: int, shown: int, total: int) -> str:
    return f"{start + 1:,} to {start + shown:,} of {total:,}" if shown else "none"


def _ways(path: str, here: Mapping[str, str], start: int, total: int) -> list[Markup]:
    """Links to the previous and the next page of a list."""
    pages = (("previous", start - PAGE), ("next", start + PAGE))
    return [link(text, address_of(path, **here, start=other)) for text, other in pages if 0 <= other < total]


def settings_html(recipe: Recipe) -> Markup:
    """The settings of a recipe that a search may change: name, value and what it does."""
    of_build = {name for organizer in recipe.organizers for name in getattr(organizer, "__dataclass_fields__", ())}
    rows = [
        (f"{name}={json.dumps(value)}", recipe.texts.get(name, ""))
        for name, value in recipe.config.items()
        if name not in {*of_build, "preset"}
    ]
    return render("explorer", "settings", recipe.name, rows)


def levels_html(levels: Sequence[tuple[str, str, int, int]], recipe: str) -> Markup:
    """Trees by level; every row links to its units."""
    rows = []
    for kind, tree, level, units in levels:
        target = address_of("/browse", kind=kind, tree=tree, level=level, recipe=recipe)
        rows.append((link(f"{tree or kind}, level {level}", target), f"{units:,}"))
    caption = "Trees by level; trees of reports are perspectives"
    return table(caption, ("tree", "texts"), rows) if rows else markup("")


def failures_html(failures: Sequence[Failure], spent: Sequence[tuple[str, int, int, int]]) -> Markup:
    """Failures of the build, and the usage of models; nothing where there was neither."""
    failed = [(failure.where, failure.reason) for failure in failures]
    paid = [(stage or "other", *(f"{number:,}" for number in numbers)) for stage, *numbers in spent]
    listed = table("Failures; the next build tries them again", ("what", "why"), failed) if failed else markup("")
    return listed + (table("Usage of models", ("stage", "answers", "tokens in", "tokens out"), paid) if paid else "")


def why_not_html(result: WhyNot, recipe: str) -> Markup:
    """Why a passage is not among the hits."""
    return render("explorer", "why_not", result, picture_html(result.picture, recipe, "why"))
