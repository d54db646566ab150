"""Several informative and mutually different trees of one graph, without training (ALGORITHMS 6.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sire_core.algorithms.encoding_tree import EncodingTree, canonical_labels
from sire_core.algorithms.entropy_levels import entropy_tree
from sire_core.algorithms.partitions import mutual_information
from sire_core.algorithms.structural_entropy import decoding_information
from sire_core.algorithms.undirected import UndirectedGraph
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    View: TypeAlias = "NDArray[np.float64] | UndirectedGraph"

__all__ = ["abstract_greedy", "leiden_labels", "tree_information"]

_RESOLUTIONS = (0.5, 1.0, 2.0)
_SHRINK = 0.8  # beta: edges inside chosen clusters lose this share of their weight
_SMALLEST = 4  # vertices; below, there is nothing to abstract
_FLOOR = 0.5  # of the best tree's decoding information: a nearly empty tree shares nothing with others, and is useless


def abstract_greedy(
    graph: UndirectedGraph,
    *,
    kappa: int = 3,
    levels: int = 3,
    diversity: float = 1.0,
    views: Mapping[str, View] | None = None,
    seed: int = 0,
) -> tuple[EncodingTree, ...]:
    """Propose trees from several views of the edges and choose `kappa` that say much and share little.

    Args:
        graph: Vertices and the weights that decoding information is measured with.
        kappa: Trees wanted, at least 1.
        levels: Most levels per tree, at least 1.
        diversity: Weight of the mutual information with the trees chosen before, at least 0.
        views: Further weights to propose trees from: one per edge of the graph, or another graph on the vertices.
        seed: Seed of Leiden; equal seeds give equal trees.

    Returns:
        At most `kappa` different trees, chosen first first, without single-child nodes. For a graph with fewer than
        four vertices or no edges: one tree with a root only.

    Raises:
        ConfigurationError: A setting out of range, or a view that does not fit the graph.
    """
    if kappa < 1 or levels < 1 or not (np.isfinite(diversity) and diversity >= 0):
        raise ConfigurationError("perspectives need kappa >= 1, levels >= 1 and diversity >= 0")
    seen = [graph, *(_viewed(graph, name, view) for name, view in (views or {}).items())]
    if graph.size < _SMALLEST or not len(graph.edges):
        return (EncodingTree(graph.size),)
    rng = np.random.default_rng(seed)
    pool: dict[EncodingTree, float] = {}
    for view in seen:
        _add(pool, graph, _candidates(view, levels, _RESOLUTIONS, rng))
    chosen: list[EncodingTree] = []
    while len(chosen) < kappa:
        if chosen:
            _add(pool, graph, _candidates(_shrunk(graph, chosen), levels, (1.0,), rng))
        best = _best(pool, graph, chosen, diversity)
        if best is None:
            break
        chosen.append(best)
    return tuple(chosen)


def tree_information(first: EncodingTree, second: EncodingTree, held: NDArray[np.bool_] | None = None) -> float:
    """Mean mutual information, in bits, of two trees level by level; a tree with fewer levels repeats its highest.

    Args:
        first: A tree.
        second: A tree over the same vertices.
        held: `[n]`, the vertices that count; all when left out.
    """
    count = max(first.height, second.height)
    if not min(first.height, second.height):
        return 0.0
    mask = np.ones(first.size, dtype=np.bool_) if held is None else held
    one, two = ([level[mask] for level in tree.filled()] for tree in (first, second))
    pairs = ((one[min(m, len(one) - 1)], two[min(m, len(two) - 1)]) for m in range(count))
    return sum(mutual_information(a, b) for a, b in pairs) / count


def leiden_labels(graph: UndirectedGraph, resolution: float, seed: int) -> NDArray[np.int64]:
    """Communities of large modularity, found by Leiden; vertices without edges are alone.

    Args:
        graph: A graph with at least one edge.
        resolution: Larger means smaller communities; above 0.
        seed: Equal seeds give equal communities.
    """
    from graspologic_native import leiden_csr

    starts, targets, weights = graph.rows()
    _, found = leiden_csr(starts, targets.astype(np.int32), weights, graph.size, resolution=resolution, seed=seed)
    labels = (found.get(vertex, graph.size + vertex) for vertex in range(graph.size))
    return canonical_labels(np.fromiter(labels, dtype=np.int64, count=graph.size))


def _viewed(graph: UndirectedGraph, name: str, view: View) -> UndirectedGraph:
    seen = view if isinstance(view, UndirectedGraph) else graph.with_weights(view)
    if seen.size != graph.size:
        raise ConfigurationError(f"The view {name!r} has {seen.size} vertices, the graph {graph.size}.")
    return seen


def _candidates(
    view: UndirectedGraph, levels: int, resolutions: tuple[float, ...], rng: np.random.Generator
) -> Iterator[EncodingTree]:
    if not len(view.edges):
        return
    yield entropy_tree(view, levels)
    for resolution in resolutions:
        yield entropy_tree(view, levels, leiden_labels(view, resolution, int(rng.integers(2**31))))


def _add(pool: dict[EncodingTree, float], graph: UndirectedGraph, trees: Iterator[EncodingTree]) -> None:
    """Put trees into the pool, with their decoding information on the graph itself."""
    for tree in trees:
        if tree not in pool:
            pool[tree] = decoding_information(graph, tree)


def _best(
    pool: dict[EncodingTree, float], graph: UndirectedGraph, chosen: list[EncodingTree], diversity: float
) -> EncodingTree | None:
    """The tree that adds most, the earlier one in case of a tie."""
    held = graph.degrees() > 0
    floor = _FLOOR * max(pool.values())
    scores = {
        tree: value - diversity * sum(tree_information(tree, other, held) for other in chosen)
        for tree, value in pool.items()
        if value >= floor and tree not in chosen
    }
    return max(scores, key=scores.__getitem__, default=None)


def _shrunk(graph: UndirectedGraph, chosen: list[EncodingTree]) -> UndirectedGraph:
    """Edges inside clusters of the chosen trees lose weight, and most where the clusters are finest."""
    weights = graph.weights.copy()
    for tree in chosen:
        inside = np.zeros(len(weights))
        for level in tree.filled():
            inside += level[graph.edges[:, 0]] == level[graph.edges[:, 1]]
        weights *= (1 - _SHRINK) ** (inside / max(1, tree.height))
    return graph.with_weights(weights)
