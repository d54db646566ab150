"""How good a partition is and how much two have in common."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.undirected import UndirectedGraph

    Labels = NDArray[np.int64]

__all__ = [
    "corrected_information",
    "information_beyond_chance",
    "label_entropy",
    "modularity",
    "mutual_information",
    "normalized_mutual_information",
]


_SHUFFLES, _SHUFFLED = 4, 10_000  # shuffles that chance is measured with, as long as they move no more labels


def modularity(graph: UndirectedGraph, labels: Labels) -> float:
    """Newman's Q: the share of the edge weight inside clusters beyond what degrees alone would put there.

    Args:
        graph: The graph.
        labels: `[n]`, the cluster of every vertex; -1 for a vertex alone.

    Returns:
        At most 1; 0 for a single cluster and for a graph without edges.

    Raises:
        ConfigurationError: Labels of a wrong length.
    """
    if np.shape(labels) != (graph.size,):
        raise ConfigurationError(f"Give one label for each of the {graph.size} vertices.")
    if not len(graph.edges):
        return 0.0
    filled = np.where(labels < 0, int(labels.max()) + 1 + np.arange(graph.size), labels)
    inside = filled[graph.edges[:, 0]] == filled[graph.edges[:, 1]]
    shares = np.bincount(filled, weights=graph.degrees()) / graph.volume()
    return 2 * float(graph.weights[inside].sum()) / graph.volume() - float((shares**2).sum())


def label_entropy(labels: Labels) -> float:
    """Entropy of the sizes of clusters, in bits; 0 for a single one or none.

    Args:
        labels: Any integers.
    """
    counts = np.unique(labels, return_counts=True)[1]
    return _entropy(counts)


def mutual_information(first: Labels, second: Labels) -> float:
    """What the cluster in one partition tells about the cluster in the other, in bits.

    Args:
        first: Any integers.
        second: As many.

    Returns:
        At least 0, at most the smaller of both entropies.

    Raises:
        ConfigurationError: Different numbers of labels.
    """
    one, two, both = _counts(first, second)
    return max(0.0, _entropy(one) + _entropy(two) - _entropy(both))


def normalized_mutual_information(first: Labels, second: Labels) -> float:
    """Mutual information over the mean of both entropies; 0 independent, 1 the same partition.

    Two partitions of a single cluster each are the same: 1. The lower, the more diverse (SMART).

    Args:
        first: Any integers.
        second: As many.

    Raises:
        ConfigurationError: Different numbers of labels.
    """
    one, two, both = _counts(first, second)
    entropies = _entropy(one) + _entropy(two)
    return 1.0 if entropies == 0 else min(1.0, max(0.0, 2 * (entropies - _entropy(both)) / entropies))


def information_beyond_chance(first: Labels, second: Labels) -> float:
    """Mutual information, in bits, less what partitions into clusters of these sizes share by chance.

    Two unrelated partitions of n vertices into a and b clusters share about (a - 1) (b - 1) / (2 n ln 2) bits, which
    for many small clusters is more than anything else. What chance gives is measured on shuffled labels.

    Args:
        first: Any integers.
        second: As many.

    Returns:
        At least 0; the shuffles are always the same, so equal arguments give equal results.

    Raises:
        ConfigurationError: Different numbers of labels.
    """
    if np.shape(first) != np.shape(second):
        raise ConfigurationError("Two partitions of the same vertices have the same number of labels.")
    if not len(first):
        return 0.0
    one, two = (np.unique(labels, return_inverse=True)[1].ravel() for labels in (first, second))
    codes = one * (int(two.max()) + 1)
    rng = np.random.default_rng(0)
    shuffles = max(1, min(_SHUFFLES, _SHUFFLED // len(two)))
    chance = sum(label_entropy(codes + rng.permutation(two)) for _ in range(shuffles)) / shuffles
    return max(0.0, chance - label_entropy(codes + two))


def corrected_information(first: Labels, second: Labels) -> float:
    """Normalized mutual information corrected for chance: 0 for what shuffling gives, 1 the same partition.

    Args:
        first: Any integers.
        second: As many.

    Returns:
        (I - chance) / (mean of both entropies - chance), at least 0 (adjusted mutual information, Vinh et al. 2010,
        with chance measured as `information_beyond_chance` does); 0 where both are a single cluster.

    Raises:
        ConfigurationError: Different numbers of labels.
    """
    beyond = information_beyond_chance(first, second)
    if beyond == 0:
        return 0.0
    chance = mutual_information(first, second) - beyond
    most = (label_entropy(first) + label_entropy(second)) / 2 - chance
    return min(1.0, beyond / most) if most > 0 else 0.0


def _entropy(counts: NDArray[np.int64]) -> float:
    shares = counts / max(1, int(counts.sum()))
    return abs(float((shares * np.log(shares)).sum())) / math.log(2)


def _counts(first: Labels, second: Labels) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sizes of the clusters of both partitions and of their intersections."""
    if np.shape(first) != np.shape(second):
        raise ConfigurationError("Two partitions of the same vertices have the same number of labels.")
    one, two = _sizes(first), _sizes(second)
    codes = (first - np.min(first, initial=0)) * (int(np.max(second, initial=0)) - int(np.min(second, initial=0)) + 1)
    return one, two, np.unique(codes + second, return_counts=True)[1]


def _sizes(labels: Labels) -> NDArray[np.int64]:
    """Sizes of clusters."""
    least, most = int(np.min(labels, initial=0)), int(np.max(labels, initial=0))
    if most - least > 8 * len(labels):
        return np.unique(labels, return_counts=True)[1]
    counts = np.bincount(labels - least)
    return np.asarray(counts[counts > 0], dtype=np.int64)
