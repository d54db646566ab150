"""Several informative and mutually different trees of one graph, without training (SMART)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.recipes.smart.encoding_tree import (
    EncodingTree,
    canonical_labels,
    decoding_information,
    one_dimensional_entropy,
    tree_signature,
    vertex_colors,
)
from sire_core.recipes.smart.entropy_levels import entropy_tree
from sire_core.recipes.smart.partitions import corrected_information, mutual_information
from sire_core.recipes.smart.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    View: TypeAlias = "NDArray[np.float64] | UndirectedGraph"

__all__ = [
    "RELATIONS",
    "Perspective",
    "abstract_greedy",
    "information_share",
    "leiden_labels",
    "shrunk",
    "tree_information",
]

RELATIONS = "relations"
"""Name of the graph itself among the views."""
_RESOLUTIONS = (0.5, 1.0, 2.0)
_ALL_BY_CHANCE = 0.9
_SHRINK = 0.8  # beta: edges inside chosen clusters lose this share of their weight
_TRIALS, _CHEAP = 8, 50_000  # Leiden runs of which the best counts, as long as their edges together are no more
_SMALLEST = 4  # vertices; below, there is nothing to abstract
_ROUNDING = 1e-9
_FLOOR = 0.5  # of what the best tree explains: a nearly empty tree shares nothing with others, and is useless


@dataclass(frozen=True, slots=True)
class Perspective:
    """A tree and the view of the vertices that it groups.

    Attributes:
        tree: Without single-child nodes.
        view: Name of the view, `RELATIONS` for the graph itself.
        information: Share of the view's entropy H1 that the tree explains: its decoding information there over H1.
    """

    tree: EncodingTree
    view: str
    information: float


def abstract_greedy(
    graph: UndirectedGraph,
    *,
    kappa: int = 3,
    levels: int = 3,
    diversity: float = 1.0,
    informative: bool = True,
    views: Mapping[str, View] | None = None,
    seed: int = 0,
) -> tuple[Perspective, ...]:
    """Propose trees from several views of the vertices and choose `kappa` that explain much and share little.

    Every view is grouped by entropy merging, the graph itself also by Leiden at three resolutions; after each choice,
    merging also sees the views chosen so far with less weight on the edges inside the chosen clusters. A tree is worth
    the share of its own view's entropy that it explains beyond what merging explains of the same edges between random
    vertices (few edges make clusters of anything), times the share of the graph's largest component that has a place in
    this view. What two trees share is their normalized mutual information beyond chance, over that component. Trees of
    one view that a symmetry of the view maps onto each other are one, and the first tree is one of the graph itself.
    The order of vertices matters where gains tie, and to Leiden.

    Args:
        graph: Vertices and the weights of their relations.
        kappa: Trees wanted, at least 1.
        levels: Most levels per tree, at least 1.
        diversity: Weight of what the trees share, at least 0.
        informative: False chooses trees by what they share alone.
        views: Further views by name: a weight per edge of the graph, or another graph on the vertices.
        seed: Seed of Leiden; equal seeds give equal trees.

    Returns:
        At most `kappa` different trees. For a graph with fewer than four vertices or no edges: one tree with a root
        only.

    Raises:
        ConfigurationError: A setting out of range, or a view that does not fit the graph.
    """
    if kappa < 1 or levels < 1 or not (np.isfinite(diversity) and diversity >= 0):
        raise ConfigurationError("perspectives need kappa >= 1, levels >= 1 and diversity >= 0")
    seen = {RELATIONS: graph} | {name: _viewed(graph, name, view) for name, view in (views or {}).items()}
    if graph.size < _SMALLEST or not len(graph.edges):
        return (Perspective(EncodingTree(graph.size), RELATIONS, 0.0),)
    rng = np.random.default_rng(seed)
    mixed = {name: rng.permutation(view.edges.ravel()).reshape(-1, 2) for name, view in seen.items()}
    chance = cache(lambda name: _share_by_chance(seen[name], mixed[name], levels))
    pool = _Pool(seen, chance, graph.largest_component(), diversity, informative)
    for name, view in seen.items():
        pool.add(name, _candidates(view, levels, _RESOLUTIONS if name == RELATIONS else (), rng))
    chosen = pool.extend([], RELATIONS)
    while len(chosen) < kappa:
        taken = [pool.found[place] for place in chosen]
        for name in dict.fromkeys(one.view for one in taken):
            # Leiden on these as well brought nothing in our measurements.
            view = shrunk(seen[name], [one.tree for one in taken])
            pool.add(name, _candidates(view, levels, (), rng))
        more = pool.extend(chosen)
        if more == chosen:
            break
        chosen = pool.exchange(more)
    return tuple(pool.found[place] for place in chosen)


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


def information_share(graph: UndirectedGraph, tree: EncodingTree) -> float:
    """Share of a graph's entropy H1 that a tree explains (its decoding information over H1), 0 to 1."""
    whole = one_dimensional_entropy(graph)
    return decoding_information(graph, tree) / whole if whole > 0 else 0.0


