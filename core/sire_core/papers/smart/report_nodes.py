"""Nodes of trees that can have a report, what belongs to each, and the stored table of all reports (SMART)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sire_core.extend import (
    MENTIONS,
    ArrayNote,
    Edge,
    distinct,
    ranges,
    stable_order,
)
from sire_core.papers.smart.encoding_tree import EncodingTree, first_members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.extend import BoolArray, DoubleArray, IdArray, Int32Array, IntArray, Unit
    from sire_core.papers.smart.entity_network import EntityNetwork, Statements
    from sire_core.papers.smart.entity_views import EvidenceView


@dataclass(frozen=True, slots=True)
class ReportNode:
    """An internal node of a tree over entities, with at least two entities."""

    tree: int  # number of the tree
    level: int  # 1 for the finest clusters
    children: tuple[int, ...]  # numbers of the nodes right below, by their first vertices
    statements: tuple[int, ...]  # join entities of different children, or name one of a node of similar entities
    weights: dict[int, float]  # by vertex below the node, the weight of its edges to others below it
    around: Mapping[int, float] = field(default_factory=dict)  # others that two below it are related to

    @property
    def relevance(self) -> Mapping[int, float]:
        """Weights of all vertices that a statement on the node may name."""
        return {**self.around, **self.weights} if self.around else self.weights


class _Nodes(NamedTuple):
    """The internal nodes of all trees with at least two parts, tree by tree, children before parents."""

    trees: IntArray  # number of the tree of each node, `[nodes]`
    levels: IntArray  # level of each node, 1 for the finest, `[nodes]`
    parents: IntArray  # the node right above, -1 where there is none, `[nodes]`
    sizes: IntArray  # vertices below each node, `[nodes]`
    vertices: IntArray  # the vertices below node 0, ascending, then those below node 1, and so on
    weights: DoubleArray  # weight of these vertices' edges to others below the same node
    stated: IntArray  # number of statements of each node, `[nodes]`
    statements: IntArray  # their numbers: those of node 0, ascending, then those of node 1, and so on


def _shared_neighbors(
    vertices: IntArray, weights: Mapping[int, float], rows: tuple[IntArray, IntArray, Any]
) -> dict[int, float]:
    """Return other vertices that at least two of the vertices are related to, with the weight of these relations."""
    starts, targets, values = rows
    edges = ranges(starts[vertices], starts[vertices + 1] - starts[vertices])
    neighbors, positions, counts = np.unique(targets[edges], return_inverse=True, return_counts=True)
    sums = np.bincount(positions, weights=values[edges], minlength=len(neighbors))
    shared = zip(neighbors[counts > 1].tolist(), sums[counts > 1].tolist(), strict=True)
    return {vertex: weight for vertex, weight in shared if vertex not in weights}


def _tree_nodes(
    labels: Sequence[IntArray], first: int, network: EntityNetwork, view: EvidenceView
) -> tuple[dict[str, NDArray[Any]], IntArray]:
    """Return columns of the nodes of one tree, numbered from `first`, and the node right above each vertex or -1.

    A cluster with a single part is that part (contraction).
    """
    finer = np.arange(network.size, dtype=np.int64)
    below = np.full(network.size, -1, dtype=np.int64)  # node of each cluster of the level below, where it has one
    lowest = below
    parents = np.empty(0, dtype=np.int64)
    rows = _NodeRows(network, view)
    for clusters in labels:
        above = clusters[first_members(finer)]
        has_node = np.bincount(above, minlength=int(clusters.max(initial=-1)) + 1) > 1
        numbers = np.where(has_node, first + len(parents) + np.cumsum(has_node) - 1, -1)
        rows.add(clusters, finer, above, has_node)
        parents = np.concatenate([parents, np.full(int(has_node.sum()), -1, dtype=np.int64)])
        joined = (below >= 0) & has_node[above]
        parents[below[joined] - first] = numbers[above[joined]]
        lowest = np.where((lowest < 0) & has_node[clusters], numbers[clusters], lowest)
        only_part = np.full(len(has_node), -1, dtype=np.int64)
        only_part[above] = below  # of a cluster with one part
        below, finer = np.where(has_node, numbers, only_part), clusters
    columns = rows.columns()
    if not view.joined:
        columns |= _naming_statements(network.statements, lowest - first, len(parents))
    return {**columns, "parents": parents}, lowest


def _naming_statements(all_statements: Statements, lowest: IntArray, nodes: int) -> dict[str, IntArray]:
    """Assign statements to the finest nodes whose vertices they name."""
    owners = np.repeat(np.arange(len(all_statements), dtype=np.int64), np.diff(all_statements.ends))
    above = lowest[all_statements.vertices]
    codes = np.unique((above * max(1, len(all_statements)) + owners)[above >= 0])
    owner_nodes, statements = np.divmod(codes, max(1, len(all_statements)))
    return {"stated": np.bincount(owner_nodes, minlength=nodes).astype(np.int64), "statements": statements}


class _NodeRows:
    """Vertices and statements of nodes, level by level."""

    def __init__(self, network: EntityNetwork, view: EvidenceView) -> None:
        self._edges = view.graph.edges
        self._weights = view.graph.weights
        self._inner = np.zeros(network.size)
        stated = network.statements
        self._members = stated.vertices
        self._owners = np.repeat(np.arange(len(stated), dtype=np.int64), np.diff(stated.ends))
        self._parts: list[dict[str, NDArray[Any]]] = []

    def add(self, clusters: IntArray, finer: IntArray, above: IntArray, has_node: BoolArray) -> None:
        """Add the nodes of the next level: clusters with `has_node`; `above` is the cluster of every finer cluster."""
        order = stable_order(clusters)
        order = order[has_node[clusters[order]]]
        owners, stated = self._stated(finer, above)
        self._weigh(clusters)
        self._parts.append(
            {
                "levels": np.full(int(has_node.sum()), len(self._parts) + 1, dtype=np.int64),
                "sizes": np.bincount(clusters, minlength=len(has_node))[has_node],
                "vertices": order,
                "weights": self._inner[order],
                "stated": np.bincount(stated, minlength=len(has_node))[has_node],
                "statements": owners,
            }
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Concatenate all levels."""
        names = ("levels", "sizes", "vertices", "weights", "stated", "statements")
        return {name: np.concatenate([np.empty(0, np.int64), *(part[name] for part in self._parts)]) for name in names}

    def _weigh(self, clusters: IntArray) -> None:
        """Add the weight of edges inside a cluster now: they are so at all higher levels."""
        inside = clusters[self._edges[:, 0]] == clusters[self._edges[:, 1]]
        ends = self._edges[inside].T.ravel()
        self._inner += np.bincount(ends, weights=np.tile(self._weights[inside], 2), minlength=len(clusters))
        self._edges, self._weights = self._edges[~inside], self._weights[~inside]

    def _stated(self, finer: IntArray, above: IntArray) -> tuple[IntArray, IntArray]:
        """Return statements that join parts which are apart one level below, and their clusters, by cluster."""
        size = len(above) + 1
        owners, parts = np.divmod(distinct(self._owners * size + finer[self._members]), size)
        counts = np.bincount(owners, minlength=1)
        # What is in one part already is so at all higher levels.
        is_open, apart = counts[self._owners] > 1, counts[owners] > 1
        self._owners, self._members = self._owners[is_open], self._members[is_open]
        codes, times = np.unique(above[parts[apart]] * len(counts) + owners[apart], return_counts=True)
        clusters, owners = np.divmod(codes[times > 1], len(counts))
        return owners, clusters


