"""Lists of an index to browse: documents, units by kind, entities, trees."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from posixpath import dirname, join, normpath, splitext
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from sire_core.documents.furniture import is_greeting
from sire_core.documents.heading_paths import title_path
from sire_core.explore.frequent_names import frequent_names, is_told
from sire_core.explore.highlight import first_words, sentence_with
from sire_core.explore.name_kinds import NameKind, kind_of_name
from sire_core.explore.paths import Names
from sire_core.explore.short_titles import compact_title, distinct_titles, document_titles, short_title
from sire_core.filters import filter_text, parse_filter
from sire_core.knowledge import RELATES
from sire_core.knowledge.edge_columns import EdgeColumns
from sire_core.protocols import IntArray
from sire_core.search.explanation import text_below_title
from sire_core.search.snapshot import SearchSnapshot
from sire_core.text.lexicon import FUNCTION_WORDS, OPENERS
from sire_core.text.pluralize import shorten
from sire_core.types import Unit, UnitKind

PAGE = 25  # Rows per page
_SAMPLED_PASSAGES = 8  # Passages that are read to see whether they say something with a name
_MIN_NAMES = 4  # Names below which code and words in small letters are listed, too

_GRAMMAR = FUNCTION_WORDS | OPENERS
_DIGITS = re.compile(r"(\d+)")
_MAX_VALUE_LETTERS = 30  # Letters of a value in an example
_QUOTE_LETTERS = 200  # Letters of a sentence in a list

_NOTE_LABELS = frozenset("fixme n.b. nb p.s. ps todo xxx".split())  # Labels that open a note
_CODE_SIGN = re.compile(r"^\W|[._=()<>{}`$]\w|\bor\b")  # Signs of code and of its options in a name


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a list: an id, a label and a description; of an entity also what it is (a key of `NAME_KINDS`).

    A name that is no entity, because too many passages have it, has no id.
    """

    id: str
    label: str
    about: str
    name_kind: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list."""

    rows: tuple[TableRow, ...]  # The rows
    total: int  # Number of rows of the whole list


@dataclass(frozen=True, slots=True)
class EntityCard:
    """An entity."""

    id: str  # Its id
    name: str  # Its most frequent name
    kind: NameKind  # What it is, and how that is known
    spellings: tuple[tuple[str, int], ...]  # Names with the number of passages that use them
    # For every name but the first: the passage (id, title) that uses it together with another name of the entity, and
    # that name; all empty if no passage does
    joined: tuple[tuple[str, str, str, str], ...]
    # Passages that mention it (id, title, the sentence with its name), as far as the page shows them
    passages: tuple[tuple[str, str, str], ...]
    total: int  # Number of all passages that mention it
    relations: tuple[tuple[str, str], ...]  # Its relations (id, text), if the recipe has relations


def documents(snapshot: SearchSnapshot, text: str = "", start: int = 0) -> Page:
    """Documents by title, those without one by their ids; numbers count as numbers."""
    view = snapshot.view
    passing = np.flatnonzero(view.passing_chunks(snapshot.where))
    numbers, first, counts = np.unique(view.pool.chunk_documents[passing], return_index=True, return_counts=True)
    ids = view.derived("explore documents", view.pool.document_ids)
    titles = document_titles(snapshot)
    order: list[int] = view.derived(
        "explore documents by title", lambda: sorted(range(len(ids)), key=lambda n: _natural(titles[n] or ids[n]))
    )
    visible = dict(zip(numbers.tolist(), zip(passing[first].tolist(), counts.tolist(), strict=True), strict=True))
    selected = [(number, *visible[number]) for number in order if number in visible]
    wanted = text.strip().lower()
    if wanted:
        labels = (f"{ids[number]}\n{document_label(snapshot, number, chunk)}" for number, chunk, _ in selected)
        selected = [row for row, label in zip(selected, labels, strict=True) if wanted in label.lower()]
    rows = [
        TableRow(ids[number], document_label(snapshot, number, chunk), f"{passages:,}")
        for number, chunk, passages in selected[start : start + PAGE]
    ]
    return Page(tuple(rows), len(selected))


def _natural(title: str) -> list[str | int]:
    """Key of a title that sorts `Chapter 9` before `chapter 10`."""
    return [int(part) if number % 2 else part for number, part in enumerate(_DIGITS.split(title.casefold()))]


def document_label(snapshot: SearchSnapshot, number: int, chunk: int, size: int = 0) -> str:
    """Label of a document: its title, or that of its first visible passage, or its first words, or its id.

    `chunk` is the number of its first visible passage; `size` the maximum number of letters, 0 for the whole title.
    """
    title = document_titles(snapshot)[number]
    unit = None if title else _passage(snapshot, chunk)
    if unit is not None:
        title = title_path(short_title(snapshot, unit.title))[0] or first_words(unit.text)
    title = title or snapshot.view.derived("explore documents", snapshot.view.pool.document_ids)[number]
    return compact_title(snapshot, title, size) if size else title


def document_units(snapshot: SearchSnapshot, doc_id: str) -> list[Unit]:
    """Visible passages of a document, in its order."""
    view = snapshot.view
    ids = view.derived("explore documents", view.pool.document_ids)
    if doc_id not in ids:
        return []
    chunks = np.flatnonzero(view.pool.chunk_documents == ids.index(doc_id))
    chunks = chunks[view.passing_chunks(snapshot.where)[chunks]]
    return [unit for unit in (_passage(snapshot, int(chunk)) for chunk in chunks) if unit is not None]


def document_ids(snapshot: SearchSnapshot) -> Collection[str]:
    """Ids of the visible documents; read once per filter."""
    visible_ids: Collection[str] = snapshot.view.derived(
        f"explore document ids {snapshot.where}", lambda: frozenset(snapshot.document_ids())
    )
    return visible_ids


def linked_document(target: str, doc_id: str, visible_ids: Collection[str]) -> str:
    """Id of the document to which a relative link of another document leads; empty if there is none."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or not parts.path:
        return ""
    path = unquote(parts.path)
    name = normpath(path.lstrip("/") if path.startswith("/") else join(dirname(doc_id), path))
    stem = splitext(name)[0]
    likely = (name, f"{name}.md", f"{name}.html", f"{stem}.md", f"{name}/index.html", f"{name}/index.md")
    return next((other for other in (*likely, f"{name}/README.md") if other in visible_ids), "")


