"""Trees of a corpus that changes: new entities join their neighbours' clusters until a rebuild pays (DESIGN 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.encoding_tree import EncodingTree
from sire_core.organize.network_table import arrays_from_note, arrays_to_note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.undirected import UndirectedGraph

    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

__all__ = ["StoredTrees", "carried_over"]


@dataclass(frozen=True, slots=True)
class StoredTrees:
    """Clusters by entity, as they are stored between changes.

    Attributes:
        keys: Of the entities; see `EntityNetwork`.
        labels: Cluster of every entity at every level of every tree, `[trees, levels, entities]`; lower trees repeat
            their highest level.
    """

    keys: Hashes
    labels: Ints

    @classmethod
    def of(cls, trees: Sequence[EncodingTree], keys: Hashes) -> StoredTrees:
        """From trees over entities."""
        most = max((tree.height for tree in trees), default=0) or 1
        labels = np.empty((len(trees), most, len(keys)), dtype=np.int64)
        for table, tree in zip(labels, trees, strict=True):
            levels = list(tree.filled()) or [np.arange(tree.size, dtype=np.int64)]
            table[:] = [*levels, *[levels[-1]] * (most - len(levels))]
        return cls(keys, labels)

    def missing(self, keys: Hashes) -> int:
        """How many of some entities are new."""
        return int((~np.isin(keys, self.keys)).sum())

    def to_note(self) -> bytes:
        """Bytes for the store."""
        return arrays_to_note({"keys": self.keys, "labels": self.labels.astype(np.int32)})

    @classmethod
    def from_note(cls, note: bytes | None) -> StoredTrees:
        """What `to_note` wrote; no trees at first."""
        if note is None:
            return cls(np.empty(0, dtype=np.uint64), np.empty((0, 0, 0), dtype=np.int64))
        arrays = arrays_from_note(note)
        return cls(arrays["keys"], arrays["labels"].astype(np.int64))


def carried_over(stored: StoredTrees, keys: Hashes, graph: UndirectedGraph) -> tuple[EncodingTree, ...]:
    """Stored trees over the vertices as they are now.

    Entities that are gone are left out. A new one joins, level by level, the cluster to which most of the weight of its
    edges leads; new ones without a way to an old one form a cluster per connected component.

    Args:
        stored: Trees of before, at least one.
        keys: Of the vertices now.
        graph: Their edges.
    """
    order = np.argsort(stored.keys, kind="stable")
    place = order[np.minimum(np.searchsorted(stored.keys[order], keys), len(order) - 1)]
    known = stored.keys[place] == keys
    table = np.where(known, stored.labels[..., place], -1)
    starts, targets, weights = graph.rows()
    fresh = int(table.max(initial=-1)) + 1
    for vertex in _in_order_of_reach(known, starts, targets):
        row = slice(int(starts[vertex]), int(starts[vertex + 1]))
        near = [
            (u, w) for u, w in zip(targets[row].tolist(), weights[row].tolist(), strict=True) if table[0, 0, u] >= 0
        ]
        for tree in table:
            tree[:, vertex] = tree[:, _host(near, tree[0])] if near else fresh
        fresh += not near
    return tuple(EncodingTree(len(keys), tuple(levels)).contracted() for levels in table)


def _in_order_of_reach(known: NDArray[np.bool_], starts: Ints, targets: Ints) -> list[int]:
    """New vertices, breadth first from the old ones; then those that no old one reaches, component by component."""
    seen = known.copy()
    order: list[int] = []

    def near(vertex: int) -> list[int]:
        found: list[int] = targets[starts[vertex] : starts[vertex + 1]].tolist()
        return found

    def spread(queue: list[int]) -> None:
        for vertex in queue:  # grows while it is read
            if not seen[vertex]:
                seen[vertex] = True
                order.append(vertex)
                queue.extend(near(vertex))

    new = np.flatnonzero(~known).tolist()
    reached = ((u, vertex) for vertex in new for u in near(vertex) if known[u])
    spread([vertex for _, vertex in sorted(reached)])
    for vertex in new:
        spread([vertex])
    return order


def _host(near: Sequence[tuple[int, float]], clusters: Ints) -> int:
    """A neighbour in the cluster to which most weight leads; of equals the first."""
    total: dict[int, float] = {}
    for neighbor, weight in near:
        cluster = int(clusters[neighbor])
        total[cluster] = total.get(cluster, 0.0) + weight
    best = max(total, key=lambda cluster: total[cluster])
    return next(neighbor for neighbor, _ in near if clusters[neighbor] == best)
