"""The interaction graph of a pool in compressed sparse rows, and cosines of its nodes with a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges, row_pointers
from sire_core.recipes.iier import GRAPH_NOTE
from sire_core.recipes.iier.table import InteractionTable, KeywordTable, PassageLinks
from sire_core.search.ranking import best_first
from sire_core.search.similarities import KnownSimilarities
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.corpus.benchmarks import Question
    from sire_core.protocols import BoolArray, FloatArray, IntArray, Similarities, View
    from sire_core.search.view import PoolView

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
        neighbors: Targets of edges, int64 `[m]`, ascending within a node, without repetitions and loops.
        features: Weights of edges, float32 `[m, 3]`, see `FEATURES`.
        keyword_indptr: Keywords of node i are `keyword_numbers[keyword_indptr[i]:keyword_indptr[i + 1]]`.
        keyword_numbers: Keyword numbers, int64.
        posting_indptr: Inverse of these: nodes of keyword j are `postings[posting_indptr[j]:posting_indptr[j + 1]]`.
        postings: Nodes, int64, ascending within a keyword.
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
        """Return the graph of a pool, made once per snapshot; without edges if the pool has no `InteractionGraph`."""
        graph: ChainGraph = view.derived("chain graph", lambda: _read(view))
        return graph

    def around(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """All edges of nodes `[a]`, which may repeat, in their order."""
        starts, counts = self.indptr[nodes], self.indptr[nodes + 1] - self.indptr[nodes]
        return np.repeat(np.arange(len(nodes), dtype=np.int64), counts), ranges(starts, counts)

    def edge(self, left: int, right: int) -> FloatArray:
        """Features of the edge between two nodes, `[3]`; zeros if there is none."""
        start, stop = int(self.indptr[left]), int(self.indptr[left + 1])
        row = start + int(np.searchsorted(self.neighbors[start:stop], right))
        exists = row < stop and self.neighbors[row] == right
        return self.features[row] if exists else np.zeros(len(FEATURES), dtype=np.float32)

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
        posting_indptr=row_pointers(keywords.numbers, len(keywords.keys)),
        postings=nodes[np.argsort(keywords.numbers, kind="stable")],
        keyword_of={key: number for number, key in enumerate(keywords.keys)},
        keys=tuple(keywords.keys),
    )


def _adjacency(links: PassageLinks, size: int) -> tuple[IntArray, IntArray, FloatArray]:
    left, right = links.pairs.T
    features = np.stack((links.structural, links.similarity, links.keywords), axis=1).astype(np.float32)
    # Pairs are ascending: first come a node's edges that end at it, by source, then those that start at it.
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


class NodeCosines:
    """Cosines of a question with all nodes, read like an array: `cosines[nodes]`, `np.asarray(cosines)`."""

    __slots__ = ("_similarities",)

    def __init__(self, similarities: Similarities) -> None:
        self._similarities = similarities

    @classmethod
    def of(cls, similarities: Similarities, positions: IntArray) -> NodeCosines:
        """Select the cosines of nodes, the units at `positions`, from those of all units."""
        if len(positions) == len(similarities):
            return cls(similarities)
        return cls(KnownSimilarities(similarities.all()[positions]))

    def __len__(self) -> int:
        return len(self._similarities)

    def __getitem__(self, nodes: Any) -> Any:
        """Return the cosine of one node, or those of several."""
        numbers = np.asarray(nodes)
        cosines = self._similarities.at(numbers.ravel()).reshape(numbers.shape)
        return cosines if numbers.ndim else cosines[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.asarray(self._similarities.all().astype(dtype or np.float32, copy=bool(copy)))

    def best(self, n: int, allowed: BoolArray | None = None) -> IntArray:
        """Return the `n` nearest `allowed` nodes (`[nodes]`; None for all), best first, ties by node."""
        if n < 1:
            return np.empty(0, dtype=np.int64)
        if allowed is None:
            return self._similarities.best(n)[0]
        return best_first(np.where(allowed, self._similarities.all(), -np.inf).astype(np.float32), n)


@dataclass(frozen=True, slots=True)
class GoldNodes:
    """Nodes and texts of documents, to find gold passages.

    Attributes:
        nodes: Nodes by document id, ascending.
        texts: Text of every node.
    """

    nodes: Mapping[str, Sequence[int]]
    texts: Sequence[str]

    @classmethod
    def of(cls, view: PoolView, graph: ChainGraph) -> GoldNodes:
        """Read a pool, once per snapshot."""

        def read() -> GoldNodes:
            nodes: dict[str, list[int]] = {}
            texts = []
            for node, position in enumerate(graph.positions.tolist()):
                unit, documents = view.pool.unit(position)
                texts.append(unit.text)
                for document in documents:
                    nodes.setdefault(document, []).append(node)
            return cls(nodes, texts)

        gold: GoldNodes = view.derived("gold nodes", read)
        return gold

    def groups(self, question: Question) -> list[Sequence[int]]:
        """Groups of nodes, one per piece of evidence; any node of a group is the evidence."""
        evidence = question.metadata.get("evidence")
        evidence = evidence if isinstance(evidence, Mapping) else {}
        groups: list[Sequence[int]] = []
        for document in question.supporting:
            nodes = self.nodes.get(document, ())
            texts = dict.fromkeys(text for text in evidence.get(document) or () if isinstance(text, str))
            passages = [[node for node in nodes if self.texts[node] == text] for text in texts]
            groups.extend([passage for passage in passages if passage] or [nodes])
        return groups
