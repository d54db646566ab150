"""Several informative and mutually different trees of one graph, without training (SMART)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sire_core.algorithms.encoding_tree import EncodingTree, canonical_labels
from sire_core.algorithms.entropy_levels import entropy_tree
from sire_core.algorithms.partitions import information_beyond_chance, mutual_information
from sire_core.algorithms.structural_entropy import decoding_information
from sire_core.algorithms.undirected import UndirectedGraph
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    View: TypeAlias = "NDArray[np.float64] | UndirectedGraph"

__all__ = ["abstract_greedy", "leiden_labels", "tree_information"]

_RESOLUTIONS = (0.5, 1.0, 2.0)
_SHRINK = 0.8  # beta: edges inside chosen clusters lose this share of their weight
_TRIALS, _CHEAP = 8, 50_000  # Leiden runs of which the best counts, as long as their edges together are no more
_SMALLEST = 4  # vertices; below, there is nothing to abstract
_ROUNDING = 1e-9  # bits
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

    Every view is grouped by entropy merging and by Leiden at three resolutions; after each choice, merging also sees
    the graph with less weight on the edges inside the clusters chosen so far. The order of vertices matters where
    gains tie, and to Leiden.

    Args:
        graph: Vertices and the weights that decoding information is measured with.
        kappa: Trees wanted, at least 1.
        levels: Most levels per tree, at least 1.
        diversity: Weight of the mutual information beyond chance between the trees, at least 0.
        views: Further weights to propose trees from: one per edge of the graph, or another graph on the vertices.
        seed: Seed of Leiden; equal seeds give equal trees.

    Returns:
        At most `kappa` different trees without single-child nodes. For a graph with fewer than four vertices or no
        edges: one tree with a root only.

    Raises:
        ConfigurationError: A setting out of range, or a view that does not fit the graph.
    """
    if kappa < 1 or levels < 1 or not (np.isfinite(diversity) and diversity >= 0):
        raise ConfigurationError("perspectives need kappa >= 1, levels >= 1 and diversity >= 0")
    seen = [graph, *(_viewed(graph, name, view) for name, view in (views or {}).items())]
    if graph.size < _SMALLEST or not len(graph.edges):
        return (EncodingTree(graph.size),)
    rng = np.random.default_rng(seed)
    pool = _Pool(graph, diversity)
    for view in seen:
        pool.add(_candidates(view, levels, _RESOLUTIONS, rng))
    chosen = pool.extend([])
    while len(chosen) < kappa:
        # Leiden on this view as well brought nothing in our measurements.
        pool.add(_candidates(_shrunk(graph, [pool.trees[place] for place in chosen]), levels, (), rng))
        more = pool.extend(chosen)
        if more == chosen:
            break
        chosen = pool.exchange(more)
    return tuple(pool.trees[place] for place in chosen)


def tree_information(
    first: EncodingTree,
    second: EncodingTree,
    measure: Callable[[NDArray[np.int64], NDArray[np.int64]], float] = mutual_information,
    held: NDArray[np.bool_] | None = None,
) -> float:
    """Mean mutual information of two trees, level by level; a tree with fewer levels repeats its highest.

    Args:
        first: A tree.
        second: A tree over the same vertices.
        measure: What two partitions share, in bits as it is.
        held: `[n]`, the vertices that count; all when left out.

    Returns:
        0 if one of the trees is only a root.
    """
    if not min(first.height, second.height):
        return 0.0
    mask = np.ones(first.size, dtype=np.bool_) if held is None else held
    one, two = ([level[mask] for level in tree.filled()] for tree in (first, second))
    levels = range(max(len(one), len(two)))
    return sum(measure(one[min(m, len(one) - 1)], two[min(m, len(two) - 1)]) for m in levels) / len(levels)


def leiden_labels(graph: UndirectedGraph, resolution: float, seed: int) -> NDArray[np.int64]:
    """Communities of large modularity, found by Leiden; vertices without edges are alone.

    Args:
        graph: A graph with at least one edge.
        resolution: Larger means smaller communities; above 0.
        seed: Equal seeds give equal communities.
    """
    from graspologic_native import leiden_csr

    starts, targets, weights = graph.rows()
    trials = max(1, min(_TRIALS, _CHEAP // len(graph.edges)))
    _, found = leiden_csr(
        starts, targets.astype(np.int32), weights, graph.size, resolution=resolution, seed=seed, trials=trials
    )
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


class _Pool:
    """Candidate trees, their decoding information on the graph, and the choice among them."""

    def __init__(self, graph: UndirectedGraph, diversity: float) -> None:
        self.trees: list[EncodingTree] = []
        self._graph = graph
        self._held = graph.degrees() > 0
        self._diversity = diversity
        self._worth: list[float] = []
        self._shared: dict[tuple[int, int], float] = {}

    def add(self, trees: Iterator[EncodingTree]) -> None:
        """Take in trees that are new."""
        for tree in trees:
            if tree not in self.trees:
                self.trees.append(tree)
                self._worth.append(decoding_information(self._graph, tree))

    def extend(self, chosen: list[int]) -> list[int]:
        """The chosen trees and the one that adds most to them, if there is one; the earlier in case of a tie."""
        left = [place for place in self._useful() if place not in chosen]
        return [*chosen, max(left, key=lambda place: self._adds(place, chosen))] if left else chosen

    def exchange(self, chosen: list[int]) -> list[int]:
        """Replace chosen trees by others as long as what all say less what they share grows."""
        changed = True
        while changed:
            changed = False
            for number in range(len(chosen)):
                others = chosen[:number] + chosen[number + 1 :]
                best = self.extend(others)[-1]
                if self._adds(best, others) > self._adds(chosen[number], others) + _ROUNDING:
                    chosen = [*others[:number], best, *others[number:]]
                    changed = True
        return chosen

    def _useful(self) -> list[int]:
        floor = _FLOOR * max(self._worth)
        return [place for place, worth in enumerate(self._worth) if worth >= floor]

    def _adds(self, place: int, others: list[int]) -> float:
        return self._worth[place] - self._diversity * sum(self._share(place, other) for other in others)

    def _share(self, one: int, two: int) -> float:
        pair = (min(one, two), max(one, two))
        if pair not in self._shared:
            self._shared[pair] = tree_information(
                self.trees[one], self.trees[two], information_beyond_chance, self._held
            )
        return self._shared[pair]


def _shrunk(graph: UndirectedGraph, chosen: list[EncodingTree]) -> UndirectedGraph:
    """Edges inside clusters of the chosen trees lose weight, and most where the clusters are finest."""
    weights = graph.weights.copy()
    for tree in chosen:
        inside = np.zeros(len(weights))
        for level in tree.filled():
            inside += level[graph.edges[:, 0]] == level[graph.edges[:, 1]]
        weights *= (1 - _SHRINK) ** (inside / max(1, tree.height))
    return graph.with_weights(weights)
