"""Encoding trees with little structural entropy, level by level (SMART)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.recipes.smart.encoding_tree import EncodingTree, canonical_labels, first_members
from sire_core.recipes.smart.entropy_merging import SMALLEST_GAIN, MergeLevel, merge_communities
from sire_core.recipes.smart.entropy_moves import dissolve_groups, move_units
from sire_core.recipes.smart.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["entropy_partition", "entropy_tree", "repaired_clusters"]

_ENOUGH = 1e-3  # of the information: the last round is the one whose dissolutions add less


def entropy_partition(level: MergeLevel, start: Ints | None = None) -> Ints:
    """Group units so that the tree entropy becomes small: merges, moves and dissolutions until they bring no more.

    Args:
        level: Units, volumes and ceilings.
        start: `[n]`, groups to start from; every unit alone when left out.

    Returns:
        `[n]`, numbered by the smallest unit. Never worse than the start.
    """
    labels = merge_communities(level, start)
    while True:
        moved = move_units(level, labels)
        improved = merge_communities(level, dissolve_groups(level, moved))
        before, after = level.information(moved), level.information(improved)
        if after - before <= _ENOUGH * after:
            return improved
        labels = improved


def entropy_tree(graph: UndirectedGraph, levels: int = 3, start: Ints | None = None) -> EncodingTree:
    """A tree of at most `levels` levels with little entropy.

    The first level found is a partition of the vertices. Its clusters are grouped in the same way to higher levels as
    long as that saves anything; if levels are left then, the finest clusters are divided.

    Args:
        graph: The graph.
        levels: Most levels between the vertices and the root, at least 1.
        start: `[n]`, a partition that is used as it is for the first level found.

    Returns:
        A tree without single-child nodes; vertices without edges hang off the root.
    """
    base = MergeLevel.of(graph)
    labels = [entropy_partition(base) if start is None else canonical_labels(start)]
    while len(labels) < levels:
        above = _group(graph, labels[-1], base)
        if above is None:
            break
        labels.append(above)
    while len(labels) < levels:
        below = _divide(graph, labels[0], base)
        if below is None:
            break
        labels.insert(0, below)
    return EncodingTree(graph.size, tuple(labels)).contracted()


def _group(graph: UndirectedGraph, labels: Ints, base: MergeLevel) -> Ints | None:
    """The level above the highest one."""
    volumes = np.bincount(labels, weights=base.volumes).astype(np.float64)
    level = MergeLevel(graph.contracted(labels), volumes, np.full(len(volumes), base.total), base.total)
    groups = entropy_partition(level)
    return groups[labels] if level.information(groups) > SMALLEST_GAIN else None


def _divide(graph: UndirectedGraph, labels: Ints, base: MergeLevel) -> Ints | None:
    """The level below the finest one."""
    inside = labels[graph.edges[:, 0]] == labels[graph.edges[:, 1]]
    within = UndirectedGraph(graph.size, graph.edges[inside], graph.weights[inside])
    ceilings = np.bincount(labels, weights=base.volumes)[labels].astype(np.float64)
    level = MergeLevel(within, base.volumes, ceilings, base.total)
    groups = entropy_partition(level)
    return groups if level.information(groups) > SMALLEST_GAIN else None


def repaired_clusters(graph: UndirectedGraph, clusters: Ints, above: Ints, new: Flags, changed: Flags) -> Ints:
    """Group the vertices of those finest clusters again that hold a vertex that changed.

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
    level = MergeLevel(within, degrees[inside], volumes[above[inside]], graph.volume())
    found = entropy_partition(level, canonical_labels(groups[inside]))
    groups[inside] = len(held) + graph.size + inside[first_members(found)][found]
    return canonical_labels(groups)
