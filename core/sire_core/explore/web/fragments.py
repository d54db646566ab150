"""HTML of lists, documents, entities and comparisons. No framework, no script."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from sire_core.documents.blocks import HEADING
from sire_core.documents.document_names import citation, cited_names
from sire_core.explore.browse import PAGE, Page, document_ids, linked_document
from sire_core.explore.highlight import escaped, plain_text
from sire_core.explore.markdown_html import OutlineEntry, highlighted, markdown_html
from sire_core.explore.name_kinds import NAME_KINDS
from sire_core.explore.picture import kind_name
from sire_core.explore.result_page import NEAREST, left_out_html, legend, mark, region, table, warning_html
from sire_core.explore.short_titles import distinct_titles
from sire_core.metadata_values import shown_value
from sire_core.search.extracts import extract_sentences
from sire_core.search.unanswered import unanswered_note
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sire_core.explore.browse import EntityCard, TableRow
    from sire_core.explore.picture import Picture
    from sire_core.explore.why_not import WhyNot
    from sire_core.protocols import Recipe
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Failure, Hit, Unit


def address(recipe: str, kind: str, name: str) -> str:
    """Address of the page of a unit, an entity or a document."""
    path = "document" if kind == "document" else "entity" if kind == "entity" else "unit"
    return f"/{path}?{urlencode({'id': name, 'recipe': recipe}, errors='replace')}"


def name_address(recipe: str, row: TableRow, kind: str = "entity") -> str:
    """Address of the page of a row; of a name that is no entity, of its search."""
    query = {"q": row.label, "recipe": recipe}
    return address(recipe, kind, row.id) if row.id else f"/?{urlencode(query, errors='replace')}"


def link(text: str, target: str) -> str:
    """A link."""
    return f'<a href="{escaped(target)}">{escaped(text)}</a>'


def link_target(snapshot: SearchSnapshot, recipe: str) -> Callable[[str, str], str]:
    """Resolves relative links of a document, by its id, to addresses of documents of the index."""
    known = document_ids(snapshot)

    def target(doc_id: str, link: str) -> str:
        name = linked_document(link, doc_id, known)
        return address(recipe, "document", name) if name else ""

    return target


def not_found_html(header: str, style: str, path: str) -> str:
    """A whole page for an address that there is not."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>No such page</title><style>{style}</style></head><body>'
        f'{header}<main class="sire sire-page"><h1>There is no page {escaped(path)}</h1>'
        f"<p>{link('Ask a question', '/')} or {link('browse the documents', '/browse')}.</p></main></body></html>"
    )


def start_html(questions: Sequence[str], left_out: str, main: Sequence[TableRow], documents: int, recipe: str) -> str:
    """Where to start: questions that this corpus answers, and what it mentions most."""
    here = urlencode({"kind": "entity", "recipe": recipe})
    targets = {text: f"/?{urlencode({'q': text}, errors='replace')}" for text in questions}
    asked = "".join(f"<li>{link(text, target)}</li>" for text, target in targets.items())
    named = "".join(
        f'<li class="is-{row.name_kind}">{mark(row.name_kind)}{link(row.label, name_address(recipe, row))} '
        f"<small>{escaped(row.about)}</small></li>"
        for row in main
    )
    about = f'<p class="meta">{escaped(left_out)}</p>' if left_out else ""
    return (
        f"<h2>{escaped(count(documents, 'document'))}</h2>"
        + (f'<h3>Questions to begin with</h3><ul class="start">{asked}</ul>' if asked else "")
        + (f'<h3>Names, and how many passages mention each</h3>{about}<ul class="names">{named}</ul>' if named else "")
        + legend(row.name_kind for row in main)
        + (f"<p>{link('All names', f'/browse?{here}')}</p>" if named else "")
    )


ORDERS = {
    "document": ", by title",
    "entity": ", most frequent first",
    "chunk": ", in the order of the documents",
    "topic": ", most typical first",
}
"""How lists are sorted, by what they hold."""


