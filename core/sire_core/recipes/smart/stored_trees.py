"""Trees of a changing corpus: new entities join their neighbours' clusters until a rebuild pays; not in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import id_hashes, positions_in
from sire_core.knowledge.ragged import pack_arrays, unpack_arrays
from sire_core.recipes.smart.communities import MergeLevel, entropy_partition
from sire_core.recipes.smart.encoding_tree import EncodingTree, UndirectedGraph, canonical_labels, first_members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.network import EntityNetwork
    from sire_core.recipes.smart.views import EvidenceView

    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StoredTrees:
    """Clusters by entity, as stored between changes.

    Attributes:
        keys: `EntityNetwork.keys`, `[entities]`.
        ids: Hashes of their ids in the knowledge graph, `[entities]`.
        labels: Cluster of every entity at every level of every tree, `[trees, levels, entities]`; lower trees repeat
            their highest level.
    """

    keys: Hashes
    ids: Hashes
    labels: Ints

    @classmethod
    def of(cls, trees: Sequence[EncodingTree], network: EntityNetwork) -> StoredTrees:
        """Build from trees over the entities of a network."""
        height = max((tree.height for tree in trees), default=0) or 1
        labels = np.empty((len(trees), height, network.size), dtype=np.int64)
        for table, tree in zip(labels, trees, strict=True):
            levels = list(tree.filled()) or [np.arange(tree.size, dtype=np.int64)]
            table[:] = [*levels, *[levels[-1]] * (height - len(levels))]
        return cls(network.keys, id_hashes(network.ids), labels)

    def missing(self, keys: Hashes) -> int:
        """Count the keys that are not stored."""
        return int((positions_in(self.keys, keys) < 0).sum())

    def to_note(self) -> bytes:
        """Serialize for the store."""
        return pack_arrays({"keys": self.keys, "ids": self.ids, "labels": self.labels.astype(np.int32)})

    @classmethod
    def from_note(cls, note: bytes | None) -> StoredTrees:
        """Read what `to_note` wrote; no trees if there is no note."""
        if note is None:
            nothing = np.empty(0, dtype=np.uint64)
            return cls(nothing, nothing, np.empty((0, 0, 0), dtype=np.int64))
        arrays = unpack_arrays(note)
        return cls(arrays["keys"], arrays["ids"], arrays["labels"].astype(np.int64))


def carried_over(
    stored: StoredTrees, network: EntityNetwork, views: Sequence[EvidenceView]
) -> tuple[EncodingTree, ...]:
    """Apply stored trees to the vertices as they are now.

    Entities that are gone are left out. A new one joins, level by level, the cluster with most of the weight of its
    edges in the tree's view; new ones without a path to an old one form a cluster per connected component. Then the
    finest clusters that contain an entity that is new, or named by other passages than before, are grouped again
    (`repaired_clusters`).
    """
    positions = positions_in(stored.keys, network.keys)
    known = positions >= 0
    labels = np.where(known, stored.labels[..., positions], -1)
    # The id of an entity changes with the passages that name it.
    changed = positions_in(stored.ids, id_hashes(network.ids)) < 0
    for levels, view in zip(labels, views, strict=True):
        _place_new_vertices(levels, known, view.graph)
        above = levels[1] if len(levels) > 1 else np.zeros_like(levels[0])
        levels[0] = repaired_clusters(view.graph, levels[0], above, ~known, changed)
    return tuple(EncodingTree(network.size, tuple(levels)).contracted() for levels in labels)


def repaired_clusters(
    graph: UndirectedGraph, clusters: Ints, above: Ints, new: NDArray[np.bool_], changed: NDArray[np.bool_]
) -> Ints:
    """Group the vertices of the finest clusters that contain a changed vertex again.

    The vertices stay below their nodes of the next level, so no other level changes. New vertices begin alone; the
    decoding information never falls below that of new vertices alone.

    Args:
        graph: The graph after the change.
        clusters: Finest cluster of every vertex, `[n]`, at least 0.
        above: Cluster of the next level, `[n]`; all 0 where there is none.
        new: Mask of vertices that were put into clusters without a look at entropies, `[n]`.
        changed: Mask of vertices that are new or whose edges changed, `[n]`.

    Returns:
        Labels `[n]`, numbered by the smallest vertex.
    """
    affected = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.bool_)
    affected[clusters[changed]] = True
    inside = np.flatnonzero(affected[clusters])
    if not len(inside):
        return canonical_labels(clusters)
    groups = np.where(new, len(affected) + np.arange(graph.size), clusters)
    positions = np.full(graph.size, -1, dtype=np.int64)
    positions[inside] = np.arange(len(inside))
    ends = positions[graph.edges]
    together = (ends >= 0).all(axis=1) & (above[graph.edges[:, 0]] == above[graph.edges[:, 1]])
    within = UndirectedGraph(len(inside), ends[together], graph.weights[together])
    degrees = graph.degrees()
    volumes = np.bincount(above, weights=degrees).astype(np.float64)
    level = MergeLevel(within, degrees[inside], volumes[above[inside]], graph.volume())
    regrouped = entropy_partition(level, canonical_labels(groups[inside]))
    groups[inside] = len(affected) + graph.size + inside[first_members(regrouped)][regrouped]
    return canonical_labels(groups)


def _place_new_vertices(levels: Ints, known: Mask, graph: UndirectedGraph) -> None:
    """Put new vertices into clusters; changes `levels`."""
    starts, targets, weights = graph.rows()
    next_cluster = int(levels.max(initial=-1)) + 1
    for vertex in _reach_order(known, starts, targets):
        row = slice(int(starts[vertex]), int(starts[vertex + 1]))
        neighbors = [
            (u, w) for u, w in zip(targets[row].tolist(), weights[row].tolist(), strict=True) if levels[0, u] >= 0
        ]
        levels[:, vertex] = levels[:, _heaviest_neighbor(neighbors, levels[0])] if neighbors else next_cluster
        next_cluster += not neighbors


def _reach_order(known: Mask, starts: Ints, targets: Ints) -> list[int]:
    """Order new vertices breadth first from the old ones, then by component."""
    seen = known.copy()
    order: list[int] = []

    def neighbors_of(vertex: int) -> list[int]:
        neighbors: list[int] = targets[starts[vertex] : starts[vertex + 1]].tolist()
        return neighbors

    def spread(queue: list[int]) -> None:
        for vertex in queue:  # grows while it is read
            if not seen[vertex]:
                seen[vertex] = True
                order.append(vertex)
                queue.extend(neighbors_of(vertex))

    new = np.flatnonzero(~known).tolist()
    reached = ((u, vertex) for vertex in new for u in neighbors_of(vertex) if known[u])
    spread([vertex for _, vertex in sorted(reached)])
    for vertex in new:
        spread([vertex])
    return order


def _heaviest_neighbor(neighbors: Sequence[tuple[int, float]], clusters: Ints) -> int:
    """Return a neighbor in the cluster with most weight, the first in a tie."""
    total: dict[int, float] = {}
    for neighbor, weight in neighbors:
        cluster = int(clusters[neighbor])
        total[cluster] = total.get(cluster, 0.0) + weight
    best = max(total, key=lambda cluster: total[cluster])
    return next(neighbor for neighbor, _ in neighbors if clusters[neighbor] == best)
