"""Trees of a corpus that changes: new entities join their neighbours' clusters until a rebuild pays (DESIGN 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.encoding_tree import EncodingTree
from sire_core.algorithms.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.entity_network import EntityNetwork

    Labels = NDArray[np.int64]

__all__ = ["carried_over", "graph_of", "labels_by_key"]


def graph_of(network: EntityNetwork) -> UndirectedGraph:
    """The network's edges as arrays."""
    pairs = np.array(list(network.pairs), dtype=np.int64).reshape(-1, 2)
    weights = np.fromiter(network.pairs.values(), dtype=np.float64, count=len(network.pairs))
    return UndirectedGraph.from_edges(network.size, pairs, weights)


def labels_by_key(trees: Sequence[EncodingTree], network: EntityNetwork) -> dict[str, list[list[int]]]:
    """By entity, its cluster at every level of every tree: what is stored. Lower trees repeat their highest level."""
    most = max((tree.height for tree in trees), default=0)
    columns = []
    for tree in trees:
        levels = [level.tolist() for level in tree.filled()] or [list(range(tree.size))]
        columns.append([*levels, *[levels[-1]] * (most - len(levels))])
    return {key: [[level[v] for level in levels] for levels in columns] for v, key in enumerate(network.keys)}


def carried_over(stored: Mapping[str, Any], network: EntityNetwork, graph: UndirectedGraph) -> tuple[EncodingTree, ...]:
    """Stored trees over the vertices as they are now.

    Entities that are gone are left out. A new one joins, level by level, the cluster to which most of the weight of its
    edges leads; new ones without a way to an old one form a cluster per connected component.

    Args:
        stored: By entity, clusters as `labels_by_key` gives them; not empty, and all of one shape.
        network: The vertices now.
        graph: Its edges.
    """
    shape = np.array(next(iter(stored.values()))).shape
    table = np.full((*shape, network.size), -1, dtype=np.int64)
    for vertex, key in enumerate(network.keys):
        if key in stored:
            table[..., vertex] = stored[key]
    starts, targets, weights = graph.rows()
    fresh = int(table.max(initial=-1)) + 1
    for vertex in _in_order_of_reach(table[0, 0] >= 0, starts, targets):
        row = slice(int(starts[vertex]), int(starts[vertex + 1]))
        near = [
            (u, w) for u, w in zip(targets[row].tolist(), weights[row].tolist(), strict=True) if table[0, 0, u] >= 0
        ]
        for tree in table:
            tree[:, vertex] = tree[:, _host(near, tree[0])] if near else fresh
        fresh += not near
    return tuple(EncodingTree(network.size, tuple(levels)).contracted() for levels in table)


def _in_order_of_reach(known: NDArray[np.bool_], starts: Labels, targets: Labels) -> list[int]:
    """New vertices, breadth first from the old ones; then those that no old one reaches, component by component."""
    seen = known.copy()
    order: list[int] = []

    def spread(queue: list[int]) -> None:
        for vertex in queue:  # grows while it is read
            for neighbor in targets[starts[vertex] : starts[vertex + 1]].tolist():
                if not seen[neighbor]:
                    seen[neighbor] = True
                    queue.append(neighbor)
                    order.append(neighbor)

    spread(np.flatnonzero(known).tolist())
    for vertex in np.flatnonzero(~known).tolist():
        if not seen[vertex]:
            seen[vertex] = True
            order.append(vertex)
            spread([vertex])
    return order


def _host(near: Sequence[tuple[int, float]], clusters: Labels) -> int:
    """A neighbour in the cluster to which most weight leads; of equals the first."""
    total: dict[int, float] = {}
    for neighbor, weight in near:
        cluster = int(clusters[neighbor])
        total[cluster] = total.get(cluster, 0.0) + weight
    best = max(total, key=lambda cluster: total[cluster])
    return next(neighbor for neighbor, _ in near if clusters[neighbor] == best)
