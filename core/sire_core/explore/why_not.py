"""Why a passage is not among the hits of a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sire_core.arguments import similar_names
from sire_core.errors import QueryError
from sire_core.explore.browse import document_units
from sire_core.explore.frequent_names import frequent_names
from sire_core.explore.highlight import marked, question_words
from sire_core.explore.paths import Names, path_picture
from sire_core.explore.picture import Picture
from sire_core.explore.short_titles import with_short_title
from sire_core.filters import filter_text
from sire_core.protocols import FloatArray, IntArray, Ranking
from sire_core.search.explanation import text_below_title
from sire_core.search.snapshot import SearchSnapshot
from sire_core.text.pluralize import count
from sire_core.text.words import whole_name
from sire_core.types import Hit, Unit

_FAR = 5_000  # Number of units of a ranking that are searched for the passage
_MAX_REASONS = 8
_COSTS, _REACHED = 3, -100.0  # Parts of a score that are named, and the least score of what was a candidate
_NAMELESS = "The question names nothing that only some of the passages mention."


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a passage is not a hit.

    Attributes:
        title: Of the passage.
        rank: Rank among the passages, from 1; 0 if it is below the passages that were examined.
        reasons: What was examined, and the finding.
        picture: The path from the question to the passage, if there is one.
    """

    title: str
    rank: int
    reasons: tuple[tuple[str, str], ...]
    picture: Picture | None = None


async def find_passages(snapshot: SearchSnapshot, text: str, n: int = 10) -> list[Unit]:
    """Find at most `n` passages that the filter passes with a word, in title or text, that begins as one of `text`."""
    import asyncio

    wanted = [word.lower() for word in question_words(text) or text.split()]
    return await asyncio.to_thread(_with_words, snapshot, wanted, n) if wanted and snapshot.size else []


def _with_words(snapshot: SearchSnapshot, wanted: Sequence[str], n: int) -> list[Unit]:
    """Passages with the rarest of the words; reads all texts, about a second per 100,000."""
    view, positions = snapshot.view, snapshot.positions()
    beginnings = [re.compile(rf"(?<!\w){re.escape(word)}") for word in wanted]
    has = np.zeros((len(positions), len(wanted)), dtype=bool)
    for row, position in enumerate(positions.tolist()):
        unit, _ = view.pool.unit(position)
        words = f"{unit.title}\n{unit.text}".lower()
        has[row] = [beginning.search(words) is not None for beginning in beginnings]
    scores = has @ np.log1p(len(positions) / np.maximum(has.sum(axis=0), 1))
    best = np.argsort(-scores, kind="stable")[:n]
    return [with_short_title(snapshot, unit) for unit in view.units(positions[best[scores[best] > 0]])]


async def why_no_hit(snapshot: SearchSnapshot, question: str, name: str, k: int = 5) -> WhyNot:
    """Explain the rank of the best passage of a document, or of a passage that is named by its id.

    Raises:
        QueryError: The snapshot shows neither.
    """
    passages = [unit.id for unit in document_units(snapshot, name)]
    if not passages and name.encode() in set(snapshot.view.pool.chunk_ids.tolist()):
        passages = [name]
    if not passages:
        similar = similar_names(name, snapshot.document_ids())
        raise QueryError(
            f"There is no document {name!r} among those that are searched."
            + (f" Similar ids: {', '.join(similar)}." if similar else "")
        )
    if len(passages) > 1:
        hits = await snapshot.asearch(question, snapshot.size)
        ranked = [hit.unit.id for hit in hits if hit.unit.id in set(passages)]
        passages = ranked or passages
    return await why_not(snapshot, question, passages[0], k)


async def why_not(snapshot: SearchSnapshot, question: str, passage: str, k: int = 5) -> WhyNot:
    """Explain the rank of a passage for a question: what it shares with the question and what it lacks.

    Args:
        snapshot: What was searched, with the question's filter.
        question: The question.
        passage: Id of a passage.
        k: How many hits were shown.
    """
    names = Names.of(snapshot)
    position, unit = names.position(passage), names.unit(passage)
    if position is None or unit is None:
        condition = "" if snapshot.where is None else f" {filter_text(snapshot.where)}"
        return WhyNot(passage, 0, (("filter", f"The passage does not pass the filter{condition}."),))
    inside = snapshot.positions()
    ranked = await snapshot.rank(question, k)
    selected = await snapshot.selected(question, ranked, k)
    order = await _passages(selected, snapshot)
    rank = order.index(position) + 1 if position in order else 0
    hit = snapshot.view.hit(position, float(selected.scores_at(np.array([position]))[0]), selected)
    reasons_found = [
        ("rank", _rank_note(rank, len(order), len(inside), k)),
        *_cost(position, order[:k], ranked),
        *await _selection(position, ranked, selected, k),
        ("vectors", await _vectors(position, order[:k], question, snapshot, inside)),
        ("words", _words(unit, question)),
        *_shared_names(hit, order[:k], question, names),
    ]
    picture = path_picture(snapshot, question, [Hit(hit.unit, hit.score, hit.doc_ids, hit.path)])
    # A hit that is drawn alone would have rank 1.
    nodes = tuple(replace(node, rank=rank) if node.rank else node for node in picture.nodes)
    return WhyNot(with_short_title(snapshot, unit).title, rank, tuple(reasons_found), replace(picture, nodes=nodes))


