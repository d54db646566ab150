"""Nodes of encoding trees that can have a report, and the statements that belong to each (ALGORITHMS 6.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.entity_network import EntityNetwork, Statement

__all__ = ["ReportNode", "report_nodes"]


@dataclass(frozen=True, slots=True)
class ReportNode:
    """An internal node of a tree over entities, with two entities or more.

    Attributes:
        tree: Number of the tree.
        level: 1 for the finest clusters.
        children: Numbers of the nodes right below, in the list of all nodes of the tree.
        alone: Vertices right below.
        statements: Numbers of the statements that join entities of different children.
        weights: By vertex below the node, the weight of its edges to others below it.
    """

    tree: int
    level: int
    children: tuple[int, ...]
    alone: tuple[int, ...]
    statements: tuple[int, ...]
    weights: dict[int, float]


def report_nodes(labels: Sequence[NDArray[np.int64]], tree: int, network: EntityNetwork) -> list[ReportNode]:
    """Nodes of one tree, children before parents; a cluster with a single part is that part (contraction).

    Args:
        labels: Cluster of every vertex at each level, finest first, nested, without -1 (`EncodingTree.filled`).
        tree: Number of the tree.
        network: Whose vertices and statements.
    """
    pairs = np.array(list(network.pairs), dtype=np.int64).reshape(-1, 2)
    weights = np.fromiter(network.pairs.values(), dtype=np.float64, count=len(network.pairs))
    nodes: list[ReportNode] = []
    finer = np.arange(network.size, dtype=np.int64)
    below: dict[int, int] = {}  # node of each cluster of the level below, where it has one
    for level, clusters in enumerate(labels, 1):
        inner = _inner_weights(clusters, pairs, weights)
        stated = _statements(network.statements, clusters.tolist(), finer.tolist())
        current: dict[int, int] = {}
        for cluster, members in _groups(clusters):
            parts = list(dict.fromkeys(finer[members].tolist()))
            if len(parts) == 1:
                if parts[0] in below:
                    current[cluster] = below[parts[0]]
                continue
            current[cluster] = len(nodes)
            alone = [vertex for vertex in members.tolist() if finer[vertex] not in below]
            own = dict(zip(members.tolist(), inner[members].tolist(), strict=True))
            found = tuple(below[part] for part in parts if part in below)
            nodes.append(ReportNode(tree, level, found, tuple(alone), tuple(stated.get(cluster, ())), own))
        below, finer = current, clusters
    return nodes


def _groups(clusters: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """Members of every cluster, ascending; clusters by their first member."""
    if not len(clusters):
        return []
    order = np.argsort(clusters, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    groups.sort(key=lambda group: int(group[0]))
    return [(int(clusters[group[0]]), group) for group in groups]


def _inner_weights(
    clusters: NDArray[np.int64], pairs: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weight of every vertex's edges inside its cluster."""
    inside = clusters[pairs[:, 0]] == clusters[pairs[:, 1]]
    ends = pairs[inside].T.ravel()
    return np.bincount(ends, weights=np.tile(weights[inside], 2), minlength=len(clusters)).astype(np.float64)


def _statements(statements: Sequence[Statement], clusters: Sequence[int], finer: Sequence[int]) -> dict[int, list[int]]:
    """By cluster, the statements that join what is apart one level below."""
    found: dict[int, list[int]] = {}
    for number, statement in enumerate(statements):
        parts: dict[int, set[int]] = {}
        for vertex in statement.names:
            parts.setdefault(clusters[vertex], set()).add(finer[vertex])
        for cluster, apart in parts.items():
            if len(apart) > 1:
                found.setdefault(cluster, []).append(number)
    return found
