"""Hits and their reasons as text for people; an answer without a model, of quoted sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.algorithms.pluralize import count, count_units
from sire_core.algorithms.snippets import rate_sentences, readable_sentences, stems
from sire_core.types import Hit, PathStep, Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import View
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Hit

_SHOWN = 6


async def explain_query(snapshot: SearchSnapshot, query: str, k: int, *, returns: str) -> str:
    """One block per hit: score, kind, documents, the steps that led to it as a tree, and what a summary stands on."""
    hits = await snapshot.asearch(query, k, returns=returns)
    counts = snapshot.counts()
    size = count_units(counts.kinds, counts.chunks)
    lines = [f"Question: {query}", f"{count(len(hits), 'hit')} among {size}"]
    titles = _Titles(snapshot)
    for number, hit in enumerate(hits, 1):
        unit = hit.unit
        name = f" {unit.title!r}" if unit.title else ""
        lines.append(f"\n[{number}] {hit.score:.4f}  {unit.kind}{name}  documents: {_some(hit.doc_ids)}")
        lines += [f"    {line}" for line in (*_tree(hit, titles), *_route(hit, titles, snapshot.view))]
        lines += [f"    | {line}" for line in text_below_title(unit).splitlines()]
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
    for place, chain in enumerate(chains):
        last = place == len(chains) - 1
        for depth, step in enumerate(chain):
            before = "" if not depth else ("   " if last else "\u2502  ") + "   " * (depth - 1)
            branch = "\u2514\u2500 " if depth or last else "\u251c\u2500 "
            to = step.ids[-1:] if step.ids[-1:] != (hit.unit.id,) else ()
            reached = "".join(f" \u2192 {name}" for name in filter(None, map(titles.of, to)))
            lines.append(f"{before}{branch}{step.step}: {' '.join(step.note.split())}{reached}")
    return lines


class _Titles:
    """What the units of a snapshot are called, as far as its filter shows them."""

    def __init__(self, snapshot: SearchSnapshot) -> None:
        self._view = snapshot.view
        self._allowed = snapshot.view.allowed(snapshot.where)

    def of(self, unit_id: str) -> str:
        """The title; the id of what has none or is no unit; empty for what the filter hides."""
        place = self._view.places().get(unit_id)
        if place is None:
            return unit_id
        if self._allowed is not None and not self._allowed[place]:
            return ""
        [unit] = self._view.units([place])
        return unit.title or unit_id


def text_below_title(unit: Unit) -> str:
    """The text as people read it: without a first line that only repeats the title, and without runs of empty lines."""
    first, _, rest = unit.text.partition("\n")
    text = rest if rest.strip() and first.lstrip("#").strip() == unit.title.strip() else unit.text
    kept: list[str] = []
    for line in text.split("\n"):
        if line.strip() or (kept and kept[-1]):
            kept.append(line if line.strip() else "")
    return "\n".join(kept).rstrip()


def _route(hit: Hit, titles: _Titles, view: View) -> list[str]:
    """What a summary stands on, one level down."""
    if hit.unit.kind is UnitKind.CHUNK:
        return []
    children = [edge.target for edge in view.edges() if edge.kind == "child" and edge.source == hit.unit.id]
    return [f"summarises: {_some([titles.of(child) for child in children])}"] if children else []


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:_SHOWN])
    return f"{shown}, and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else shown


_SENTENCES = 4
_RANK_DECAY = 0.5
"""How much less a sentence of the next hit counts."""
_REPEATED = 0.7
"""Factor of every further sentence of one hit."""
_LINK_BONUS, _KIND_BONUS, _FIRST_BONUS = 0.5, 0.5, 0.3
"""Of a sentence that leads to another hit, of one with what is asked for, and of a text's first one: in units of the
rate of the hit's best sentence. Set on the even questions of three sets."""
_PREFIX = 60
"""Characters of a linking sentence that are compared; notes shorten long ones."""
_ASKS_NUMBER = re.compile(
    r"\b(?:when|how (?:many|much|long|old|far|large)|(?:what|which) (?:year|date|number))\b", re.IGNORECASE
)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where|which|(?:what|whose) name)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d")
_NAME = re.compile(r"\b[A-Z]\w+")


@dataclass(frozen=True, slots=True)
class Extract:
    """A sentence of the evidence."""

    text: str
    hit: int  # Number of the hit that it stands in, from 1
    place: int  # Its place among the sentences of that hit, from 0


def extract_sentences(question: str, hits: Sequence[Hit], n: int = _SENTENCES) -> list[Extract]:
    """Choose the sentences that answer a question, in the order of the hits and of their texts."""
    rated: list[tuple[Extract, float]] = []
    leading = _linking_sentences(hits)
    for number, hit in enumerate(hits, 1):
        rated += _rated(question, number, hit, leading.get(number, ()))
    chosen: list[Extract] = []
    used: Counter[int] = Counter()
    while len(chosen) < n and rated:
        best = max(rated, key=lambda pair: pair[1] * _REPEATED ** used[pair[0].hit])[0]
        chosen.append(best)
        used[best.hit] += 1
        rated = [pair for pair in rated if pair[0].text != best.text]
    return sorted(chosen, key=lambda extract: (extract.hit, extract.place))


def _rated(question: str, number: int, hit: Hit, leading: Sequence[str]) -> list[tuple[Extract, float]]:
    """Sentences of a hit, and how well they answer; none if nothing connects the hit with the question."""
    sentences = readable_sentences(text_below_title(hit.unit))
    shared = rate_sentences(sentences, question)
    asked = stems(question)
    best = max(shared, default=0.0)
    if not best and not leading and not stems(hit.unit.title) & asked and not _is_reached(hit):
        return []
    rated = []
    for place, (text, rate) in enumerate(zip(sentences, shared, strict=True)):
        total = rate / best if best else 0.0
        total += _FIRST_BONUS * (place == 0)
        total += _LINK_BONUS * any(beginning in text for beginning in leading)
        total += _KIND_BONUS * _has_kind_asked(question, asked, text)
        rated.append((Extract(text, number, place), total / (1 + _RANK_DECAY * (number - 1))))
    return rated


def _is_reached(hit: Hit) -> bool:
    return any(step.step == "entity" for step in hit.path)


def _linking_sentences(hits: Sequence[Hit]) -> dict[int, list[str]]:
    """By hit, the beginnings of its sentences that lead to another hit."""
    numbers = {hit.unit.id: number for number, hit in enumerate(hits, 1)}
    found: dict[int, list[str]] = {}
    for hit in hits:
        for step in hit.path:
            text = step.note.partition(": ")[2].strip(". ")[:_PREFIX]
            if step.step == "entity" and text and step.ids[0] in numbers:
                found.setdefault(numbers[step.ids[0]], []).append(text)
    return found


def _has_kind_asked(question: str, asked: frozenset[str], sentence: str) -> bool:
    """Whether a sentence has a number or a new name where the question asks for one."""
    if _ASKS_NUMBER.search(question):
        return bool(_NUMBER.search(sentence))
    return bool(_ASKS_NAME.search(question)) and any(not stems(name) & asked for name in _NAME.findall(sentence)[1:])
