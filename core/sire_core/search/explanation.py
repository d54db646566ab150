"""Hits and their reasons as text for people."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sire_core.documents.blocks import HEADING, Block, block_text
from sire_core.documents.document_names import citation, cited_names, documents_of
from sire_core.documents.heading_paths import title_path
from sire_core.documents.markdown_sections import plain_heading
from sire_core.search.snapshot import SearchSnapshot, check_query
from sire_core.text.pluralize import count, count_units, kind_name, some
from sire_core.text.snippets import snippet
from sire_core.types import Hit, PathStep, Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import View

_SESSION = re.compile(r"^[ \t]*```[^\n]*\n[ \t]*>>> (?:[^`]|`(?!``))*```[ \t]*$|^[ \t]*>>> [^\n]*$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_MAX_LISTED_CHILDREN = 6
_EXCERPT = 400


async def explain_query(snapshot: SearchSnapshot, query: str, k: int, *, returns: str) -> str:
    """One block per hit: score, kind, documents, the steps that led to it as a tree, and what a summary stands on."""
    query = check_query(query, k)
    hits = await snapshot.asearch(query, k, returns=returns)
    counts = snapshot.counts()
    size = count_units(counts.kinds, counts.chunks)
    lines = [f"Question: {query}", f"{count(len(hits), 'hit')} among {size}"]
    titles = _Titles(snapshot)
    for number, hit in enumerate(hits, 1):
        unit = hit.unit
        name = f" {unit.title!r}" if unit.title else ""
        lines.append(f"\n[{number}] {hit.score:.4f}  {kind_name(unit.kind)}{name}  documents: {documents_of(hit)}")
        lines += [f"    {line}" for line in (*_tree(hit, titles), *_route(hit, titles, snapshot.view))]
        lines.append(f"    | {snippet(without_sessions(text_below_title(unit)), query, _EXCERPT)}")
    return "\n".join(lines)


def _tree(hit: Hit, titles: _Titles) -> list[str]:
    """The steps to a hit: each below the one that it goes on from, side by side where they have nothing in common."""
    chains: list[list[PathStep]] = []
    for step in hit.path:
        if chains and set(chains[-1][-1].ids[-1:]) & set(step.ids[:-1]):
            chains[-1].append(step)
        else:
            chains.append([step])
    lines: list[str] = []
    for position, chain in enumerate(chains):
        last = position == len(chains) - 1
        for depth, step in enumerate(chain):
            before = "" if not depth else ("   " if last else "\u2502  ") + "   " * (depth - 1)
            branch = "\u2514\u2500 " if depth or last else "\u251c\u2500 "
            to = step.ids[-1:] if step.ids[-1:] != (hit.unit.id,) else ()
            after = chain[depth + 1].note if depth + 1 < len(chain) else ""
            reached = "".join(f" \u2192 {name}" for name in map(titles.of, to) if name and name not in after)
            kind = "" if step.step.startswith("vector:") else f"{step.step.split(':')[0]}: "
            lines.append(f"{before}{branch}{kind}{' '.join(step.note.split())}{reached}")
    return lines


class _Titles:
    """Names of the units of a snapshot, as far as its filter shows them."""

    def __init__(self, snapshot: SearchSnapshot) -> None:
        self._view = snapshot.view
        self._allowed = snapshot.view.allowed(snapshot.where)

    def of(self, unit_id: str) -> str:
        """The title; the source or id of what has none; empty for what the filter hides."""
        position = self._view.places().get(unit_id)
        if position is None:
            return unit_id
        if self._allowed is not None and not self._allowed[position]:
            return ""
        [unit] = self._view.units([position])
        return unit.title or citation(cited_names([unit_id], unit.metadata, {}))


def text_below_title(unit: Unit) -> str:
    """The text as people read it: without headings that only repeat the title, and without runs of empty lines."""
    return _BLANK_LINES.sub("\n\n", unit.text[_start_below_title(unit) :]).strip("\n").rstrip()


def blocks_below_title(unit: Unit) -> list[Block]:
    """Blocks of the text without headings that only repeat the title."""
    start = _start_below_title(unit)
    return [replace(block, start=max(block.start, start)) for block in unit.blocks if block.end > start]


def _start_below_title(unit: Unit) -> int:
    """Where a text begins behind headings, or a first line, that only repeat its title."""
    names = {name.strip() for name in (unit.title, *title_path(unit.title))}
    start = 0
    for number, block in enumerate(unit.blocks):
        line = block_text(unit.text, block).partition("\n")[0]
        if (number and block.kind != HEADING) or plain_heading(line) not in names:
            return start
        end = unit.text.find("\n", block.start) if block.kind != HEADING else block.end
        start = end + 1 if 0 <= end < block.end else block.end
        if start < block.end:  # the title on the first line of a paragraph
            return start
    return start


def without_sessions(text: str) -> str:
    """A text for excerpts: without what is typed into an interpreter (`>>> 1 + 1`), if it has anything else."""
    rest = _SESSION.sub("", text)
    return rest if rest.strip() else text


def _route(hit: Hit, titles: _Titles, view: View) -> list[str]:
    """Units that a summary was made from, one level down."""
    if hit.unit.kind is UnitKind.CHUNK:
        return []
    children = [edge.target for edge in view.edges() if edge.kind == "child" and edge.source == hit.unit.id]
    return [f"summarises: {some([titles.of(child) for child in children], _MAX_LISTED_CHILDREN)}"] if children else []
