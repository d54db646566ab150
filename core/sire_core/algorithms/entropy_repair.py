"""Encoding trees of graphs that changed: clusters with vertices that changed are grouped anew (ALGORITHMS 6.5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.encoding_tree import canonical_labels, first_members
from sire_core.algorithms.entropy_levels import entropy_partition
from sire_core.algorithms.entropy_merging import Level
from sire_core.algorithms.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["repaired_clusters"]


def repaired_clusters(graph: UndirectedGraph, clusters: Ints, above: Ints, new: Flags, changed: Flags) -> Ints:
    """Group the vertices of those finest clusters anew that hold a vertex that changed.

    They stay below the nodes that they are below, so that no other level's share of the decoding information changes;
    vertices that are new begin alone. The decoding information never falls below that of new vertices alone.

    Args:
        graph: The graph as it is now.
        clusters: `[n]`, finest cluster of every vertex, 0 or more.
        above: `[n]`, the cluster of the next level, 0 or more; all 0 where there is none.
        new: `[n]`, vertices that were put into clusters without a look at entropies.
        changed: `[n]`, vertices that are new or whose edges changed.

    Returns:
        `[n]`, numbered by the smallest vertex.
    """
    held = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.bool_)
    held[clusters[changed]] = True
    inside = np.flatnonzero(held[clusters])
    if not len(inside):
        return canonical_labels(clusters)
    groups = np.where(new, len(held) + np.arange(graph.size), clusters)
    place = np.full(graph.size, -1, dtype=np.int64)
    place[inside] = np.arange(len(inside))
    ends = place[graph.edges]
    together = (ends >= 0).all(axis=1) & (above[graph.edges[:, 0]] == above[graph.edges[:, 1]])
    within = UndirectedGraph(len(inside), ends[together], graph.weights[together])
    degrees = graph.degrees()
    volumes = np.bincount(above, weights=degrees).astype(np.float64)
    level = Level(within, degrees[inside], volumes[above[inside]], graph.volume())
    found = entropy_partition(level, canonical_labels(groups[inside]))
    groups[inside] = len(held) + graph.size + inside[first_members(found)][found]
    return canonical_labels(groups)
