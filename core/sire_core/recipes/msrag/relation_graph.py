"""Entities, relations and passages of a pool as a graph of positions: what `MixRecall` walks on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.graphs import CSRGraph
from sire_core.algorithms.grouping import ranges
from sire_core.algorithms.pagerank import personalized_pagerank
from sire_core.knowledge.aliases import similar_names
from sire_core.knowledge.columns import EdgeColumns
from sire_core.knowledge.kinds import RELATES
from sire_core.recipes.msrag.id_places import IdPlaces
from sire_core.recipes.msrag.neighborhood import Incidence
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, FloatArray, IntArray, View

__all__ = ["RelationGraph", "RelationWalk"]


@dataclass(frozen=True, slots=True)
class RelationGraph:
    """Positions by kind, who stands at whom, and who votes for which passages.

    Attributes:
        chunks: Positions of the passages.
        entities: Positions of the entities.
        relations: Positions of the relations.
        incidence: Relations and entities by position.
        passages_of_chunk: Position of the passage that stands on each chunk number.
    """

    chunks: IntArray
    entities: IntArray
    relations: IntArray
    incidence: Incidence
    passages_of_chunk: IntArray

    @classmethod
    def of(cls, view: View) -> RelationGraph:
        """The graph of a pool, made once per snapshot."""
        graph: RelationGraph = view.derived("relation graph", lambda: cls._read(view))
        return graph

    @classmethod
    def _read(cls, view: View) -> RelationGraph:
        names = list(view.kind_names)
        chunks, entities, relations = (
            np.flatnonzero(view.kinds == names.index(kind.value)).astype(np.int64)
            for kind in (UnitKind.CHUNK, UnitKind.ENTITY, UnitKind.RELATION)
        )
        pairs = _pairs(view)
        pairs = pairs[:, (pairs >= 0).all(axis=0)]
        indptr, indices = view.chunk_pointers
        owner = np.zeros(int(indices.max(initial=-1)) + 1, dtype=np.int64)
        counts = np.diff(indptr)[chunks]
        owner[indices[ranges(np.asarray(indptr)[chunks], counts)]] = np.repeat(chunks, counts)
        return cls(chunks, entities, relations, Incidence.from_arrays(pairs[0], pairs[1], view.size), owner)

    def nearest(self, among: IntArray, similarities: FloatArray) -> list[int]:
        """The most similar unit of a kind for each of several vectors, each once.

        Args:
            among: Positions of the kind.
            similarities: Cosines of the whole pool, `[size, vectors]`; `-inf` for what may not be taken.
        """
        if not len(among) or not similarities.shape[1]:
            return []
        best = similarities[among].argmax(axis=0)
        open_ = np.isfinite(similarities[among[best], np.arange(len(best))])
        found: list[int] = among[best[open_]].tolist()
        return list(dict.fromkeys(found))

    def passages(self, position: int, view: View) -> list[int]:
        """Positions of the passages that a unit stands on, each once."""
        indptr, indices = view.chunk_pointers
        found: list[int] = self.passages_of_chunk[indices[indptr[position] : indptr[position + 1]]].tolist()
        return list(dict.fromkeys(found))


def _pairs(view: View) -> IntArray:
    """Positions of relations and of the entities at their ends, `[2, pairs]`; -1 for what the pool does not hold."""
    places = IdPlaces.of(view)
    columns = EdgeColumns.of_blocks(view.notes(f"{RELATES}/"))
    return np.stack([places.find(columns.sources), places.find(columns.targets)])


_SYNONYM = 0.8
"""Least cosine of two entities that are joined though no relation joins them (HippoRAG)."""


@dataclass(frozen=True, slots=True)
class RelationWalk:
    """Entities joined by relations and by similar names, and the passages that state the relations.

    Attributes:
        entities: Positions of the nodes.
        relations: Positions of the relations that have an end in the graph.
        ends: Node numbers of their ends; a relation with one end has it twice, `[relations, 2]`.
        synonyms: Pairs of node numbers with similar names, `[pairs, 2]`.
        synonym_weights: Their cosines, `[pairs]`.
        stated: Which relation (row of `relations`) which passage states: `[statements, 2]`, number and position.
        frequency: Number of passages of every node, `[entities]`.
    """

    entities: IntArray
    relations: IntArray
    ends: IntArray
    synonyms: IntArray
    synonym_weights: NDArray[np.float64]
    stated: IntArray
    frequency: IntArray

    @classmethod
    def of(cls, view: View, graph: RelationGraph) -> RelationWalk:
        """The walk of a pool, made once per snapshot."""
        walk: RelationWalk = view.derived("relation walk", lambda: cls._read(view, graph))
        return walk

    @classmethod
    def _read(cls, view: View, graph: RelationGraph) -> RelationWalk:
        node = {position: number for number, position in enumerate(graph.entities.tolist())}
        ends = {relation: [node[e] for e in found] for relation, found in graph.incidence.entities_of.items()}
        relations = [relation for relation in graph.relations.tolist() if ends.get(relation)]
        names = [unit.text for unit in view.units(graph.entities)]
        first, second, cosines = similar_names(names, view.matrix[graph.entities], _SYNONYM)
        stated = [(i, passage) for i, relation in enumerate(relations) for passage in graph.passages(relation, view)]
        return cls(
            entities=graph.entities,
            relations=np.array(relations, dtype=np.int64),
            ends=np.array([(ends[r][0], ends[r][-1]) for r in relations], dtype=np.int64).reshape(-1, 2),
            synonyms=np.stack((first, second), axis=1),
            synonym_weights=cosines,
            stated=np.array(stated, dtype=np.int64).reshape(-1, 2),
            frequency=np.array([len(graph.passages(e, view)) for e in graph.entities.tolist()], dtype=np.int64),
        )

    def scores(self, seeds: Sequence[int], size: int, damping: float, allowed: BoolArray | None) -> NDArray[np.float64]:
        """PageRank of the passages of a pool, from seed entities weighted by their rarity (HippoRAG's specificity).

        A passage gets the PageRank of head and tail of every relation it states.

        Args:
            seeds: Positions of entities.
            size: Size of the pool.
            damping: Probability of following an edge.
            allowed: Units that may be walked through, `[size]`.

        Returns:
            `[size]`, 0 for what is no passage or not reached.
        """
        found = np.zeros(size)
        mass = self._mass(seeds, damping, allowed)
        relation, passage = self.stated[:, 0], self.stated[:, 1]
        if allowed is not None:
            open_ = allowed[self.relations[relation]]
            relation, passage = relation[open_], passage[open_]
        np.add.at(found, passage, mass[self.ends[relation]].sum(axis=1))
        return found

    def nearby(
        self, seeds: Sequence[int], most: int | None, damping: float, allowed: BoolArray | None
    ) -> tuple[list[int], list[int]]:
        """What PageRank from seed entities reaches: the graph elements of MS-RAG's row with PageRank (table 7).

        Args:
            seeds: Positions of entities; they are not among the results.
            most: So many entities and so many relations with the highest PageRank; None for all that are reached.
            damping: Probability of following an edge.
            allowed: Units that may be walked through, `[size]`.

        Returns:
            Positions of entities and of relations, best first. A relation has the PageRank of both ends.
        """
        mass = self._mass(seeds, damping, allowed)
        stated = mass[self.ends].sum(axis=1)
        if allowed is not None:
            mass, stated = mass * allowed[self.entities], stated * allowed[self.relations]
        mass[np.searchsorted(self.entities, np.asarray(seeds, dtype=np.int64))] = 0.0
        return _highest(self.entities, mass, most), _highest(self.relations, stated, most)

    def _mass(self, seeds: Sequence[int], damping: float, allowed: BoolArray | None) -> NDArray[np.float64]:
        """PageRank of every node; zeros without seeds."""
        start = np.zeros(len(self.entities))
        if not len(seeds):
            return start
        nodes = np.searchsorted(self.entities, np.asarray(seeds, dtype=np.int64))
        start[nodes] = 1.0 / np.maximum(self.frequency[nodes], 1)
        return np.asarray(personalized_pagerank(self._graph(allowed), start, damping).scores, dtype=np.float64)

    def _graph(self, allowed: BoolArray | None) -> CSRGraph:
        """Relations count once each way, synonyms with their cosine; what is forbidden is not there."""
        ends, synonyms, weights = self.ends, self.synonyms, self.synonym_weights
        if allowed is not None:
            ends = ends[allowed[self.relations]]
            open_ = allowed[self.entities][synonyms].all(axis=1)
            synonyms, weights = synonyms[open_], weights[open_]
        ends = ends[ends[:, 0] != ends[:, 1]]
        pairs = np.concatenate((ends, ends[:, ::-1], synonyms, synonyms[:, ::-1]))
        return CSRGraph.from_edges(
            len(self.entities),
            pairs[:, 0],
            pairs[:, 1],
            np.concatenate((np.ones(2 * len(ends)), weights, weights)),
        )


def _highest(positions: IntArray, scores: NDArray[np.float64], most: int | None) -> list[int]:
    """The positions with the highest scores above zero, best first, ties by position."""
    order = np.argsort(-scores, kind="stable")
    found: list[int] = positions[order[scores[order] > 0][:most]].tolist()
    return found
