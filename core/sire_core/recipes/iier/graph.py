"""The interaction graph of a pool as arrays: what evidence chains walk on, and what scorers are trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.recipes.iier.keyword_table import KeywordTable
from sire_core.recipes.iier.links import PassageLinks
from sire_core.recipes.iier.recipe import GRAPH_NOTE
from sire_core.recipes.iier.table import InteractionTable
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, View

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
    positions = np.flatnonzero(view.kinds == list(view.kind_names).index(UnitKind.CHUNK.value)).astype(np.int64)
    size = len(positions)
    table = InteractionTable.from_note(view.note(GRAPH_NOTE))
    links = table.links if table else PassageLinks.of(size)
    keywords = table.keywords if table else KeywordTable.without_keywords(size)
    indptr, neighbors, features = _adjacency(links, size)
    nodes = np.repeat(np.arange(size), np.diff(keywords.indptr))
    return ChainGraph(
        positions=positions,
        vectors=view.matrix if size == view.size else np.ascontiguousarray(view.matrix[positions]),
        indptr=indptr,
        neighbors=neighbors,
        features=features,
        keyword_indptr=keywords.indptr,
        keyword_numbers=keywords.numbers,
        posting_indptr=_pointers(keywords.numbers, len(keywords.keys)),
        postings=nodes[np.argsort(keywords.numbers, kind="stable")],
        keyword_of={key: number for number, key in enumerate(keywords.keys)},
        keys=tuple(keywords.keys),
    )


def _adjacency(links: PassageLinks, size: int) -> tuple[IntArray, IntArray, FloatArray]:
    left, right = links.pairs.T
    features = np.stack((links.structural, links.similarity, links.keywords), axis=1).astype(np.float32)
    # Pairs are ascending, so a node's edges are those that end at it, by their beginnings, and then those that begin.
    order = np.argsort(right, kind="stable")
    ends, begins = np.bincount(right, minlength=size), np.bincount(left, minlength=size)
    indptr = np.concatenate(([0], np.cumsum(ends + begins))).astype(np.int64)
    back = np.arange(len(left)) + np.repeat(indptr[:-1] - (np.cumsum(ends) - ends), ends)
    forth = np.arange(len(left)) + np.repeat(indptr[:-1] + ends - (np.cumsum(begins) - begins), begins)
    neighbors = np.empty(2 * len(left), dtype=np.int64)
    both = np.empty((2 * len(left), len(FEATURES)), dtype=np.float32)
    neighbors[back], neighbors[forth] = left[order], right
    both[back], both[forth] = features[order], features
    return indptr, neighbors, both


def _pointers(rows: IntArray, size: int) -> IntArray:
    return np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=size)))).astype(np.int64)
