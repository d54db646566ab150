"""Encoding trees over the vertices of a graph (SMART), and their structural entropy in bits (Li and Pan 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.undirected import UndirectedGraph

    Labels = NDArray[np.int64]
    Node = tuple[int, int]
    Floats = NDArray[np.float64]
    Hashes = NDArray[np.uint64]

__all__ = [
    "EncodingTree",
    "canonical_labels",
    "decoding_information",
    "first_members",
    "nested_labels",
    "one_dimensional_entropy",
    "repaired_labels",
    "tree_of",
    "tree_signature",
    "vertex_colors",
]


_SPARSE = 8  # labels may be so many times larger than there are vertices before they are numbered by sorting


@dataclass(frozen=True, slots=True, eq=False)
class EncodingTree:
    """A rooted tree over the vertices 0 to n - 1, as the cluster of every vertex at every level.

    An internal node is a pair (level, cluster), level 1 the finest. The parent of a node or vertex is the node of the
    next higher level that holds it, or the root if there is none. The root itself is implicit.

    Attributes:
        size: Number of vertices.
        labels: One int64 `[n]` per level, the finest first: the vertex's cluster there, -1 where it has none. Two
            vertices of one cluster share their label at all higher levels. Clusters are numbered from 0 by their
            smallest vertex; constructing renumbers.
    """

    size: int
    labels: tuple[Labels, ...] = ()

    def __post_init__(self) -> None:
        """Renumber the clusters.

        Raises:
            ConfigurationError: Labels of a wrong length, or levels that do not nest.
        """
        tidy = tuple(canonical_labels(np.asarray(level, dtype=np.int64)) for level in self.labels)
        if any(level.shape != (self.size,) for level in tidy):
            raise ConfigurationError(f"Every level of this tree needs {self.size} labels, one per vertex.")
        for number, level in enumerate(tidy):
            held, first = level >= 0, first_members(level)
            for above in tidy[number + 1 :]:
                if (above[held] != above[first][level[held]]).any():
                    raise ConfigurationError(f"A cluster of level {number + 1} is torn apart at a higher level.")
        object.__setattr__(self, "labels", tidy)

    def __eq__(self, other: object) -> bool:
        """Same vertices, same clusters at the same levels."""
        if not isinstance(other, EncodingTree):
            return NotImplemented
        same = self.size == other.size and len(self.labels) == len(other.labels)
        return same and all(np.array_equal(a, b) for a, b in zip(self.labels, other.labels, strict=True))

    def __hash__(self) -> int:
        """Of the labels."""
        return hash((self.size, *(level.tobytes() for level in self.labels)))

    @property
    def height(self) -> int:
        """Number of levels between the vertices and the root."""
        return len(self.labels)

    def clusters(self, level: int) -> Labels:
        """Numbers of the clusters of a level (1 is the finest), ascending."""
        return np.arange(int(self.labels[level - 1].max(initial=-1)) + 1, dtype=np.int64)

    def ancestors(self, vertex: int) -> tuple[Node, ...]:
        """Nodes that hold a vertex, the finest first, without the root."""
        found = ((m, int(level[vertex])) for m, level in enumerate(self.labels, 1))
        return tuple(node for node in found if node[1] >= 0)

    def filled(self) -> tuple[Labels, ...]:
        """Labels without -1: a vertex with no cluster at a level keeps the one below, at last itself alone."""
        below = np.arange(self.size, dtype=np.int64)
        levels = []
        for level in self.labels:
            below = canonical_labels(np.where(level >= 0, level, self.size + below))
            levels.append(below)
        return tuple(levels)

    def contracted(self) -> EncodingTree:
        """The same tree without nodes that have a single child: of such a chain the lowest node stays.

        Entropies do not change by it. Levels that become empty are left out.
        """
        kept: list[Labels] = []
        below = np.arange(self.size, dtype=np.int64)
        for level in self.labels:
            # A cluster with one part below is a chain; below starts with the vertices themselves.
            parts = np.bincount(level[first_members(below)] + 1, minlength=int(level.max(initial=-1)) + 2)
            chain = (parts <= 1)[level + 1] | (level < 0)
            kept.append(np.where(chain, -1, level))
            below = canonical_labels(np.where(chain, below, self.size + level))
        if self.size and below.max() == 0:
            # One node holds everything, so the root has a single child. Another one below it would have been a chain.
            kept = [level if (level < 0).any() or level.max() > 0 else np.full_like(level, -1) for level in kept]
        return EncodingTree(self.size, tuple(level for level in kept if (level >= 0).any()))


def canonical_labels(labels: Labels) -> Labels:
    """Number clusters from 0 in the order of their first vertex; -1 stays.

    Args:
        labels: `[n]`; all values below 0 count as -1.
    """
    tidy = np.maximum(labels, -1)
    if int(tidy.max(initial=-1)) > _SPARSE * len(tidy):
        values, place = np.unique(tidy, return_inverse=True)
        tidy = place.ravel() - int(values[0] < 0)
    # Without sorting: a vertex is the first of its cluster, or it is not.
    first = first_members(tidy)
    begins = np.zeros(len(tidy) + 1, dtype=np.int64)
    begins[first] = 1
    ranks = np.append(np.cumsum(begins[:-1]) - 1, -1)[first]
    return np.append(ranks, -1)[tidy]  # what has no cluster finds the -1 at the end


def first_members(labels: Labels) -> Labels:
    """First vertex of every cluster.

    Args:
        labels: `[n]`, clusters numbered from 0; -1 for vertices without one.

    Returns:
        One number per cluster; n for a number that no cluster has.
    """
    first = np.full(int(labels.max(initial=-1)) + 2, len(labels), dtype=np.int64)
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)  # the last one written stays; -1 goes behind all others
    return first[:-1]


def one_dimensional_entropy(graph: UndirectedGraph) -> float:
    """H1, the entropy of the degrees: what the tree without internal nodes needs. 0 for a graph without edges.

    Args:
        graph: The graph.
    """
    degrees = graph.degrees()
    return -float(_times_log(degrees / max(graph.volume(), _TINY), degrees, graph.volume()).sum())


def decoding_information(graph: UndirectedGraph, tree: EncodingTree) -> float:
    """D of a tree, H1 - H: bits that the internal nodes save. More is better; never negative.

    Every edge saves log2(vol / V) of the smallest node that holds both its ends, weighted by its share of the volume.

    Args:
        graph: The graph.
        tree: A tree over its vertices.

    Raises:
        ConfigurationError: The tree has another number of vertices.
    """
    _check(graph, tree)
    volume = graph.volume()
    degrees = graph.degrees()
    smallest = np.full(len(graph.edges), volume)
    for level in reversed(tree.labels):
        left, right = level[graph.edges].T
        inside = (left == right) & (left >= 0)
        volumes = np.bincount(level[level >= 0], weights=degrees[level >= 0])
        smallest[inside] = volumes[left[inside]]
    return -float(_times_log(2 * graph.weights / max(volume, _TINY), smallest, volume).sum())


_TINY = 1e-300


def _times_log(shares: Floats, part: Floats, whole: Floats | float) -> Floats:
    """Product of shares and log2(part / whole), 0 where the part is empty."""
    ratio = np.divide(part, whole, out=np.ones_like(part), where=part > 0)
    return np.asarray(shares * np.log2(ratio), dtype=np.float64)


def _check(graph: UndirectedGraph, tree: EncodingTree) -> None:
    if tree.size != graph.size:
        raise ConfigurationError(f"A tree over {tree.size} vertices does not fit a graph of {graph.size}.")


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