def tree_name(tree: int) -> str:
    """Return the name of a tree in units, counted from 1."""
    return f"perspective {tree + 1}"


@dataclass(frozen=True, slots=True)
class ReportTable(ArrayNote):
    """Which reports there are and what is right below each, as a note for queries."""

    entities: IdArray  # ids of the entities, by vertex
    reports: IdArray  # ids of the report units, ascending
    trees: NDArray[np.uint8]  # of each report
    children: Int32Array  # report and report below it, `[n, 2]`
    mentions: Int32Array  # report and entity below it, `[n, 2]`

    def __iter__(self) -> Iterator[Edge]:
        """Yield the edges from reports to what is right below them, each once."""
        reports, entities = self.reports.astype(str).tolist(), self.entities.astype(str).tolist()
        for kind, pairs, below in (("child", self.children, reports), (MENTIONS, self.mentions, entities)):
            for report, number in np.unique(pairs, axis=0).tolist():
                yield Edge(kind, reports[report], below[number])

    @classmethod
    def empty(cls) -> ReportTable:
        """A table without reports."""
        ids, pairs = np.empty(0, "S24"), np.empty((0, 2), dtype=np.int32)
        return cls(ids, ids, np.empty(0, dtype=np.uint8), pairs, pairs)


class ReportForest:
    """The nodes of all trees that can have a report."""

    def __init__(self, encoded: Sequence[EncodingTree], views: Sequence[EvidenceView], network: EntityNetwork) -> None:
        self.network = network
        self._joined = np.array([view.joined for view in views], dtype=np.bool_)  # see `EvidenceView`, by tree
        self._lowest: list[IntArray] = []  # by tree, the node right above each vertex, -1 where there is none
        parts: list[dict[str, NDArray[Any]]] = []
        size = 0
        for number, (tree, view) in enumerate(zip(encoded, views, strict=True)):
            columns, lowest = _tree_nodes(tree.filled(), size, network, view)
            parts.append({**columns, "trees": np.full(len(columns["levels"]), number, dtype=np.int64)})
            self._lowest.append(lowest)
            size += len(columns["levels"])
        empty = np.empty(0, dtype=np.int64)
        self._nodes = _Nodes(*(np.concatenate([empty, *(part[name] for part in parts)]) for name in _Nodes._fields))
        self._children: list[list[int]] = [[] for _ in range(size)]  # nodes right below each, by their first vertices
        first_vertices = self._nodes.vertices[np.cumsum(self._nodes.sizes) - self._nodes.sizes]
        for child in np.argsort(first_vertices, kind="stable").tolist():
            if self._nodes.parents[child] >= 0:
                self._children[self._nodes.parents[child]].append(child)

    def numbers(self, level: int) -> list[int]:
        """Return the numbers of the nodes of a level."""
        numbers: list[int] = np.flatnonzero(self._nodes.levels == level).tolist()
        return numbers

    def nodes(self, numbers: Sequence[int]) -> list[ReportNode]:
        """Return nodes by number."""
        columns = self._nodes
        rows = None if self._joined.all() else self.network.graph.rows()
        ends, last = np.cumsum(columns.sizes), np.cumsum(columns.stated)
        nodes = []
        for number in numbers:
            inside = slice(int(ends[number] - columns.sizes[number]), int(ends[number]))
            stated = slice(int(last[number] - columns.stated[number]), int(last[number]))
            tree, vertices = int(columns.trees[number]), columns.vertices[inside]
            weights = dict(zip(vertices.tolist(), columns.weights[inside].tolist(), strict=True))
            statements = tuple(columns.statements[stated].tolist())
            around = {} if rows is None or self._joined[tree] else _shared_neighbors(vertices, weights, rows)
            level, children = int(columns.levels[number]), tuple(self._children[number])
            nodes.append(ReportNode(tree, level, children, statements, weights, around))
        return nodes

    def table(self, written: Mapping[int, Unit]) -> ReportTable:
        """Return the table to store: what is right below each report, given by node."""
        reports = np.zeros(len(self._children), dtype="S24")
        reports[list(written)] = [unit.id.encode() for unit in written.values()]
        nodes, has_report = self._nodes, reports != b""
        up = np.where(has_report, np.arange(len(reports), dtype=np.int64), nodes.parents)
        for _ in range(int(nodes.levels.max(initial=0))):
            climbing = (up >= 0) & ~has_report[up]
            up = np.where(climbing, nodes.parents[up], up)
        nested = np.flatnonzero(has_report & (nodes.parents >= 0))
        children = np.stack([up[nodes.parents[nested]], nested], axis=1)
        nearest = np.array([np.append(up, -1)[lowest] for lowest in self._lowest], dtype=np.int64)
        nearest = nearest.reshape(len(self._lowest), self.network.size)
        trees, vertices = np.nonzero(nearest >= 0)
        ids, inverse = np.unique(np.append(reports, b""), return_inverse=True)  # the empty id is the first
        numbers = inverse[:-1].astype(np.int32) - np.int32(1)
        tree_of = np.zeros(len(ids) - 1, dtype=np.uint8)
        tree_of[numbers[has_report]] = nodes.trees[has_report]
        mentions = np.stack([numbers[nearest[trees, vertices]], vertices], axis=1).astype(np.int32)
        return ReportTable(self.network.ids, ids[1:], tree_of, numbers[children[children[:, 0] >= 0]], mentions)
