"""Entities, relations and passages of a pool as a graph of positions, and its walks (MS-RAG, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extend import CSRGraph, Lists, UnitKind, personalized_pagerank, ranges, relation_ends, similar_names

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, DoubleArray, FloatArray, IntArray, View


@dataclass(frozen=True, slots=True)
class Incidence:
    """Incidence of relations and entities."""

    relations: Lists  # relations by entity, ascending
    entities: Lists  # entities by relation, ascending

    @classmethod
    def from_arrays(cls, relations: IntArray, entities: IntArray, size: int) -> Incidence:
        """Build it from pairs in any order, with repetitions; all numbers are below `size`."""
        return cls(Lists.of_pairs(entities, relations, size), Lists.of_pairs(relations, entities, size))


def nearby_entities(
    seeds: Iterable[int],
    graph: Incidence,
    hops: int,
    fanout: int | None = None,
    similarity: Sequence[float] | None = None,
) -> tuple[dict[int, int], dict[int, int]]:
    """Find entities within `hops` of seeds (0), and the relations on the way (1 at a seed), with their distances.

    At every hop the `fanout` new relations with the largest similarity are followed, None for all; never those at
    `-inf`.
    """
    entities = dict.fromkeys(seeds, 0)
    relations: dict[int, int] = {}
    frontier = list(entities)
    for hop in range(1, hops + 1):
        new = dict.fromkeys(r for entity in frontier for r in graph.relations.of(entity).tolist() if r not in relations)
        chosen = _best(new, fanout, similarity)
        relations.update(dict.fromkeys(chosen, hop))
        ends = dict.fromkeys(
            e for relation in chosen for e in graph.entities.of(relation).tolist() if e not in entities
        )
        frontier = _best(ends, None, similarity)
        entities.update(dict.fromkeys(frontier, hop))
    return entities, relations


def nearby_relations(
    seeds: Iterable[int],
    graph: Incidence,
    hops: int,
    fanout: int | None = None,
    similarity: Sequence[float] | None = None,
) -> dict[int, int]:
    """Find relations within `hops` of seeds; two that share an entity are one hop apart. See `nearby_entities`."""
    relations = dict.fromkeys(seeds, 0)
    frontier = list(relations)
    for hop in range(1, hops + 1):
        entities = dict.fromkeys(entity for relation in frontier for entity in graph.entities.of(relation).tolist())
        new = dict.fromkeys(r for entity in entities for r in graph.relations.of(entity).tolist() if r not in relations)
        frontier = _best(new, fanout, similarity)
        relations.update(dict.fromkeys(frontier, hop))
    return relations


def _best(items: Iterable[int], fanout: int | None, similarity: Sequence[float] | None) -> list[int]:
    """The `fanout` most similar items above `-inf`, ties by number."""
    if similarity is None:
        return sorted(items)[:fanout]
    allowed = [item for item in items if similarity[item] > float("-inf")]
    return sorted(allowed, key=lambda item: (-similarity[item], item))[:fanout]


@dataclass(frozen=True, slots=True)
class RelationGraph:
    """Entities, relations and passages of a pool by position, and the edges between them."""

    chunks: IntArray  # positions of the passages
    entities: IntArray  # positions of the entities
    relations: IntArray  # positions of the relations
    incidence: Incidence  # incidence of relations and entities
    passages_of_chunk: IntArray  # position of the passage of every chunk number

    @classmethod
    def of(cls, view: View) -> RelationGraph:
        """Return the graph of a pool, made once per snapshot."""
        return view.derived("relation graph", lambda: cls._read(view))

    @classmethod
    def _read(cls, view: View) -> RelationGraph:
        names = list(view.kind_names)
        chunks, entities, relations = (
            np.flatnonzero(view.kinds == names.index(kind.value)).astype(np.int64)
            for kind in (UnitKind.CHUNK, UnitKind.ENTITY, UnitKind.RELATION)
        )
        pairs = relation_ends(view)
        indptr, indices = view.chunk_pointers
        owner = np.zeros(int(indices.max(initial=-1)) + 1, dtype=np.int64)
        counts = np.diff(indptr)[chunks]
        owner[indices[ranges(np.asarray(indptr)[chunks], counts)]] = np.repeat(chunks, counts)
        return cls(chunks, entities, relations, Incidence.from_arrays(pairs[0], pairs[1], view.size), owner)

    def nearest(self, among: IntArray, similarities: FloatArray) -> list[int]:
        """Return the candidate most similar to each of several vectors (cosines `[size, vectors]`), each once."""
        if not len(among) or not similarities.shape[1]:
            return []
        best = similarities[among].argmax(axis=0)
        open_ = np.isfinite(similarities[among[best], np.arange(len(best))])
        return list(dict.fromkeys(among[best[open_]].tolist()))

    def passages(self, position: int, view: View) -> list[int]:
        """Return the positions of the sources of a unit."""
        indptr, indices = view.chunk_pointers
        return list(dict.fromkeys(self.passages_of_chunk[indices[indptr[position] : indptr[position + 1]]].tolist()))


_SYNONYM = 0.8  # Minimum cosine of two entities for a synonym edge (HippoRAG)


@dataclass(frozen=True, slots=True)
class RelationWalk:
    """PageRank over entities that are joined by relations and by similar names (MS-RAG, table 7)."""

    entities: IntArray  # positions of the nodes
    relations: IntArray  # positions of the relations between nodes
    ends: IntArray  # node numbers of their ends; a relation with one end has it twice, `[relations, 2]`
    synonyms: IntArray  # pairs of node numbers with similar names, `[pairs, 2]`
    synonym_weights: DoubleArray  # their cosines, `[pairs]`
    frequency: IntArray  # number of passages of every node, `[entities]`

    @classmethod
    def of(cls, view: View, graph: RelationGraph) -> RelationWalk:
        """Return the walk of a pool, made once per snapshot."""
        return view.derived("relation walk", lambda: cls._read(view, graph))

    @classmethod
    def _read(cls, view: View, graph: RelationGraph) -> RelationWalk:
        node = {position: number for number, position in enumerate(graph.entities.tolist())}
        ends = {r: [node[e] for e in graph.incidence.entities.of(r).tolist()] for r in graph.relations.tolist()}
        relations = [relation for relation, nodes in ends.items() if nodes]
        names = [unit.text for unit in view.units(graph.entities)]
        first, second, cosines = similar_names(names, view.matrix[graph.entities], _SYNONYM)
        return cls(
            entities=graph.entities,
            relations=np.array(relations, dtype=np.int64),
            ends=np.array([(ends[r][0], ends[r][-1]) for r in relations], dtype=np.int64).reshape(-1, 2),
            synonyms=np.stack((first, second), axis=1),
            synonym_weights=cosines,
            frequency=np.array([len(graph.passages(e, view)) for e in graph.entities.tolist()], dtype=np.int64),
        )

    def nearby(
        self, seeds: Sequence[int], limit: int | None, damping: float, allowed: BoolArray | None
    ) -> tuple[list[int], list[int]]:
        """Return the `limit` entities and relations with the highest PageRank, best first, without the seeds.

        A relation has the PageRank of both ends.
        """
        mass = self._mass(seeds, damping, allowed)
        stated = mass[self.ends].sum(axis=1)
        if allowed is not None:
            mass, stated = mass * allowed[self.entities], stated * allowed[self.relations]
        mass[np.searchsorted(self.entities, np.asarray(seeds, dtype=np.int64))] = 0.0
        return _highest(self.entities, mass, limit), _highest(self.relations, stated, limit)

    def _mass(self, seeds: Sequence[int], damping: float, allowed: BoolArray | None) -> DoubleArray:
        """PageRank of all nodes, `[entities]`; zeros without seeds."""
        start = np.zeros(len(self.entities))
        if not len(seeds):
            return start
        nodes = np.searchsorted(self.entities, np.asarray(seeds, dtype=np.int64))
        start[nodes] = 1.0 / np.maximum(self.frequency[nodes], 1)
        return np.asarray(personalized_pagerank(self._graph(allowed), start, damping).scores, dtype=np.float64)

    def _graph(self, allowed: BoolArray | None) -> CSRGraph:
        """Graph of allowed units: relations with weight 1 in both directions, synonyms with their cosine."""
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


def _highest(positions: IntArray, scores: DoubleArray, limit: int | None) -> list[int]:
    """Positions with the highest scores above zero, best first, ties by position."""
    order = np.argsort(-scores, kind="stable")
    highest: list[int] = positions[order[scores[order] > 0][:limit]].tolist()
    return highest