def unit_links(snapshot: SearchSnapshot, units: Sequence[Unit]) -> list[str]:
    """A link to each of some units."""
    titles = distinct_titles(snapshot, units)
    links = zip(units, titles, strict=True)
    return [link(title, address(snapshot.recipe.name, unit.kind.value, unit.id)) for unit, title in links]


def nearest_html(question: str, hits: Sequence[Hit], snapshot: SearchSnapshot) -> str:
    """HTML of the sentences that answer best, each with a link to its passage, where no model answers."""
    links = unit_links(snapshot, [hit.unit for hit in hits])
    sentences = "".join(
        f"<p>{highlighted(sentence.quoted, question)} <small>from {links[sentence.hit - 1]}</small></p>"
        for sentence in extract_sentences(question, hits)
    )
    shown = f'<div class="text quotes">{sentences}</div>' if sentences else "<p>No sentence of the hits answers it.</p>"
    warning = warning_html(unanswered_note(question, hits))
    about = '<p class="meta">No language model has checked whether they answer the question.</p>'
    return f"{warning}<h2>{NEAREST}</h2>{shown}{about}"


def several(kind: str) -> str:
    """Units of a kind in words, as a caption begins."""
    name = kind_name(kind).capitalize()
    return name.replace("ummary", "ummaries") if "ummary" in name else f"{name}s"


def page_html(
    caption: str, page: Page, kind: str, recipe: str, here: Mapping[str, str], start: int, order: str = ""
) -> str:
    """A list in an order that its caption says, with links to its rows and to the previous and next page."""
    rows = [
        (
            (mark(row.name_kind) if row.name_kind else "") + link(row.label, name_address(recipe, row, kind)),
            escaped(row.about),
        )
        for row in page.rows
    ]
    numbers = f" {_range_text(start, len(rows), page.total)}{order}" if rows else ": none"
    shown = table(f"{caption if rows else caption.rstrip(':')}{numbers}", ("name", "passages"), rows)
    return shown + legend(row.name_kind for row in page.rows) + _ways("/browse", here, start, page.total)


def picture_html(picture: Picture | None, recipe: str, name: str) -> str:
    """A picture whose nodes link to their pages, and what it leaves out with links to where that is listed."""
    if picture is None or len(picture.nodes) < 2:
        return ""
    links = {node.id: address(recipe, node.kind, node.id) for node in picture.nodes if node.kind != "question"}
    left_out = left_out_html(picture, partial(address, recipe))
    return region(picture, picture.title, links, name, moves=True) + left_out


def neighbours_html(picture: Picture, recipe: str) -> str:
    """A section with a picture of neighbours."""
    return f'<section class="sire sire-page">{picture_html(picture, recipe, "near")}</section>'


def related_html(entities: Sequence[tuple[str, str]], related: Mapping[str, Sequence[Unit]], recipe: str) -> str:
    """The entities of a passage as links, and by caption the units that it was made from, or that were made from it."""
    names = "".join(f"<li>{link(name, address(recipe, 'entity', entity))}</li>" for entity, name in entities)
    rows = {
        caption: [(escaped(kind_name(u.kind.value)), link(u.title, address(recipe, "unit", u.id))) for u in units]
        for caption, units in related.items()
    }
    tables = "".join(table(caption, ("kind", "title"), cells) for caption, cells in rows.items() if cells)
    return f'<div id="more">{f"<h3>Names in it</h3><ul class=names>{names}</ul>" if names else ""}{tables}</div>'


