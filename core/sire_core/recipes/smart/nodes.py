"""Nodes of encoding trees that can have a report, and the statements that belong to each (SMART)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import chained_hashes, ranges, stable_order
from sire_core.recipes.smart.encoding_tree import first_members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.entity_network import EntityNetwork, Statements
    from sire_core.recipes.smart.views import EvidenceView

    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

__all__ = ["ReportNode", "ReportNodes", "report_nodes"]

_APART = 1_000.0  # relations of what is alike count in a hash beside how alike it is
_KEY, _WEIGHT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class ReportNode:
    """An internal node of a tree over entities, with two entities or more.

    Attributes:
        tree: Number of the tree.
        level: 1 for the finest clusters.
        children: Numbers of the nodes right below, by their first vertices.
        statements: Numbers of the statements that join entities of different children; where the tree groups what is
            alike, at the finest nodes, those that name an entity of the node.
        weights: By vertex below the node, the weight of its edges to others below it.
        around: Where the tree groups what is alike: by vertex that two below the node are related to, the weight.
    """

    tree: int
    level: int
    children: tuple[int, ...]
    statements: tuple[int, ...]
    weights: dict[int, float]
    around: Mapping[int, float] = field(default_factory=dict)

    @property
    def telling(self) -> Mapping[int, float]:
        """Weights of all vertices that a statement on the node may name."""
        return {**self.around, **self.weights} if self.around else self.weights


@dataclass(frozen=True, slots=True)
class ReportNodes:
    """All such nodes of one tree, children before parents.

    Attributes:
        tree: Number of the tree.
        levels: Of each node, 1 for the finest clusters.
        parents: Number of the node right above, -1 where there is none.
        lowest: Per vertex the node right above it, -1 where there is none.
        sizes: Vertices below each node.
        vertices: The vertices below node 0, ascending, then those below node 1, and so on.
        weights: Of these vertices' edges to others below the same node.
        stated: Statements of each node.
        statements: Their numbers: those of node 0, ascending, then those of node 1, and so on.
        joined: Whether statements join the vertices of a node; else these are alike.
    """

    tree: int
    levels: Ints
    parents: Ints
    lowest: Ints
    sizes: Ints
    vertices: Ints
    weights: NDArray[np.float64]
    stated: Ints
    statements: Ints
    joined: bool = True

    def __len__(self) -> int:
        return len(self.levels)

    def children(self) -> list[list[int]]:
        """Nodes right below each node, by their first vertices."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        first = self.vertices[np.cumsum(self.sizes) - self.sizes]
        for child in np.argsort(first, kind="stable").tolist():
            if self.parents[child] >= 0:
                found[self.parents[child]].append(child)
        return found

    def some(
        self, numbers: Sequence[int], children: Sequence[Sequence[int]], network: EntityNetwork
    ) -> list[ReportNode]:
        """Nodes by number."""
        rows = None if self.joined or not numbers else network.graph.rows()
        ends, last = np.cumsum(self.sizes), np.cumsum(self.stated)
        found = []
        for number in numbers:
            inside = slice(int(ends[number] - self.sizes[number]), int(ends[number]))
            said = slice(int(last[number] - self.stated[number]), int(last[number]))
            weights = dict(zip(self.vertices[inside].tolist(), self.weights[inside].tolist(), strict=True))
            statements = tuple(self.statements[said].tolist())
            around = {} if rows is None else _around(self.vertices[inside], weights, rows)
            level = int(self.levels[number])
            found.append(ReportNode(self.tree, level, tuple(children[number]), statements, weights, around))
        return found

    def signatures(self, network: EntityNetwork) -> Hashes:
        """A hash per node of everything that its report is made of, but for the reports below it."""
        weights = self.weights if self.joined else self.weights + _APART * network.graph.degrees()[self.vertices]
        bits = np.ascontiguousarray(weights).view(np.uint64)
        members = (network.keys ^ network.about)[self.vertices] * _KEY ^ bits * _WEIGHT
        stated = network.statements
        said = stated.codes ^ chained_hashes(network.keys[stated.vertices], np.diff(stated.ends))
        kind = np.uint64(self.tree * 1_000) + self.levels.astype(np.uint64)
        parts = [kind, chained_hashes(members, self.sizes), chained_hashes(said[self.statements], self.stated)]
        return chained_hashes(np.stack(parts, axis=1).ravel(), np.full(len(self), len(parts), dtype=np.int64))


def _around(vertices: Ints, weights: Mapping[int, float], rows: tuple[Ints, Ints, Any]) -> dict[int, float]:
    """Other vertices that two of some vertices are related to, with the weight of these relations."""
    starts, targets, values = rows
    at = ranges(starts[vertices], starts[vertices + 1] - starts[vertices])
    near, place, counts = np.unique(targets[at], return_inverse=True, return_counts=True)
    sums = np.bincount(place, weights=values[at], minlength=len(near))
    shared = zip(near[counts > 1].tolist(), sums[counts > 1].tolist(), strict=True)
    return {vertex: weight for vertex, weight in shared if vertex not in weights}


