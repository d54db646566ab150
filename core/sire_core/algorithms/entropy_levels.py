"""Encoding trees with little structural entropy, level by level (ALGORITHMS 6.5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.encoding_tree import EncodingTree, canonical_labels
from sire_core.algorithms.entropy_merging import SMALLEST_GAIN, Level, merge_communities
from sire_core.algorithms.entropy_moves import dissolve_groups, move_units
from sire_core.algorithms.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = ["entropy_partition", "entropy_tree"]

_ENOUGH = 1e-3  # of the information: the last round is the one whose dissolutions add less


def entropy_partition(level: Level, start: Ints | None = None) -> Ints:
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
    base = Level.of(graph)
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


def _group(graph: UndirectedGraph, labels: Ints, base: Level) -> Ints | None:
    """The level above the highest one."""
    volumes = np.bincount(labels, weights=base.volumes).astype(np.float64)
    level = Level(graph.contracted(labels), volumes, np.full(len(volumes), base.total), base.total)
    groups = entropy_partition(level)
    return groups[labels] if level.information(groups) > SMALLEST_GAIN else None


def _divide(graph: UndirectedGraph, labels: Ints, base: Level) -> Ints | None:
    """The level below the finest one."""
    inside = labels[graph.edges[:, 0]] == labels[graph.edges[:, 1]]
    within = UndirectedGraph(graph.size, graph.edges[inside], graph.weights[inside])
    ceilings = np.bincount(labels, weights=base.volumes)[labels].astype(np.float64)
    level = Level(within, base.volumes, ceilings, base.total)
    groups = entropy_partition(level)
    return groups if level.information(groups) > SMALLEST_GAIN else None
