"""From memberships to an encoding tree (SMART)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.encoding_tree import EncodingTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Labels = NDArray[np.int64]

__all__ = ["nested_labels", "repaired_labels", "tree_of"]


def nested_labels(finest: Labels, parents: Sequence[Labels]) -> list[Labels]:
    """Labels of all levels where every cluster has one parent.

    Args:
        finest: `[n]`, clusters of the vertices.
        parents: Per level but the highest: the cluster above each cluster.
    """
    levels = [finest]
    for parent in parents:
        levels.append(parent[levels[-1]])
    return levels


def repaired_labels(levels: Sequence[Labels]) -> list[Labels]:
    """Make independent levels nest: a cluster's parent is where most of its vertices are, the smaller in a tie.

    Args:
        levels: `[n]` per level, the finest first.
    """
    repaired = [levels[0]]
    for level in levels[1:]:
        below = repaired[-1]
        votes, counts = np.unique(np.stack([below, level], axis=1), axis=0, return_counts=True)
        order = np.lexsort((votes[:, 1], -counts, votes[:, 0]))
        clusters, first = np.unique(votes[order, 0], return_index=True)
        repaired.append(votes[order, 1][first][np.searchsorted(clusters, below)])
    return repaired


def tree_of(levels: Sequence[Labels], held: Labels, size: int) -> EncodingTree:
    """The tree over all vertices; those that are not held hang off the root. No empty, no single-child nodes.

    Args:
        levels: Per level the clusters of the held vertices, the finest first, nesting.
        held: Numbers of the held vertices, ascending.
        size: Number of all vertices.
    """
    whole = [np.full(size, -1, dtype=np.int64) for _ in levels]
    for target, level in zip(whole, levels, strict=True):
        target[held] = level
    return EncodingTree(size, tuple(whole)).contracted()