async def _passages(ranking: Ranking, snapshot: SearchSnapshot) -> list[int]:
    positions, _ = await ranking.top(min(_FAR, snapshot.size))
    distinct: dict[int, None] = {}
    for position in positions.tolist():
        distinct.update(dict.fromkeys(snapshot.view.passages_of(position, ranking)))
    return list(distinct)


def _rank_note(rank: int, examined: int, total: int, k: int) -> str:
    if not rank:
        return f"It is not among the first {examined:,} of {total:,} passages."
    if rank <= k:
        return f"It is hit {rank} of {k}."
    return f"It has rank {rank:,} of {total:,} passages; the first {k} are shown."


def _cost(position: int, hits: list[int], ranked: Ranking) -> list[tuple[str, str]]:
    """The parts of the score that lie furthest below those of the last hit, if the ranking knows of parts."""
    pair = np.array([position, *hits[-1:]])
    parts_of: Callable[[IntArray], Mapping[str, FloatArray]] | None = getattr(ranked, "parts", None)
    score, last = ranked.scores_at(pair)[[0, -1]].tolist()
    if parts_of is None or position in hits or score < _REACHED:
        return []
    less = sorted((float(score - last), words) for words, (score, last) in parts_of(pair).items())
    losses = "; ".join(f"{words} ({difference:.2f})" for difference, words in less[:_COSTS] if difference < 0)
    note = f"It scores {score:.2f}, the last hit {last:.2f}."
    return [("score", f"{note} It loses most by: {losses}." if losses else note)]


async def _selection(position: int, ranked: Ranking, selected: Ranking, k: int) -> list[tuple[str, str]]:
    """Say that a selector leaves the passage out, if one does."""
    first = (await ranked.top(k))[0].tolist()
    if selected is ranked or position not in first or position in (await selected.top(k))[0].tolist():
        return []
    note = f"It has rank {first.index(position) + 1}, but the selector of the recipe leaves it out."
    return [("selection", note)]


async def _vectors(position: int, hits: list[int], question: str, snapshot: SearchSnapshot, inside: IntArray) -> str:
    view = snapshot.view
    cosines = await view.cosines(question, await view.embed_query(question), snapshot.where)
    cosine = float(cosines[position])
    nearer = int((cosines[inside] > cosine).sum())
    least = min((float(cosines[hit]) for hit in hits), default=0.0)
    more = f"{count(nearer, 'other passage')} {'has' if nearer == 1 else 'have'} a higher one"
    note = f"Its cosine with the question is {cosine:.3f}; {more}."
    return f"{note} The lowest of the hits is {least:.3f}." if hits else note


def _words(unit: Unit, question: str) -> str:
    text = f"{unit.title}\n{text_below_title(unit)}"
    shared = {piece.lower() for piece, kind in marked(text, question) if kind}
    wanted = question_words(question)
    missing = [word for word in wanted if not marked(word, " ".join(shared))[0][1]] if shared else wanted
    plural = "s" * (len(shared) > 1)
    common = f"the word{plural} {', '.join(sorted(shared))}" if shared else "no word with the question"
    has = f"It shares {common}."
    lacked = f"the word{'s' * (len(missing) > 1)} {', '.join(missing)}"
    return f"{has} It lacks {lacked}." if missing and shared else has


def _shared_names(hit: Hit, hits: list[int], question: str, names: Names) -> list[tuple[str, str]]:
    """Names that could lead to the passage."""
    graph, unit = names.graph, hit.unit
    if not len(graph.entities):
        return []
    position = names.position(unit.id)
    number = {int(chunk_position): n for n, chunk_position in enumerate(graph.chunk_positions.tolist())}
    entities = set(graph.entities[graph.passages == number[int(position or 0)]].tolist())
    inside = None if names.allowed is None else names.allowed[graph.chunk_positions]
    linked = graph.link(question, inside)
    text = f"{unit.title}\n{unit.text}"
    in_both = dict.fromkeys(
        name for entity, name in linked.items() if entity in entities or whole_name(name, re.IGNORECASE).search(text)
    )
    linked_names = ", ".join(dict.fromkeys(linked.values()))
    pieces = marked(question, "", frequent_names(names.snapshot))
    frequent = ", ".join(dict.fromkeys(piece for piece, kind in pieces if kind == "name" and piece not in linked_names))
    notes = [
        f"The question mentions {linked_names}; the passage mentions {', '.join(in_both) or 'none of them'}."
        if linked_names
        else next(
            (f"{step.note[:1].upper()}{step.note[1:]}." for step in hit.path if step.step == "question"), _NAMELESS
        )
    ]
    if frequent:
        notes.append(f"Too many passages mention {frequent}: only titles with it count as a link.")
    of_question = [("names of the question", " ".join(notes))]
    others = {number[hit] for hit in hits if hit in number and hit != position}
    theirs = set(graph.entities[np.isin(graph.passages, list(others))].tolist())
    counts = {entity: len(names.mentions(graph.entity_ids[entity])) for entity in entities & theirs}
    shared = sorted(counts, key=lambda entity: (counts[entity], entity))[:_MAX_REASONS]
    links = [f"{names.entity(graph.entity_ids[e])} (in {count(counts[e], 'passage')})" for e in shared]
    note = f"It shares {', '.join(links)} with the hits." if links else "It shares no name with a hit."
    return [*of_question, ("names of the hits", note)]
