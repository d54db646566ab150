"""Entities, relations and passages of a pool as a graph of positions: what `MixRecall` walks on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.algorithms.neighborhood import Incidence
from sire_core.organize.graph.kinds import RELATES
from sire_core.search.id_places import IdPlaces
from sire_core.search.stored_graph import stored_graph
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, View

__all__ = ["RelationGraph"]


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
        pairs = _pairs(view, chunks)
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


def _pairs(view: View, chunks: IntArray) -> IntArray:
    """Positions of relations and of the entities at their ends, `[2, pairs]`; -1 for what the pool does not hold."""
    places = IdPlaces.of(view)
    note = stored_graph(view, chunks)
    if note is not None:
        return np.stack([places.find(note.relations)[note.pairs[0]], places.find(note.ends)[note.pairs[1]]])
    edges = [edge for edge in view.edges() if edge.kind == RELATES]
    return places.find(
        np.array([edge.source for edge in edges] + [edge.target for edge in edges], dtype="S24")
    ).reshape(2, -1)