def _share_by_chance(view: UndirectedGraph, ends: NDArray[np.int64], levels: int) -> float:
    """What merging explains of a graph with the weights of a view and its ends in random order; below 1."""
    mixed = UndirectedGraph.from_edges(view.size, ends, view.weights)
    return min(information_share(mixed, entropy_tree(mixed, levels)), _ALL_BY_CHANCE) if len(mixed.edges) else 0.0


class _Pool:
    """Candidate trees, what they explain, and the choice among them."""

    def __init__(
        self,
        views: Mapping[str, UndirectedGraph],
        chance: Callable[[str], float],
        held: NDArray[np.bool_],
        diversity: float,
        informative: bool,
    ) -> None:
        self._floor, self._gain = (_FLOOR, 1.0) if informative else (0.0, 0.0)
        self.found: list[Perspective] = []
        self._views = views
        self._chance = chance
        joined = {name: view.degrees() > 0 for name, view in views.items()}
        self._covered = {name: float(np.count_nonzero(some[held])) / held.sum() for name, some in joined.items()}
        self._colors = {name: vertex_colors(view) for name, view in views.items()}
        self._held = held
        self._diversity = diversity
        self._known: set[object] = set()
        self._shared: dict[tuple[int, int], float] = {}

    def add(self, view: str, trees: Iterator[EncodingTree]) -> None:
        """Take in trees of a view that are new, and not only by a symmetry."""
        for tree in trees:
            signature = view, tree_signature(tree, self._colors[view])
            if tree in self._known or signature in self._known:
                continue
            self._known |= {tree, signature}
            self.found.append(Perspective(tree, view, information_share(self._views[view], tree)))

    def extend(self, chosen: list[int], only: str | None = None) -> list[int]:
        """The chosen trees and the one that adds most to them, if there is one; the earlier in case of a tie."""
        left = [place for place in self._useful(only) if place not in chosen]
        if not left:
            return chosen
        # What chance explains takes as long as a tree: it is computed where a tree may still be the best without it.
        most = {place: self._most(place) - self._costs(place, chosen) for place in left}
        best, added = left[0], -np.inf
        for place in sorted(left, key=lambda place: -most[place]):
            if most[place] < added - _ROUNDING:
                break
            if (adds := self._adds(place, chosen)) > added or (adds == added and place < best):
                best, added = place, adds
        return [*chosen, best]

    def exchange(self, chosen: list[int]) -> list[int]:
        """Replace chosen trees by others as long as what all say less what they share grows."""
        changed = True
        while changed:
            changed = False
            for number in range(len(chosen)):
                others = chosen[:number] + chosen[number + 1 :]
                best = self.extend(others, None if number else RELATIONS)[-1]
                if self._adds(best, others) > self._adds(chosen[number], others) + _ROUNDING:
                    chosen = [*others[:number], best, *others[number:]]
                    changed = True
        return chosen

    def _useful(self, only: str | None) -> list[int]:
        places = [place for place, found in enumerate(self.found) if only in {None, found.view}]
        floor = self._floor * max(self.found[place].information for place in places)
        return [place for place in places if self.found[place].information >= floor]

    def _adds(self, place: int, others: list[int]) -> float:
        found = self.found[place]
        chance = self._chance(found.view) if self._gain else 0.0
        worth: float = (found.information - chance) / (1 - chance) * self._covered[found.view]
        return self._gain * worth - self._costs(place, others)

    def _most(self, place: int) -> float:
        """What a tree is worth where chance explains nothing."""
        found = self.found[place]
        most: float = self._gain * found.information * self._covered[found.view]
        return most

    def _costs(self, place: int, others: list[int]) -> float:
        return self._diversity * sum(self._share(place, other) for other in others)

    def _share(self, one: int, two: int) -> float:
        pair = (min(one, two), max(one, two))
        if pair not in self._shared:
            self._shared[pair] = tree_information(
                self.found[one].tree, self.found[two].tree, corrected_information, self._held
            )
        return self._shared[pair]


def shrunk(graph: UndirectedGraph, chosen: Sequence[EncodingTree]) -> UndirectedGraph:
    """The graph with less weight on edges inside clusters of the chosen trees, least where the clusters are finest."""
    weights = graph.weights.copy()
    for tree in chosen:
        inside = np.zeros(len(weights))
        for level in tree.filled():
            inside += level[graph.edges[:, 0]] == level[graph.edges[:, 1]]
        weights *= (1 - _SHRINK) ** (inside / max(1, tree.height))
    return graph.with_weights(weights)
