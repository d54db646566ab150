"""PageRank over the entities of a relation graph: MS-RAG's row without neighbours (Table 7; ALGORITHMS 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.graphs import CSRGraph
from sire_core.algorithms.pagerank import personalized_pagerank
from sire_core.algorithms.similar_names import similar_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, IntArray, View
    from sire_core.search.relation_graph import RelationGraph

__all__ = ["RelationWalk"]

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

    def scores(self, seeds: Sequence[int], size: int, follow: float, allowed: BoolArray | None) -> NDArray[np.float64]:
        """PageRank of the passages of a pool, from seed entities weighted by their rarity (HippoRAG's specificity).

        A passage gets the PageRank of head and tail of every relation it states.

        Args:
            seeds: Positions of entities.
            size: Size of the pool.
            follow: Probability of following an edge.
            allowed: Units that may be walked through, `[size]`.

        Returns:
            `[size]`, 0 for what is no passage or not reached.
        """
        found = np.zeros(size)
        nodes = np.searchsorted(self.entities, np.asarray(seeds, dtype=np.int64))
        if not len(nodes):
            return found
        start = np.zeros(len(self.entities))
        start[nodes] = 1.0 / np.maximum(self.frequency[nodes], 1)
        mass = personalized_pagerank(self._graph(allowed), start, follow).scores
        relation, passage = self.stated[:, 0], self.stated[:, 1]
        if allowed is not None:
            open_ = allowed[self.relations[relation]]
            relation, passage = relation[open_], passage[open_]
        np.add.at(found, passage, mass[self.ends[relation]].sum(axis=1))
        return found

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
