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
from sire_core.papers.smart.encoding_tree import first_members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.extend import DoubleArray, IdArray, Int32Array, IntArray, Unit
    from sire_core.papers.smart.entity_network import EntityNetwork, Statements
    from sire_core.papers.smart.entity_views import EvidenceView
    from sire_core.papers.smart.reports import Report


@dataclass(slots=True, eq=False)
class ReportNode:
    """An internal node of a tree over entities, with at least two parts, and the report on it once that is written."""

    tree: int  # number of the tree
    level: int  # 1 for the finest clusters
    children: Sequence[ReportNode]  # the nodes right below, by their first vertices
    statements: tuple[int, ...]  # join entities of different children, or name one of a node of similar entities
    weights: dict[int, float]  # by vertex below the node, the weight of its edges to others below it
    around: Mapping[int, float] = field(default_factory=dict)  # others that two below it are related to
    report: Report | None = None
    unit: Unit | None = None  # the report as a unit
    passed_on: Sequence[int] = ()  # statements that the node leaves to those above

    @property
    def relevance(self) -> Mapping[int, float]:
        """Weights of all vertices that a statement on the node may name."""
        return {**self.around, **self.weights} if self.around else self.weights


class ReportTree(NamedTuple):
    """The nodes of a tree that can have a report."""

    nodes: Sequence[ReportNode]  # children before parents
    lowest: Sequence[ReportNode | None]  # the node right above each vertex


def report_tree(number: int, labels: Sequence[IntArray], network: EntityNetwork, view: EvidenceView) -> ReportTree:
    """Make the nodes of a tree from its clusters, the finest first; a cluster with a single part is that part."""
    nodes: list[ReportNode] = []
    lowest: list[ReportNode | None] = [None] * network.size
    finer, below = np.arange(network.size, dtype=np.int64), list(lowest)
    rows = None if view.joined else network.graph.rows()
    evidence = _Evidence(network, view)
    for level, clusters in enumerate(labels, 1):
        above = clusters[first_members(finer)]
        statements, inner = evidence.statements(finer, above), evidence.weights(clusters)
        made: list[ReportNode | None] = []
        for cluster, (parts, vertices) in enumerate(zip(_members(above), _members(clusters), strict=True)):
            if len(parts) == 1:
                made.append(below[parts[0]])
                continue
            weights = dict(zip(vertices.tolist(), inner[vertices].tolist(), strict=True))
            around = {} if rows is None else _shared_neighbors(vertices, weights, rows)
            children = [child for part in parts.tolist() if (child := below[part]) is not None]
            node = ReportNode(number, level, children, tuple(statements.get(cluster, ())), weights, around)
            for vertex in weights:
                lowest[vertex] = lowest[vertex] or node
            nodes.append(node)
            made.append(node)
        finer, below = clusters, made
    if not view.joined:
        _assign_naming_statements(nodes, lowest, network.statements)
    return ReportTree(nodes, lowest)


def _members(labels: IntArray) -> list[IntArray]:
    """Return the positions of every label, ascending."""
    return np.split(stable_order(labels), np.cumsum(np.bincount(labels))[:-1]) if len(labels) else []


def _assign_naming_statements(
    nodes: Sequence[ReportNode], lowest: Sequence[ReportNode | None], statements: Statements
) -> None:
    """Assign statements to the finest nodes whose vertices they name."""
    naming: dict[ReportNode | None, dict[int, None]] = {}
    for number in range(len(statements)):
        for vertex in statements.named(number):
            naming.setdefault(lowest[vertex], {})[number] = None
    for node in nodes:
        node.statements = tuple(naming.get(node, ()))


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


class _Evidence:
    """Edges and statements that are not inside a cluster yet, level by level."""

    def __init__(self, network: EntityNetwork, view: EvidenceView) -> None:
        self._edges = view.graph.edges
        self._weights = view.graph.weights
        self._inner = np.zeros(network.size)
        stated = network.statements
        self._members = stated.vertices
        self._owners = np.repeat(np.arange(len(stated), dtype=np.int64), np.diff(stated.ends))

    def weights(self, clusters: IntArray) -> DoubleArray:
        """Return the weight of every vertex's edges inside its cluster: they are so at all higher levels."""
        inside = clusters[self._edges[:, 0]] == clusters[self._edges[:, 1]]
        ends = self._edges[inside].T.ravel()
        self._inner += np.bincount(ends, weights=np.tile(self._weights[inside], 2), minlength=len(clusters))
        self._edges, self._weights = self._edges[~inside], self._weights[~inside]
        return self._inner

    def statements(self, finer: IntArray, above: IntArray) -> dict[int, list[int]]:
        """Return, by cluster, the statements that join parts of it; `above` is the cluster of every part."""
        size = len(above) + 1
        owners, parts = np.divmod(distinct(self._owners * size + finer[self._members]), size)
        counts = np.bincount(owners, minlength=1)
        # What is in one part already is so at all higher levels.
        is_open, apart = counts[self._owners] > 1, counts[owners] > 1
        self._owners, self._members = self._owners[is_open], self._members[is_open]
        codes, times = np.unique(above[parts[apart]] * len(counts) + owners[apart], return_counts=True)
        by_cluster: dict[int, list[int]] = {}
        for code in codes[times > 1].tolist():
            by_cluster.setdefault(code // len(counts), []).append(code % len(counts))
        return by_cluster


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

    @classmethod
    def of(cls, trees: Sequence[ReportTree], entities: IdArray) -> ReportTable:
        """Collect what is right below each report, once all are written."""
        units = dict(sorted((node.unit.id, node.tree) for tree in trees for node in tree.nodes if node.unit))
        number = {name: row for row, name in enumerate(units)}
        children: list[tuple[int, int]] = []
        mentions: list[tuple[int, int]] = []
        for tree in trees:
            nearest: dict[ReportNode, int] = {}  # report of a node or, without one, of those above
            for node in reversed(tree.nodes):
                upper = nearest.get(node, -1)
                nearest[node] = number[node.unit.id] if node.unit else upper
                if node.unit and upper >= 0:
                    children.append((upper, nearest[node]))
                nearest |= dict.fromkeys(node.children, nearest[node])
            mentions += [(nearest[node], at) for at, node in enumerate(tree.lowest) if node and nearest[node] >= 0]
        return cls(
            entities,
            np.array(list(units), dtype="S24"),
            np.array(list(units.values()), dtype=np.uint8),
            np.array(children, dtype=np.int32).reshape(-1, 2),
            np.array(mentions, dtype=np.int32).reshape(-1, 2),
        )