def unit_html(
    unit: Unit, doc_ids: Sequence[str], passages: Sequence[str], recipe: str, target: Callable[[str], str] | None
) -> str:
    """A passage or derived unit: its text and documents; a passage with its place among those of its document."""
    number = passages.index(unit.id) if unit.id in passages else -1
    place = f"#passage-{number + 1}" if number >= 0 else ""
    documents = ", ".join(
        link(citation(cited_names([name], unit.metadata, {})), address(recipe, "document", name) + place)
        for name in doc_ids
    )
    level = f", level {unit.level}" if unit.level else ""
    tree = f", tree {unit.tree}" if unit.tree else ""
    about = f"{kind_name(unit.kind.value)}{level}{tree}" + (f" {number + 1} of {len(passages)}" if place else "")
    ways = "".join(
        f" | {link(text, address(recipe, 'unit', passages[other]))}"
        for text, other in (("previous", number - 1), ("next", number + 1))
        if place and 0 <= other < len(passages)
    )
    shown = {key: shown_value(value) for key, value in unit.metadata.items()}
    about_it = [(escaped(key), escaped(value)) for key, value in shown.items() if value not in doc_ids]
    metadata = table("Metadata", ("key", "value"), about_it)
    return (
        f'<h1>{escaped(unit.title)}</h1><p class="meta">{escaped(about)}; from {documents}{ways}</p>'
        f"{markdown_html(unit.text, target=target)}{metadata if about_it else ''}"
    )


def document_html(
    name: str,
    title: str,
    passages: Sequence[Unit],
    recipe: str,
    target: Callable[[str, str], str],
    repeats: Callable[[str], bool],
) -> str:
    """A document to read: its passages in order under one title, with an outline that leads to its headings.

    Args:
        name: Its id, by which links are resolved.
        title: Its title.
        passages: Its passages, in order.
        recipe: For links to the pages of passages.
        target: Returns the address of a relative link by the id of its document.
        repeats: Whether a heading only repeats the title.
    """
    outline: list[OutlineEntry] = []
    rows = [dict(passage.metadata) for passage in passages]
    common = {key: value for key, value in rows[0].items() if all(row.get(key) == value for row in rows)}
    pieces = []
    for number, (passage, row) in enumerate(zip(passages, rows, strict=True), 1):
        own = "".join(f", {key} {shown_value(value)}" for key, value in row.items() if key not in common)
        first = passage.blocks[0]
        words = plain_text(passage.text[first.start : first.end]).rstrip(":")
        text = passage.text[first.end :] if first.kind == HEADING and repeats(words) else passage.text
        pieces.append(
            f'<div class="piece" id="passage-{number}">'
            f"<small>{link(f'passage {number}{own}', address(recipe, 'chunk', passage.id))}</small>"
            f"{markdown_html(text, target=partial(target, name), outline=outline)}</div>"
        )
    shown_values = {key: shown_value(value) for key, value in common.items()}
    about = [(escaped(key), escaped(value)) for key, value in shown_values.items() if value != name]
    headings = "".join(
        f'<li class="h{entry.level}"><a href="#{entry.id}">{escaped(entry.text.rstrip(":"))}</a></li>'
        for entry in outline
        if entry.text
    )
    shown = f'<nav aria-label="Outline"><h2>Outline</h2><ul>{headings}</ul></nav>' if len(outline) > 1 else ""
    return (
        f'<h1>{escaped(title)}</h1><p class="meta">{escaped(name)}; {count(len(passages), "passage")}</p>'
        f"{table('Metadata', ('key', 'value'), about) if about else ''}"
        f'<div class="reading">{shown}<article>{"".join(pieces)}</article></div>'
    )


def entity_html(card: EntityCard, recipe: str) -> str:
    """An entity: its names and why they are the same, its passages and relations."""
    joined = {name: rest for name, *rest in card.joined}
    about = NAME_KINDS[card.kind.kind] + (f": {card.kind.known_by}" if card.kind.known_by else "")
    names = []
    for name, passages in card.spellings:
        passage, title, other = joined.get(name, ("", "", ""))
        why = f"{link(title, address(recipe, 'unit', passage))} also says {escaped(other)}" if passage else ""
        if not why and name != card.spellings[0][0]:
            why = "another spelling of the name, or a similar name"
        names.append((escaped(name), f"{passages:,}", why))
    return (
        f'<h2>{mark(card.kind.kind, says=False)}{escaped(card.name)}</h2><p class="meta">{escaped(about)}</p>'
        f"{table('Its names', ('name', 'passages', 'why it is the same'), names)}"
    )