def units(snapshot: SearchSnapshot, kind: str, *, tree: str = "", level: int | None = None, start: int = 0) -> Page:
    """Units of a kind."""
    selected = snapshot.positions(kind)
    if level is not None:
        selected = selected[snapshot.view.pool.levels[selected] == level]
    if tree:
        selected = selected[np.isin(selected, _of_tree(snapshot, kind, tree))]
    shown = snapshot.view.units(selected[start : start + PAGE])
    labels = distinct_titles(snapshot, shown)
    rows = (TableRow(u.id, label, f"{len(u.chunk_ids):,}") for u, label in zip(shown, labels, strict=True))
    return Page(tuple(rows), len(selected))


def levels(snapshot: SearchSnapshot) -> list[tuple[str, str, int, int]]:
    """Levels of all trees, the highest first: kind, tree, level, number of units. Trees of reports are perspectives."""
    counts: dict[tuple[str, str, int], int] = {}
    for kind in (UnitKind.SIM_SUMMARY, UnitKind.REL_SUMMARY, UnitKind.CROSS_SUMMARY, UnitKind.REPORT):
        for unit in snapshot.view.units(snapshot.positions(kind.value)):
            key = (kind.value, unit.tree, unit.level)
            counts[key] = counts.get(key, 0) + 1
    return [(*key, number) for key, number in sorted(counts.items(), key=lambda item: (*item[0][:2], -item[0][2]))]


def entities(snapshot: SearchSnapshot, text: str = "", start: int = 0) -> Page:
    """Names, those of most passages first, with their kinds: frequent ones, which are no entities, and entities."""
    page = _entities(snapshot, text, start)
    return replace(page, rows=_with_kinds(snapshot, page.rows))


