"""Which trees of a graph differ by a symmetry of the graph alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.encoding_tree import EncodingTree
    from sire_core.algorithms.undirected import UndirectedGraph

    Hashes = NDArray[np.uint64]

__all__ = ["tree_signature", "vertex_colors"]

_ROUNDS = 8
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def vertex_colors(graph: UndirectedGraph) -> Hashes:
    """A hash per vertex of what the graph looks like from there (colour refinement, eight rounds).

    Vertices that a symmetry maps onto each other have the same; numbers of vertices play no part.
    """
    colors = np.zeros(graph.size, dtype=np.uint64)
    left, right = graph.edges.T
    weights = _mixed(np.ascontiguousarray(graph.weights.round(6)).view(np.uint64))
    for _ in range(_ROUNDS):
        near = np.zeros(graph.size, dtype=np.uint64)
        np.add.at(near, left, _mixed(colors[right] ^ weights))
        np.add.at(near, right, _mixed(colors[left] ^ weights))
        colors = _mixed(colors * _MIX[2] + near)
    return colors


def tree_signature(tree: EncodingTree, colors: Hashes) -> int:
    """A hash of which colours stand together at which levels, whatever the clusters and the vertices are numbered.

    Args:
        tree: Over the vertices that have the colours.
        colors: Of `vertex_colors`.
    """
    below = _mixed(colors)
    whole = np.uint64(tree.height)
    above = np.zeros(tree.size, dtype=np.uint64)
    for level in tree.filled():
        sums = np.zeros(int(level.max(initial=-1)) + 1, dtype=np.uint64)
        np.add.at(sums, level, below)
        above = _mixed(above * _MIX[1] + _mixed(sums)[level])
        below = _mixed(below ^ above)
    return int(_mixed(np.add.reduce(below, dtype=np.uint64)[None] + whole)[0])


def _mixed(values: Hashes) -> Hashes:
    values = values + _MIX[0]
    values = (values ^ (values >> _SHIFTS[0])) * _MIX[1]
    values = (values ^ (values >> _SHIFTS[1])) * _MIX[2]
    return np.asarray(values ^ (values >> _SHIFTS[2]), dtype=np.uint64)
