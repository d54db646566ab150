"""The interaction graph of a pool as arrays: what evidence chains walk on, and what scorers are trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.text import name_key
from sire_core.organize.interaction_graph import INTERACTS, KEYWORD
from sire_core.search.stored_arrays import join_words, split_words, stored_arrays
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray, IntArray, View
    from sire_core.types import Edge

__all__ = ["FEATURES", "ChainGraph"]

FEATURES = ("structural", "similarity", "keywords")
"""Columns of `ChainGraph.features`: w_struc (0 or 1), w_sim (a cosine, 0 where there is no semantic edge) and w_kw
(number of shared keywords, not scaled)."""


@dataclass(frozen=True, slots=True)
class ChainGraph:
    """An `InteractionGraph` in compressed sparse rows. Nodes are passages, numbered 0.. in corpus order.

    Attributes:
        positions: Row of every node in the pool, int64 `[n]`, ascending.
        vectors: Unit-length vectors of the nodes, float32 `[n, d]`.
        indptr: Edges of node i are `indptr[i]:indptr[i + 1]`, int64 `[n + 1]`. Every edge is there from both ends.
        neighbors: Where edges lead, int64 `[m]`, ascending within a node; never the node itself, no node twice.
        features: What an edge is made of, float32 `[m, 3]`, see `FEATURES`.
        keyword_indptr: Keywords of node i are `keyword_numbers[keyword_indptr[i]:keyword_indptr[i + 1]]`.
        keyword_numbers: int64.
        posting_indptr: The other way round: nodes of keyword j are `postings[posting_indptr[j]:posting_indptr[j + 1]]`.
        postings: int64, ascending within a keyword.
        keyword_of: Number of a keyword by its key (`name_key` of the phrase).
        keys: Keys by number.
    """

    positions: IntArray
    vectors: FloatArray
    indptr: IntArray
    neighbors: IntArray
    features: FloatArray
    keyword_indptr: IntArray
    keyword_numbers: IntArray
    posting_indptr: IntArray
    postings: IntArray
    keyword_of: Mapping[str, int]
    keys: Sequence[str]

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.positions)

    @classmethod
    def of(cls, view: View) -> ChainGraph:
        """The graph of a pool, made once per snapshot; without edges where the pool has no `InteractionGraph`."""
        graph: ChainGraph = view.derived("chain graph", lambda: _read(view))
        return graph

    def around(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """All edges of some nodes.

        Args:
            nodes: `[a]`, repetitions allowed.

        Returns:
            For every edge the place of its node in `nodes`, and the number of the edge (a row of `neighbors` and
            `features`); in the order of `nodes`, then of the neighbours.
        """
        starts, counts = self.indptr[nodes], self.indptr[nodes + 1] - self.indptr[nodes]
        owners = np.repeat(np.arange(len(nodes)), counts)
        first = np.cumsum(counts) - counts
        edges = np.arange(int(counts.sum())) + np.repeat(starts - first, counts)
        return owners.astype(np.int64), edges.astype(np.int64)

    def edge(self, left: int, right: int) -> FloatArray:
        """Features of the edge between two nodes, `[3]`; zeros where there is none."""
        start, stop = int(self.indptr[left]), int(self.indptr[left + 1])
        place = start + int(np.searchsorted(self.neighbors[start:stop], right))
        found = place < stop and self.neighbors[place] == right
        return self.features[place] if found else np.zeros(len(FEATURES), dtype=np.float32)

    def keywords(self, node: int) -> IntArray:
        """Keyword numbers of a node."""
        return self.keyword_numbers[self.keyword_indptr[node] : self.keyword_indptr[node + 1]]

    def nodes_with(self, keyword: int) -> IntArray:
        """Nodes that have a keyword."""
        return self.postings[self.posting_indptr[keyword] : self.posting_indptr[keyword + 1]]


def _read(view: View) -> ChainGraph:
    arrays = dict(stored_arrays(view, "chains-1", lambda: _arrays(view)))
    keys = split_words(arrays.pop("keys"), len(arrays["posting_indptr"]) - 1)
    positions = arrays["positions"]
    whole = len(positions) == view.size
    vectors = view.matrix if whole else np.ascontiguousarray(view.matrix[positions])
    keyword_of = {key: number for number, key in enumerate(keys)}
    return ChainGraph(vectors=vectors, keyword_of=keyword_of, keys=tuple(keys), **arrays)


def _arrays(view: View) -> dict[str, NDArray[Any]]:
    """All arrays but the vectors, and the keys of the keywords as bytes."""
    positions = np.flatnonzero(view.kinds == list(view.kind_names).index(UnitKind.CHUNK.value)).astype(np.int64)
    number = {found.decode(): i for i, found in enumerate(view.ids[positions])}
    edges = [edge for edge in view.edges() if edge.source in number]
    indptr, neighbors, features = _adjacency(
        [edge for edge in edges if edge.kind == INTERACTS and edge.target in number], number
    )
    keyword_of: dict[str, int] = {}
    owners, numbers = [], []
    for edge in sorted((edge for edge in edges if edge.kind == KEYWORD), key=lambda edge: number[edge.source]):
        owners.append(number[edge.source])
        numbers.append(keyword_of.setdefault(name_key(str(edge.metadata["phrase"])), len(keyword_of)))
    nodes, keywords = np.array(owners, dtype=np.int64), np.array(numbers, dtype=np.int64)
    return {
        "positions": positions,
        "indptr": indptr,
        "neighbors": neighbors,
        "features": features,
        "keyword_indptr": _pointers(nodes, len(positions)),
        "keyword_numbers": keywords,
        "posting_indptr": _pointers(keywords, len(keyword_of)),
        "postings": nodes[np.argsort(keywords, kind="stable")],
        "keys": join_words(list(keyword_of)),
    }


def _adjacency(edges: Sequence[Edge], number: Mapping[str, int]) -> tuple[IntArray, IntArray, FloatArray]:
    left = np.array([number[edge.source] for edge in edges], dtype=np.int64)
    right = np.array([number[edge.target] for edge in edges], dtype=np.int64)
    rows = [[float(edge.metadata.get(name, 0.0)) for name in FEATURES] for edge in edges]
    features = np.array(rows, dtype=np.float32).reshape(-1, len(FEATURES))
    sources, targets = np.concatenate((left, right)), np.concatenate((right, left))
    order = np.lexsort((targets, sources))
    return _pointers(sources, len(number)), targets[order], np.concatenate((features, features))[order]


def _pointers(rows: IntArray, size: int) -> IntArray:
    return np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=size)))).astype(np.int64)