def report_nodes(labels: Sequence[Ints], tree: int, network: EntityNetwork, view: EvidenceView) -> ReportNodes:
    """Nodes of one tree; a cluster with a single part is that part (contraction).

    Args:
        labels: Cluster of every vertex at each level, finest first, nested, without -1 (`EncodingTree.filled`).
        tree: Number of the tree.
        network: Whose vertices and statements.
        view: What the tree groups.
    """
    finer = np.arange(network.size, dtype=np.int64)
    below = np.full(network.size, -1, dtype=np.int64)  # node of each cluster of the level below, where it has one
    lowest = below
    parents: list[Ints] = [np.empty(0, dtype=np.int64)]
    rows = _Rows(network, view)
    for clusters in labels:
        above = clusters[first_members(finer)]
        real = np.bincount(above, minlength=int(clusters.max(initial=-1)) + 1) > 1
        start = sum(map(len, parents))
        numbers = np.where(real, start + np.cumsum(real) - 1, -1)
        rows.add(clusters, finer, above, real)
        so_far = np.concatenate([*parents, np.full(int(real.sum()), -1, dtype=np.int64)])
        joined = (below >= 0) & real[above]
        so_far[below[joined]] = numbers[above[joined]]
        parents = [so_far]
        lowest = np.where((lowest < 0) & real[clusters], numbers[clusters], lowest)
        passed = np.full(len(real), -1, dtype=np.int64)
        passed[above] = below  # of a cluster with one part
        below, finer = np.where(real, numbers, passed), clusters
    columns = rows.columns()
    if not view.joined:
        columns |= _named(network.statements, lowest, len(columns["levels"]))
    return ReportNodes(tree=tree, parents=parents[0], lowest=lowest, joined=view.joined, **columns)


def _named(stated: Statements, lowest: Ints, nodes: int) -> dict[str, Ints]:
    """Statements by the finest nodes whose vertices they name."""
    owners = np.repeat(np.arange(len(stated), dtype=np.int64), np.diff(stated.ends))
    above = lowest[stated.vertices]
    codes = np.unique((above * max(1, len(stated)) + owners)[above >= 0])
    found, statements = np.divmod(codes, max(1, len(stated)))
    return {"stated": np.bincount(found, minlength=nodes).astype(np.int64), "statements": statements}


class _Rows:
    """Vertices and statements of nodes, level by level."""

    def __init__(self, network: EntityNetwork, view: EvidenceView) -> None:
        self._edges = view.graph.edges
        self._weights = view.graph.weights
        self._inner = np.zeros(network.size)
        stated = network.statements
        self._members = stated.vertices
        self._owners = np.repeat(np.arange(len(stated), dtype=np.int64), np.diff(stated.ends))
        self._parts: list[dict[str, NDArray[Any]]] = []

    def add(self, clusters: Ints, finer: Ints, above: Ints, real: NDArray[np.bool_]) -> None:
        """The nodes of the next level: clusters that are `real`; `above` tells the cluster of every finer one."""
        order = stable_order(clusters)
        order = order[real[clusters[order]]]
        owners, stated = self._stated(finer, above)
        self._weigh(clusters)
        self._parts.append(
            {
                "levels": np.full(int(real.sum()), len(self._parts) + 1, dtype=np.int64),
                "sizes": np.bincount(clusters, minlength=len(real))[real],
                "vertices": order,
                "weights": self._inner[order],
                "stated": np.bincount(stated, minlength=len(real))[real],
                "statements": owners,
            }
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """All levels together."""
        empty = np.empty(0, dtype=np.int64)
        names = ("levels", "sizes", "vertices", "weights", "stated", "statements")
        return {name: np.concatenate([part[name] for part in self._parts] or [empty]) for name in names}

    def _weigh(self, clusters: Ints) -> None:
        """Add the weight of the edges that are inside a cluster now: they are so at all higher levels."""
        inside = clusters[self._edges[:, 0]] == clusters[self._edges[:, 1]]
        ends = self._edges[inside].T.ravel()
        self._inner += np.bincount(ends, weights=np.tile(self._weights[inside], 2), minlength=len(clusters))
        self._edges, self._weights = self._edges[~inside], self._weights[~inside]

    def _stated(self, finer: Ints, above: Ints) -> tuple[Ints, Ints]:
        """Statements that join what is apart one level below, and in which cluster, by cluster."""
        begins = np.diff(self._owners, prepend=-1) > 0
        number = np.cumsum(begins) - 1
        parts = finer[self._members]
        alike = parts == parts[begins][number]
        # What is in one part already is so at all higher levels.
        apart = np.bincount(number, weights=~alike, minlength=int(begins.sum())) > 0
        kept = apart[number]
        self._owners, self._members = self._owners[kept], self._members[kept]
        size, many = len(above) + 1, int(self._owners.max(initial=-1)) + 1
        codes = np.sort(self._owners * size + parts[kept])
        codes = codes[np.diff(codes, prepend=-1) > 0]
        found = np.sort(above[codes % size] * many + codes // size)
        again = found[1:] == found[:-1]
        found = found[:-1][again & ~np.append(False, again)[:-1]]  # those that are there repeatedly, once each
        return (found % many, found // many) if many else (found, found)