def entity_lists_html(card: EntityCard, recipe: str, start: int) -> str:
    """A page of the passages that mention an entity, each with the sentence that does, and its relations."""
    titled = [
        (link(title, address(recipe, "unit", name)), escaped(sentence)) for name, title, sentence in card.passages
    ]
    caption = f"Passages in which it was found as a name: {_range_text(start, len(titled), card.total)}"
    here = {"id": card.id, "recipe": recipe}
    passages = table(caption, ("passage", "sentence"), titled) + _ways("/entity", here, start, card.total)
    rows = [(link(text, address(recipe, "unit", name)),) for name, text in card.relations[:PAGE]]
    caption = f"Relations: {_range_text(0, len(rows), len(card.relations))}"
    return f'<div id="more">{passages}</div>{table(caption, ("relation",), rows) if rows else ""}'


def _range_text(start: int, shown: int, total: int) -> str:
    return f"{start + 1:,} to {start + shown:,} of {total:,}" if shown else "none"


def _ways(path: str, here: Mapping[str, str], start: int, total: int) -> str:
    """Links to the previous and the next page of a list."""
    pages = (("previous", start - PAGE), ("next", start + PAGE))
    ways = [
        link(text, f"{path}?{urlencode({**here, 'start': other}, errors='replace')}")
        for text, other in pages
        if 0 <= other < total
    ]
    return f"<p>{' | '.join(ways)}</p>" if ways else ""


def settings_html(recipe: Recipe) -> str:
    """The settings of a recipe that a search may change: name, value and what it does."""
    of_build = {name for organizer in recipe.organizers for name in getattr(organizer, "__dataclass_fields__", ())}
    rows = [
        (escaped(f"{name}={json.dumps(value)}"), escaped(recipe.texts.get(name, "")))
        for name, value in recipe.config.items()
        if name not in {*of_build, "preset"}
    ]
    shown = table(f"Settings of {recipe.name}", ("setting and its value", "what it does"), rows)
    return f"<details><summary>Settings of {escaped(recipe.name)}</summary>{shown}</details>"


def levels_html(levels: Sequence[tuple[str, str, int, int]], recipe: str) -> str:
    """Trees by level; every row links to its units."""
    rows = []
    for kind, tree, level, units in levels:
        here = {"kind": kind, "tree": tree, "level": level, "recipe": recipe}
        rows.append((link(f"{tree or kind}, level {level}", f"/browse?{urlencode(here)}"), f"{units:,}"))
    return table("Trees by level; trees of reports are perspectives", ("tree", "texts"), rows) if rows else ""


def failures_html(failures: Sequence[Failure], spent: Sequence[tuple[str, int, int, int]]) -> str:
    """Failures of the build, and the usage of models; nothing where there was neither."""
    failed = [(escaped(failure.where), escaped(failure.reason)) for failure in failures]
    paid = [(escaped(stage or "other"), *(f"{number:,}" for number in numbers)) for stage, *numbers in spent]
    return (table("Failures; the next build tries them again", ("what", "why"), failed) if failed else "") + (
        table("Usage of models", ("stage", "answers", "tokens in", "tokens out"), paid) if paid else ""
    )


def why_not_html(result: WhyNot, recipe: str) -> str:
    """Why a passage is not among the hits."""
    lines = "".join(f"<li><b>{escaped(name)}</b>: {escaped(note)}</li>" for name, note in result.reasons)
    title = f'<h3 id="why-not" tabindex="-1">{escaped(result.title)}</h3>'
    return f"{title}<ul>{lines}</ul>{picture_html(result.picture, recipe, 'why')}"
