"""Personalised PageRank: forward push (Andersen, Chung and Lang 2006); power iteration for walks that start widely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.arrays.grouping import row_pointers
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.protocols.models import BoolArray, DoubleArray, IntArray


@dataclass(frozen=True, slots=True)
class CSRGraph:
    """A directed graph whose edges leaving a node are probabilities."""

    indptr: IntArray  # Edges of node i are `indptr[i]:indptr[i + 1]`, int64 `[n + 1]`
    targets: IntArray  # Where the edges lead, int64, ascending within a node
    probabilities: DoubleArray  # float64; they sum to 1 for every node that has edges

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @classmethod
    def from_edges(cls, size: int, sources: IntArray, targets: IntArray, weights: DoubleArray) -> CSRGraph:
        """Sort edges by source and divide their weights by the sum of each node.

        Args:
            size: Number of nodes.
            sources: `[m]`, below `size`.
            targets: `[m]`, below `size`.
            weights: `[m]`, positive.

        Raises:
            ConfigurationError: A weight is not positive or not finite, or a node does not exist.
        """
        if len(weights) and not (np.isfinite(weights).all() and weights.min() > 0):
            raise ConfigurationError("Weights of edges must be positive and finite.")
        if len(weights) and not (min(sources.min(), targets.min()) >= 0 and max(sources.max(), targets.max()) < size):
            raise ConfigurationError(f"Edges must join nodes 0 to {size - 1}.")
        order = np.lexsort((targets, sources))
        totals = np.bincount(sources, weights=weights, minlength=size)
        indptr = row_pointers(sources, size)
        return cls(
            indptr=indptr,
            targets=np.ascontiguousarray(targets[order], dtype=np.int64),
            probabilities=np.ascontiguousarray((weights / totals[sources])[order], dtype=np.float64),
        )

    @classmethod
    def undirected(cls, size: int, pairs: IntArray, weights: DoubleArray) -> CSRGraph:
        """Join pairs of nodes `[m, 2]` in both directions; see `from_edges`."""
        sources, targets = np.concatenate((pairs, pairs[:, ::-1])).T
        return cls.from_edges(size, sources, targets, np.concatenate((weights, weights)))

    def neighbors(self, node: int) -> tuple[IntArray, DoubleArray]:
        """Where the edges of a node lead, and how probable each is."""
        edges = slice(int(self.indptr[node]), int(self.indptr[node + 1]))
        return self.targets[edges], self.probabilities[edges]


_DENSE = 8  # A walk that starts at more than one node in so many is computed by power iteration


@dataclass(frozen=True, slots=True)
class PageRankScores:
    """Scores of nodes and how far they may be off."""

    scores: DoubleArray  # `[n]`, never above the true value
    error: float  # Sum over all nodes of what is missing; the scores and this sum to 1


def personalized_pagerank(
    graph: CSRGraph, seeds: DoubleArray, damping: float = 0.5, *, threshold: float = 1e-7
) -> PageRankScores:
    """Where a walker is who starts at a seed and at every step follows an edge or else returns to a seed.

    Mass waits at nodes as a residual. In rounds, every node whose residual is above the threshold times its degree
    keeps its share and pushes the rest along its edges; where many nodes are seeds, all nodes push in every round. At a
    node without edges the walker returns to a seed.

    Args:
        graph: The graph.
        seeds: `[n]`, at least 0; divided by their sum.
        damping: Probability of following an edge, at least 0 and below 1.
        threshold: Residuals up to this, per edge of a node, are left where they are; the error is at most
            `threshold * (edges + nodes without edges)`.

    Raises:
        ConfigurationError: No seed, a negative one, or a setting out of its range.
    """
    if not 0 <= damping < 1:
        raise ConfigurationError(f"The probability of following an edge is at least 0 and below 1, not {damping}.")
    if not threshold > 0:
        raise ConfigurationError(f"The threshold of a push must be above 0, not {threshold}.")
    first = np.flatnonzero(seeds)  # a walk touches few of the nodes of a large graph
    weights = seeds[first]
    total = float(weights.sum())
    if len(seeds) != graph.size or not np.isfinite(total) or total <= 0 or weights.min() < 0:
        raise ConfigurationError("Seeds are one weight per node, none negative, at least one above 0.")
    walk = _iterate if len(first) * _DENSE > graph.size else _push
    return walk(graph, first, np.asarray(weights / total, dtype=np.float64), damping, threshold)


def _iterate(graph: CSRGraph, seeds: IntArray, start: DoubleArray, damping: float, threshold: float) -> PageRankScores:
    """Let all nodes push at once, which pays where a walk starts everywhere."""
    from scipy.sparse import csr_array

    edges = csr_array((graph.probabilities, graph.targets, graph.indptr), shape=(graph.size, graph.size))
    stuck = np.diff(graph.indptr) == 0
    restart = np.zeros(graph.size)
    restart[seeds] = start
    scores, waiting, left = np.zeros(graph.size), restart, 1.0
    while left > threshold * (len(graph.targets) + np.count_nonzero(stuck)):
        scores += (1.0 - damping) * waiting
        waiting = damping * (edges.T @ waiting + waiting[stuck].sum() * restart)
        left *= damping
    return PageRankScores(scores, left)


def _push(graph: CSRGraph, seeds: IntArray, start: DoubleArray, damping: float, threshold: float) -> PageRankScores:
    """Let the nodes push in rounds that have enough waiting."""
    indptr = graph.indptr
    scores, residual = np.zeros(len(indptr) - 1), np.zeros(len(indptr) - 1)
    residual[seeds] = start
    settled_mass = 0.0
    frontier = seeds[_above(residual, seeds, indptr, threshold)]
    while len(frontier):
        mass = residual[frontier]
        residual[frontier] = 0.0
        scores[frontier] += (1.0 - damping) * mass
        settled_mass += (1.0 - damping) * float(mass.sum())
        first = indptr[frontier]
        lengths = indptr[frontier + 1] - first
        ends = np.cumsum(lengths)
        edges = np.arange(ends[-1]) + np.repeat(first - ends + lengths, lengths)
        touched, target_number = np.unique(graph.targets[edges], return_inverse=True)
        moved = np.repeat(damping * mass, lengths) * graph.probabilities[edges]
        residual[touched] += np.bincount(target_number.ravel(), weights=moved, minlength=len(touched))
        stuck = damping * float(mass[lengths == 0].sum())
        if stuck > 0.0:
            residual[seeds] += stuck * start
            touched = np.union1d(touched, seeds)
        frontier = touched[_above(residual, touched, indptr, threshold)]
    return PageRankScores(scores, max(0.0, 1.0 - settled_mass))


def _above(residual: DoubleArray, nodes: IntArray, indptr: IntArray, threshold: float) -> BoolArray:
    """Which of some nodes have more waiting than is left where it is."""
    return np.asarray(residual[nodes] > threshold * np.maximum(1, indptr[nodes + 1] - indptr[nodes]), dtype=bool)