def _with_kinds(snapshot: SearchSnapshot, rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    names = Names.of(snapshot)
    kinds = (names.kind(row.id, row.label) if row.id else kind_of_name(row.label) for row in rows)
    return tuple(replace(row, name_kind=kind.kind) for row, kind in zip(rows, kinds, strict=True))


def _entities(snapshot: SearchSnapshot, text: str, start: int) -> Page:
    names = Names.of(snapshot)
    graph = names.graph
    seen = names.seen()
    wanted = text.strip().lower()
    numbers = _named(names)
    if wanted:
        lists = graph.names.lists
        all_lists = lists.names_of(np.arange(len(lists.hashes)))
        fitting = [i for i, spellings in enumerate(all_lists) if any(wanted in name.lower() for name in spellings)]
        numbers = np.intersect1d(numbers, graph.entities[seen & np.isin(graph.names.numbers, fitting)])
    counts = np.bincount(graph.entities[seen], minlength=len(graph.entity_ids))[numbers]
    frequent = [(name, n) for name, n in frequent_names(snapshot).items() if wanted in name.lower()]
    both = np.concatenate([np.array([n for _, n in frequent], dtype=np.int64), counts])

    def row(rank: int) -> TableRow:
        if rank < len(frequent):
            return TableRow("", frequent[rank][0], f"{both[rank]:,}")
        entity = graph.entity_ids[numbers[rank - len(frequent)]]
        return TableRow(entity, names.entity(entity) or "(no name)", f"{both[rank]:,}")

    shown = np.argsort(-both, kind="stable")[start : start + PAGE]
    return Page(tuple(map(row, shown.tolist())), len(both))


def entity_count(snapshot: SearchSnapshot) -> int:
    """Number of names `entities` lists."""
    return len(frequent_names(snapshot)) + len(_named(Names.of(snapshot)))


def _named(names: Names) -> IntArray:
    """Numbers of the entities that some visible passage spells out, without those that are frequent names."""
    graph, snapshot = names.graph, names.snapshot

    def read() -> IntArray:
        spelled = np.asarray(graph.names.lists.texts.sizes() > len("[]"))[graph.names.numbers]
        frequent, lists = {name.lower() for name in frequent_names(snapshot)}, graph.names.lists
        all_lists = lists.names_of(np.arange(len(lists.hashes)))
        alike = [i for i, spellings in enumerate(all_lists) if not frequent.isdisjoint(map(str.lower, spellings))]
        entities = np.unique(graph.entities[np.isin(graph.names.numbers, alike)]).tolist()
        listed = [entity for entity in entities if names.entity(graph.entity_ids[entity]).lower() in frequent]
        return np.setdiff1d(graph.entities[names.seen() & spelled], listed)

    numbers: IntArray = snapshot.view.derived(f"explore named entities {snapshot.where}", read)
    return numbers


def _is_said(snapshot: SearchSnapshot, row: TableRow) -> bool:
    """True if most of some passages with a name say something of their own with it; see `is_told`."""
    names = Names.of(snapshot)
    passages = np.unique(names.graph.passages[names.mentions(row.id)])
    some = passages[np.linspace(0, len(passages) - 1, min(_SAMPLED_PASSAGES, len(passages))).astype(int)]
    return is_told(row.label, snapshot.view.units(names.graph.chunk_positions[some]))


def main_names(snapshot: SearchSnapshot) -> tuple[str, tuple[TableRow, ...]]:
    """The names of most passages without code, headings and the like, unless too few are left; and what is left out."""
    rows: dict[str, TableRow] = {}
    for start in range(0, 8 * PAGE, PAGE):
        page = _entities(snapshot, "", start).rows
        named = [row for row in page if not _CODE_SIGN.search(row.label) and _is_name(row.label)]
        for row in named:
            if not row.id or _is_said(snapshot, row):
                rows.setdefault(row.label, row)
        if len(rows) >= PAGE or len(page) < PAGE:
            break
    if len(rows) < _MIN_NAMES:
        return "", entities(snapshot).rows
    left_out = "Without code, captions, headings, sentences that passages share, and lower-case words."
    return left_out, _with_kinds(snapshot, list(rows.values())[:PAGE])


def _is_name(label: str) -> bool:
    """True if a name begins with no small letter and has other words than those of grammar (`From`, `AS IS`)."""
    is_grammar = all(word in _GRAMMAR or word.endswith(("n't", "n\u2019t")) for word in label.lower().split())
    is_label = label.lower() in _NOTE_LABELS or is_greeting(label)
    return not label[0].islower() and not is_grammar and not is_label


def entity_card(snapshot: SearchSnapshot, entity_id: str, start: int = 0) -> EntityCard | None:
    """An entity with a page of its passages, those about it first; None if the id is no entity's."""
    names = Names.of(snapshot)
    mentions = names.mentions(entity_id)
    if not len(mentions):
        return None
    graph, spelled = names.graph, names.spellings(entity_id)
    about_first = mentions[np.argsort(~graph.titles[mentions], kind="stable")]
    passages = list(dict.fromkeys(graph.passages[about_first].tolist()))
    shown = graph.chunk_positions[passages[start : start + PAGE]]
    return EntityCard(
        id=entity_id,
        name=next(iter(spelled), "(no name)"),
        kind=names.kind(entity_id, next(iter(spelled), "")),
        spellings=tuple(spelled.items()),
        joined=tuple(_joining_passage(snapshot, names, mentions, name) for name in list(spelled)[1:]),
        passages=tuple(_with_sentence(snapshot, int(position), entity_id) for position in shown),
        total=len(passages),
        relations=_relations(snapshot, names, entity_id),
    )


def _joining_passage(
    snapshot: SearchSnapshot, names: Names, mentions: IntArray, name: str
) -> tuple[str, str, str, str]:
    for mention in mentions.tolist():
        spellings = names.graph.names.names(mention)
        if name in spellings and len(spellings) > 1:
            other = next(other for other in spellings if other != name)
            return (name, *_titled(snapshot, int(names.graph.chunk_positions[names.graph.passages[mention]])), other)
    return (name, "", "", "")


def _relations(snapshot: SearchSnapshot, names: Names, entity_id: str) -> tuple[tuple[str, str], ...]:
    """Ids and texts of the relations of an entity, in pool order."""
    if names.position(entity_id) is None:
        return ()
    view = snapshot.view
    ends: EdgeColumns = view.derived("relation ends", lambda: EdgeColumns.of_blocks(view.notes(f"{RELATES}/")))
    relations = {name.decode() for name in ends.sources[ends.targets == entity_id.encode()].tolist()}
    positions = sorted(position for position in map(names.position, relations) if position is not None)
    return tuple((unit.id, shorten(unit.text, 160)) for unit in view.units(positions))


def _titled(snapshot: SearchSnapshot, position: int) -> tuple[str, str]:
    [unit] = snapshot.view.units([position])
    return unit.id, short_title(snapshot, unit.title) or shorten(unit.text, 80)


def _with_sentence(snapshot: SearchSnapshot, position: int, entity_id: str) -> tuple[str, str, str]:
    """Id and title of a passage, and the sentence that names an entity, or the first one."""
    unit_id, title = _titled(snapshot, position)
    [unit] = snapshot.view.units([position])
    name = Names.of(snapshot).entity(entity_id, unit_id)
    return unit_id, title, sentence_with(text_below_title(unit), name, _QUOTE_LETTERS)


def filter_example(snapshot: SearchSnapshot) -> str:
    """A filter that some of the documents pass, over a key of theirs; empty if they share no value."""
    numbers, metadata = snapshot.view.chunk_metadata
    visible = numbers[snapshot.view.passing_chunks(snapshot.where)]
    counts: Counter[tuple[str, Any]] = Counter()
    for number, passages in zip(*np.unique(visible, return_counts=True), strict=True):
        for key, value in metadata[int(number)].items():
            is_plain = isinstance(value, (str, int, float)) and len(str(value)) <= _MAX_VALUE_LETTERS
            if is_plain and key != "source" and not key.startswith("sire_"):
                counts[key, value] += int(passages)
    for (key, value), number in counts.most_common():
        if 1 < number < len(visible) and (condition := parse_filter({key: value})):
            return filter_text(condition)
    source = next((str(row["source"]) for row in metadata if "/" in str(row.get("source", ""))), "")
    condition = parse_filter({"source": {"contains": source.partition("/")[0]}}) if source else None
    return filter_text(condition) if condition else ""


def _of_tree(snapshot: SearchSnapshot, kind: str, tree: str) -> Sequence[int]:
    positions = snapshot.positions(kind)
    derived = zip(positions.tolist(), snapshot.view.units(positions), strict=True)
    return [position for position, unit in derived if unit.tree == tree]


def _passage(snapshot: SearchSnapshot, chunk: int) -> Unit | None:
    return Names.of(snapshot).unit(snapshot.view.pool.chunk_ids[chunk].decode()) or _shared(snapshot, chunk)


def _shared(snapshot: SearchSnapshot, chunk: int) -> Unit | None:
    """The unit of a chunk that repeats the text of an earlier chunk."""
    pool = snapshot.view.pool
    owners = np.searchsorted(pool.indptr, np.flatnonzero(pool.indices == chunk), side="right") - 1
    return next(iter(snapshot.view.units(np.intersect1d(owners, snapshot.positions())[:1])), None)
