"""Structural entropy of graphs and encoding trees, in bits (Li and Pan 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.encoding_tree import EncodingTree
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.undirected import UndirectedGraph

    Floats = NDArray[np.float64]

__all__ = ["decoding_information", "one_dimensional_entropy"]


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
