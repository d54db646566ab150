"""Encoding trees of graphs that changed: only clusters with vertices that changed are looked at (ALGORITHMS 6.5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.encoding_tree import canonical_labels
from sire_core.algorithms.entropy_levels import entropy_partition
from sire_core.algorithms.entropy_merging import Level
from sire_core.algorithms.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["repaired_levels"]


def repaired_levels(graph: UndirectedGraph, labels: Ints, new: Flags, changed: Flags) -> Ints:
    """Group anew, level by level from the finest, the parts of those clusters that hold a vertex that changed.

    What is grouped stays below the node that it is below, so that no other level's share of the decoding information
    changes; vertices that are new begin alone. The decoding information never falls below that of new vertices alone.

    Args:
        graph: The graph as it is now.
        labels: `[levels, n]`, cluster of every vertex at each level, finest first, nested, without -1.
        new: `[n]`, vertices that were put into clusters without a look at entropies.
        changed: `[n]`, vertices that are new or whose edges changed.

    Returns:
        `[levels, n]`, nested.
    """
    found = np.array([canonical_labels(level) for level in labels])
    units = np.arange(graph.size, dtype=np.int64)
    degrees, total = graph.degrees(), graph.volume()
    for number in range(len(found)):
        parents = found[number + 1] if number + 1 < len(found) else np.zeros_like(units)
        groups = found[number].copy()
        held = np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.bool_)
        held[groups[changed]] = True
        inside = held[groups]
        if number == 0:
            alone = np.flatnonzero(new)
            groups[alone] = graph.size + alone
        if inside.any():
            groups[inside] = graph.size * 2 + _regrouped(graph, units, groups, parents, inside, degrees, total)
        found[number] = canonical_labels(groups)
        units = found[number]
    return found


def _regrouped(
    graph: UndirectedGraph,
    units: Ints,
    groups: Ints,
    parents: Ints,
    inside: Flags,
    degrees: NDArray[np.float64],
    total: float,
) -> Ints:
    """Groups of the vertices `inside`, which are whole groups of whole units."""
    own, first, local = np.unique(units[inside], return_index=True, return_inverse=True)
    place = np.full(graph.size, -1, dtype=np.int64)
    place[inside] = local.ravel()
    ends = place[graph.edges]
    together = (ends >= 0).all(axis=1) & (parents[graph.edges[:, 0]] == parents[graph.edges[:, 1]])
    within = UndirectedGraph.from_edges(len(own), ends[together], graph.weights[together])
    volumes = np.bincount(local.ravel(), weights=degrees[inside], minlength=len(own)).astype(np.float64)
    ceilings = np.bincount(parents, weights=degrees)[parents[inside][first]]
    level = Level(within, volumes, ceilings.astype(np.float64), total)
    start = canonical_labels(groups[inside][first])
    return entropy_partition(level, start)[local.ravel()]
