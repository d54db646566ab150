"""Why a passage is not among the hits of a question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.wording import count
from sire_core.explore.marks import marked, question_words
from sire_core.explore.paths import Names, path_picture
from sire_core.explore.picture import Picture
from sire_core.search.explanation import text_below_title
from sire_core.types import Hit, UnitKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.protocols import Ranking
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Unit

__all__ = ["WhyNot", "find_passages", "why_not"]

_FAR = 5_000
"""Units of a ranking that are looked through for a passage."""
_MANY = 8


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What keeps a passage from its place.

    Attributes:
        title: Of the passage.
        place: Among the passages of the ranking, from 1; 0 when it is further down than was looked.
        reasons: What was looked at, and what it says.
        picture: How the question leads to the passage all the same, as far as it does.
    """

    title: str
    place: int
    reasons: tuple[tuple[str, str], ...]
    picture: Picture | None = None


async def find_passages(snapshot: SearchSnapshot, text: str, n: int = 10) -> list[Unit]:
    """Passages by words of their titles and texts, for people who look for a certain one.

    Args:
        snapshot: What is searched; its filter holds.
        text: Some words.
        n: How many at most; those that share no word are left out.
    """
    import asyncio

    wanted = [word.lower() for word in question_words(text) or text.split()]
    return await asyncio.to_thread(_with_words, snapshot, wanted, n) if wanted and snapshot.size else []


def _with_words(snapshot: SearchSnapshot, wanted: Sequence[str], n: int) -> list[Unit]:
    """Passages with the rarest of some words; all texts are read, which takes a second for 100,000 of them."""
    view = snapshot.view
    mask = view.kinds == list(view.kind_names).index(UnitKind.CHUNK.value)
    allowed = view.allowed(snapshot.where)
    positions = np.flatnonzero(mask if allowed is None else mask & allowed)
    has = np.zeros((len(positions), len(wanted)), dtype=bool)
    for row, position in enumerate(positions.tolist()):
        unit, _ = view.pool.unit(position)
        words = f"{unit.title}\n{unit.text}".lower()
        has[row] = [word in words for word in wanted]
    scores = has @ np.log1p(len(positions) / np.maximum(has.sum(axis=0), 1))
    best = np.argsort(-scores, kind="stable")[:n]
    return view.units(positions[best[scores[best] > 0]])


async def why_not(snapshot: SearchSnapshot, question: str, passage: str, k: int = 5) -> WhyNot:
    """Say where a passage stands for a question, and what it has and lacks.

    Args:
        snapshot: What was searched, with the question's filter.
        question: The question.
        passage: Id of a passage.
        k: How many hits were shown.
    """
    names = Names.of(snapshot)
    position, unit = names.position(passage), names.unit(passage)
    if position is None or unit is None:
        return WhyNot(passage, 0, (("filter", f"The passage does not pass the filter {snapshot.where}."),))
    ranked = await snapshot.rank(question, k)
    selected = await snapshot.selected(question, ranked, k)
    order = await _passages(selected, snapshot)
    place = order.index(position) + 1 if position in order else 0
    found = [
        ("place", _place(place, order, k)),
        *await _selection(position, ranked, selected, k),
        ("vectors", await _vectors(position, order[:k], question, snapshot, names)),
        ("words", _words(unit, question)),
        *_names(unit, order[:k], question, names),
    ]
    hit = snapshot.view.hit(position, float(selected.scores_at(np.array([position]))[0]), selected)
    picture = path_picture(snapshot, question, [Hit(hit.unit, hit.score, hit.doc_ids, hit.path)])
    # Drawn alone it would be the first hit: it stands at the place that it has.
    nodes = tuple(replace(node, place=place) if node.place else node for node in picture.nodes)
    return WhyNot(unit.title or unit.id, place, tuple(found), replace(picture, nodes=nodes))


async def _passages(ranking: Ranking, snapshot: SearchSnapshot) -> list[int]:
    """Positions of the passages that a ranking leads to, in order."""
    positions, _ = await ranking.top(min(_FAR, snapshot.size))
    found: dict[int, None] = {}
    for position in positions.tolist():
        found.update(dict.fromkeys(snapshot.view.passages_of(position, ranking)))
    return list(found)


def _place(place: int, order: list[int], k: int) -> str:
    if not place:
        return f"It is none of the first {len(order):,} passages."
    if place <= k:
        return f"It is hit {place} of {k}."
    return f"It comes at place {place:,} of {len(order):,} passages; the first {k} are shown."


async def _selection(position: int, ranked: Ranking, selected: Ranking, k: int) -> list[tuple[str, str]]:
    """What selectors did to it: only where they are what keeps it out."""
    first = (await ranked.top(k))[0].tolist()
    if selected is ranked or position not in first or position in (await selected.top(k))[0].tolist():
        return []
    note = f"The ranking has it at place {first.index(position) + 1}; what the recipe selects from it leaves it out."
    return [("selection", note)]


async def _vectors(position: int, hits: list[int], question: str, snapshot: SearchSnapshot, names: Names) -> str:
    view = snapshot.view
    cosines = await view.cosines(question, await view.embed_query(question), snapshot.where)
    own = float(cosines[position])
    chunks = names.graph.chunk_positions
    inside = chunks if names.allowed is None else chunks[names.allowed[chunks]]
    nearer = int((cosines[inside] > own).sum())
    least = min((float(cosines[hit]) for hit in hits), default=0.0)
    note = f"Cosine {own:.3f} with the question: {nearer:,} passages are nearer to it."
    return f"{note} Of the hits, the farthest has {least:.3f}." if hits else note


def _words(unit: Unit, question: str) -> str:
    text = f"{unit.title}\n{text_below_title(unit)}"
    shared = {piece.lower() for piece, kind in marked(text, question) if kind}
    wanted = question_words(question)
    missing = [word for word in wanted if not marked(word, " ".join(shared))[0][1]] if shared else wanted
    has = f"It shares {', '.join(sorted(shared))}." if shared else "It shares no word with the question."
    return f"{has} It lacks {', '.join(missing)}." if missing and shared else has


def _names(unit: Unit, hits: list[int], question: str, names: Names) -> list[tuple[str, str]]:
    """Names that could have led to it."""
    graph = names.graph
    if not len(graph.entities):
        return []
    position = names.position(unit.id)
    number = {int(found): n for n, found in enumerate(graph.chunk_positions.tolist())}
    own = set(graph.entities[graph.passages == number[int(position or 0)]].tolist())
    inside = None if names.allowed is None else names.allowed[graph.chunk_positions]
    asked = graph.link(question, inside)
    named = [name for entity, name in asked.items() if entity in own]
    said = ", ".join(asked.values()) or "nothing that a passage names"
    found = [
        ("names of the question", f"The question names {said}; the passage names {', '.join(named) or 'none of it'}.")
    ]
    others = {number[hit] for hit in hits if hit in number and hit != position}
    theirs = set(graph.entities[np.isin(graph.passages, list(others))].tolist())
    counts = {entity: len(names.mentions(graph.entity_ids[entity])) for entity in own & theirs}
    shared = sorted(counts, key=lambda entity: (counts[entity], entity))[:_MANY]
    links = [f"{names.entity(graph.entity_ids[e])} (in {count(counts[e], 'passage')})" for e in shared]
    note = f"It shares {', '.join(links)} with the hits." if links else "No name joins it with a hit."
    return [*found, ("names of the hits", note)]
