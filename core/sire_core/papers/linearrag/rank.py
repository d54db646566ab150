"""`SentenceWalk`: activation of entities through sentences, then PageRank (LinearRAG, section 3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from sire_core.extend import (
    CSRGraph,
    EntityGraph,
    IdPositions,
    KnownSimilarities,
    ScoredRanking,
    Walk,
    WalkPaths,
    best_first,
    check_settings,
    hash64,
    min_max,
    names_in,
    positions_in,
    ranges,
    setting,
    walk_ranking,
)
from sire_core.papers.linearrag.derive import SENTENCE

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, DoubleArray, Filter, FloatArray, IntArray, Ranking, View


@dataclass(frozen=True, slots=True)
class TriGraph:
    """Passages, sentences and entities of a pool."""

    mentions: EntityGraph  # which passage names which entity
    sentences: IntArray  # positions of the sentences, ascending, `[sentences]`
    named: IntArray  # sentence and entity, ascending by sentence, `[2, pairs]`
    counts: IntArray  # how often a passage names an entity, once if only its title does, `[mentions]`

    @classmethod
    def of(cls, view: View) -> TriGraph:
        """Return the graph of a pool; what is found by reading sentences is stored in files."""
        return view.derived("tri-graph", lambda: cls._read(view))

    @classmethod
    def _read(cls, view: View) -> TriGraph:
        mentions, kinds = EntityGraph.of(view), list(view.kind_names)
        kind = kinds.index(SENTENCE.value) if SENTENCE.value in kinds else -1
        sentences = np.flatnonzero(view.kinds == kind)
        arrays = view.cached_arrays("tri-graph", lambda: {"occurrences": _occurrences(view, mentions, sentences)})
        rows, passages, entities = arrays["occurrences"]
        size = max(1, len(mentions.entity_ids))
        named = np.stack(np.divmod(np.unique(rows * size + entities), size))  # a sentence may be in two passages
        pairs, counts = np.unique(passages * size + entities, return_counts=True)
        positions = positions_in(pairs, mentions.passages * size + mentions.entities)
        times = np.where(positions >= 0, np.append(counts, 1)[positions], 1)
        return cls(mentions, sentences, named, times)

    def walk(self, view: View, allowed: BoolArray | None) -> Walk:
        """Return the undirected graph of passages and entities, and of passages that follow each other."""
        if allowed is not None:
            return self._walk(view, allowed)
        return view.derived("tri-graph walk", lambda: self._walk(view, None))

    def _walk(self, view: View, allowed: BoolArray | None) -> Walk:
        graph, size = self.mentions, len(self.mentions.chunk_positions)
        visible = np.ones(size, dtype=bool) if allowed is None else allowed[graph.chunk_positions]
        named = visible[graph.passages]
        passages, entities, counts = graph.passages[named], graph.entities[named], self.counts[named].astype(np.float64)
        frequency = np.bincount(entities, minlength=len(graph.entity_ids)).astype(np.int64)
        shares = counts / np.bincount(passages, weights=counts, minlength=size)[passages]
        beside = _neighbours(view, graph.chunk_positions)
        beside = beside[:, visible[beside].all(axis=0)]
        pairs = np.concatenate((np.stack((passages, size + entities)), beside), axis=1).T
        weights = np.concatenate((shares, np.ones(beside.shape[1])))
        return Walk(CSRGraph.undirected(size + len(graph.entity_ids), pairs, weights), size, frequency)


def _occurrences(view: View, mentions: EntityGraph, sentences: IntArray) -> IntArray:
    """Sentence, passage and entity of every name in a sentence of a passage, `[3, occurrences]`."""
    keys = [unit.entity_keys for unit in view.units(sentences)]
    lengths = np.array([len(names) for names in keys], dtype=np.int64)
    hashes = np.array([hash64(name) for names in keys for name in names], dtype=np.uint64)
    indptr, indices = view.chunk_pointers
    owner = np.zeros(int(indices.max(initial=-1)) + 1, dtype=np.int64)
    sizes = np.diff(indptr)[mentions.chunk_positions]
    owner[indices[ranges(indptr[mentions.chunk_positions], sizes)]] = np.repeat(np.arange(len(sizes)), sizes)
    sizes = np.diff(indptr)[sentences]
    rows = np.repeat(np.arange(len(sentences)), sizes)  # a row per sentence and passage
    passages = owner[indices[ranges(indptr[sentences], sizes)]]
    starts = np.cumsum(lengths) - lengths
    hashes = hashes[ranges(starts[rows], lengths[rows])]
    rows, passages = np.repeat(rows, lengths[rows]), np.repeat(passages, lengths[rows])
    entities = mentions.called(passages, hashes)
    return np.asarray(np.stack((rows, passages, entities))[:, entities >= 0], dtype=np.int64)


def _neighbours(view: View, positions: IntArray) -> IntArray:
    """Passages that follow each other in a document, `[2, pairs]`."""
    indptr, indices = view.chunk_pointers
    first = indices[indptr[positions]]  # chunks are numbered in corpus order
    order = np.argsort(first, kind="stable")
    documents = view.chunk_documents[first[order]]
    follows = (documents[1:] == documents[:-1]) & (np.diff(first[order]) == 1)
    return np.stack((order[:-1][follows], order[1:][follows])).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Active:
    """An active entity."""

    score: float  # the highest score that it was reached with, or the last one
    tier: int  # in which round, 1 for the entities of the question
    reason: str  # for the path
    weight: float  # its starting weight: the score, or the sum of all scores


@dataclass(frozen=True, slots=True)
class SentenceWalk:
    """Ranks passages by personalised PageRank from entities that the question activates, and from all passages.

    Needs `KnowledgeGraph` (with units of entities for `seeds="nearest"`) and `SentenceNodes`. Where the question names
    nothing, passages are ranked by cosine.
    Sentences come after all passages; those that a filter forbids activate nothing.

    Attributes:
        seeds: Entities that a question activates first: `named`, those that it spells, each with a score of 1; or
            `nearest`, as published: for each name in the question the entity with the most similar name, with their
            cosine as its score.
        rounds: Rounds of activation, the entities of the question included.
        threshold: Minimum score of an entity that is activated or activates others (the paper's delta).
        sentences: Number of an active entity's sentences, those most similar to the question, that activate others.
        repeated: Score of an entity that is reached again: `highest`, its highest one, as in the paper; or `sum`, the
            sum of all in its own starting weight and the last one in those of passages, as in the released code.
        passage_ratio: Weight of the cosine in a passage's starting weight, where that of its active entities is 1 (the
            paper's lambda).
        passage_weight: What the starting weights of passages are multiplied by.
        damping: Probability of following an edge instead of restarting.
    """

    seeds: str = setting("named", choices=("named", "nearest"))
    rounds: int = setting(3, low=1, high=20)
    threshold: float = setting(0.1, low=0.0)
    sentences: int = setting(4, low=1)
    repeated: str = setting("highest", choices=("highest", "sum"))
    passage_ratio: float = setting(1.5, low=0.0)
    passage_weight: float = setting(0.05, low=0.0)
    damping: float = setting(0.5, low=0.0, high=0.99)

    def __post_init__(self) -> None:
        check_settings(self)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter."""
        question, allowed = await view.embed_query(query), view.allowed(where)
        cosines = await view.cosines(query, question, where)
        names = names_in(query) if self.seeds == "nearest" and view.size else []
        vectors = await view.embed_queries(names) if names else np.empty((0, 0), dtype=np.float32)
        return await asyncio.to_thread(self._rank, query, cosines, view, allowed, (names, vectors))

    def prepare(self, view: View) -> None:
        """Read the sentences of a pool once, when it is built."""
        if view.size:
            TriGraph.of(view)

    def _rank(
        self,
        query: str,
        cosines: FloatArray,
        view: View,
        allowed: BoolArray | None,
        names: tuple[Sequence[str], FloatArray],
    ) -> Ranking:
        if not view.size:
            return ScoredRanking(cosines, None, lambda _: ())
        graph = TriGraph.of(view)
        walk, passages = graph.walk(view, allowed), graph.mentions.chunk_positions
        allowed_passages = None if allowed is None else allowed[passages]
        seeds = (
            _nearest(graph, view, *names, allowed)
            if self.seeds == "nearest"
            else {
                entity: Active(1.0, 1, f"the question names {name}", 1.0)
                for entity, name in graph.mentions.link(query, allowed_passages).items()
            }
        )
        active = self._activate(graph, seeds, cosines, view, allowed)
        starts = np.zeros(len(graph.mentions.entity_ids))
        mass = np.zeros(walk.graph.size)
        if active:
            numbers = np.fromiter(active, dtype=np.int64)
            starts[numbers] = [entry.weight for entry in active.values()]
            mass = walk.mass(starts, self._passages(graph, active, cosines[passages], allowed_passages), self.damping)
        similarities = KnownSimilarities(cosines)
        reasons = {entity: entry.reason for entity, entry in active.items()}
        paths = WalkPaths(view, graph.mentions, walk, reasons, mass, similarities)
        return walk_ranking(paths, mass[: walk.passages], similarities, allowed, 0.0 if active else 1.0)

    def _activate(
        self,
        graph: TriGraph,
        seeds: Mapping[int, Active],
        cosines: FloatArray,
        view: View,
        allowed: BoolArray | None,
    ) -> dict[int, Active]:
        """The seeds, and the entities that their sentences lead to (equations 4 to 6), by number."""
        similar = cosines[graph.sentences].astype(np.float64)
        if allowed is not None:
            similar[~allowed[graph.sentences]] = -np.inf
        size = (len(graph.sentences), len(graph.mentions.entity_ids))
        ones = np.ones(graph.named.shape[1], dtype=bool)
        by_sentence = view.derived("tri-graph sentences", lambda: csr_array((ones, tuple(graph.named)), shape=size))
        by_entity = view.derived("tri-graph entities", by_sentence.T.tocsr)
        active = dict(seeds)
        front, used = dict(active), set()
        for tier in range(2, self.rounds + 1):
            reached: dict[int, Active] = {}
            for entity, entry in front.items():
                rows = [row for row in _row(by_entity, entity) if row not in used]
                nearest = best_first(similar[rows].astype(np.float32), self.sentences)
                for row in [rows[position] for position in nearest]:
                    used.add(row)
                    score = entry.score * float(similar[row])
                    if score < self.threshold:
                        continue
                    reason = f"{entry.reason}; cosine {similar[row]:.3f} of the question with a sentence of both"
                    for other in _row(by_sentence, row):
                        before = reached.get(other, active.get(other, _NONE))
                        if self.repeated == "sum":
                            reached[other] = Active(score, tier, reason, before.weight + score)
                        elif score > before.score:
                            reached[other] = Active(score, tier, reason, score)
            active |= reached
            front = reached
        return active

    def _passages(
        self, graph: TriGraph, active: Mapping[int, Active], cosines: FloatArray, allowed: BoolArray | None
    ) -> DoubleArray:
        """Starting weights of passages (equation 7), `[passages]`."""
        shares = np.zeros(len(graph.mentions.entity_ids))
        shares[list(active)] = [entry.score / entry.tier for entry in active.values()]
        bonus = np.bincount(
            graph.mentions.passages,
            weights=shares[graph.mentions.entities] * np.log1p(graph.counts),
            minlength=len(cosines),
        )
        weights = self.passage_weight * (self.passage_ratio * min_max(cosines, allowed) + np.log1p(bonus))
        return weights if allowed is None else np.where(allowed, weights, 0.0)


_NONE = Active(0.0, 0, "", 0.0)


def _nearest(
    graph: TriGraph, view: View, names: Sequence[str], vectors: FloatArray, allowed: BoolArray | None
) -> dict[int, Active]:
    """For each name the entity with the most similar one; of an entity that several names lead to the last score."""
    positions = IdPositions.of(view).find(np.array(graph.mentions.entity_ids, dtype="S24"))
    entities = np.flatnonzero(positions >= 0)
    if allowed is not None:
        entities = entities[allowed[positions[entities]]]
    if not len(names) or not len(entities):
        return {}
    similar = view.matrix[positions[entities]] @ vectors.T
    best = similar.argmax(axis=0)
    return {
        int(entities[row]): Active(
            float(similar[row, column]), 1, f"the entity most similar to {name}", float(similar[row, column])
        )
        for column, (row, name) in enumerate(zip(best.tolist(), names, strict=True))
    }


def _row(matrix: csr_array[np.bool_], number: int) -> list[int]:
    columns: list[int] = matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]].tolist()
    return columns
