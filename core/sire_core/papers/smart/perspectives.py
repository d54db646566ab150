"""Several informative and different trees of one graph (SMART): chosen without training, kept after a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import ArrayNote, id_codes, positions_in
from sire_core.papers.smart.communities import MergeLevel, entropy_partition, entropy_tree
from sire_core.papers.smart.encoding_tree import (
    EncodingTree,
    UndirectedGraph,
    canonical_labels,
    corrected_information,
    decoding_information,
    first_members,
    modularity,
    mutual_information,
    normalized_mutual_information,
    one_dimensional_entropy,
)

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, HashArray, Int32Array, IntArray
    from sire_core.papers.smart.entity_network import EntityNetwork
    from sire_core.papers.smart.entity_views import EvidenceView


RELATIONS = "relations"  # Name of the graph itself among the views
_RESOLUTIONS = (0.5, 1.0, 2.0)
_MAX_CHANCE = 0.9
_SHRINK = 0.8  # beta: edges inside chosen clusters lose this share of their weight
_TRIALS, _MAX_TRIAL_EDGES = 8, 50_000  # best of so many Leiden runs, within so many edges of all runs
_MIN_VERTICES = 4  # smaller graphs have a root only
_ROUNDING = 1e-9
_MIN_SHARE_OF_BEST = 0.5  # a tree that explains less than this share of the best one is useless, however different


@dataclass(frozen=True, slots=True)
class Perspective:
    """A tree and the view that it groups."""

    tree: EncodingTree  # without single-child nodes
    view: str  # name of the view, `RELATIONS` for the graph itself
    information: float  # share of the view's entropy H1 that the tree explains


def abstract_greedy(
    graph: UndirectedGraph,
    *,
    kappa: int = 3,
    levels: int = 3,
    diversity: float = 1.0,
    informative: bool = True,
    views: Mapping[str, UndirectedGraph] | None = None,
    seed: int = 0,
) -> tuple[Perspective, ...]:
    """Propose trees of several views of the vertices and choose `kappa` that explain much and share little."""
    graphs = {RELATIONS: graph, **(views or {})}
    if graph.size < _MIN_VERTICES or not len(graph.edges):
        return (Perspective(EncodingTree(graph.size), RELATIONS, 0.0),)
    rng = np.random.default_rng(seed)
    shuffled_ends = {name: rng.permutation(view.edges.ravel()).reshape(-1, 2) for name, view in graphs.items()}
    chance = cache(lambda name: _share_by_chance(graphs[name], shuffled_ends[name], levels))
    pool = _Pool(graphs, chance, graph.largest_component(), diversity, informative)
    for name, view in graphs.items():
        pool.add(name, _candidates(view, levels, _RESOLUTIONS if name == RELATIONS else (), rng))
    chosen = pool.add_best([], RELATIONS)
    while len(chosen) < kappa:
        chosen_trees = [pool.candidates[number] for number in chosen]
        for name in dict.fromkeys(one.view for one in chosen_trees):
            # Leiden on these as well brought nothing in our measurements.
            view = shrunk(graphs[name], [one.tree for one in chosen_trees])
            pool.add(name, _candidates(view, levels, (), rng))
        extended = pool.add_best(chosen)
        if extended == chosen:
            break
        chosen = pool.improve(extended)
    return tuple(pool.candidates[number] for number in chosen)


def tree_information(
    first: EncodingTree,
    second: EncodingTree,
    measure: Callable[[IntArray, IntArray], float] = mutual_information,
    mask: BoolArray | None = None,
) -> float:
    """Return the mean mutual information of two trees, level by level, over `mask` `[n]` or all vertices."""
    if not min(first.height, second.height):
        return 0.0
    mask = np.ones(first.size, dtype=np.bool_) if mask is None else mask
    one, two = ([level[mask] for level in tree.filled()] for tree in (first, second))
    levels = range(max(len(one), len(two)))
    return sum(measure(one[min(m, len(one) - 1)], two[min(m, len(two) - 1)]) for m in levels) / len(levels)


def leiden_labels(graph: UndirectedGraph, resolution: float, seed: int) -> IntArray:
    """Find communities by Leiden, smaller ones for a larger resolution; vertices without edges are alone."""
    from graspologic_native import leiden_csr

    starts, targets, weights = graph.rows()
    trials = max(1, min(_TRIALS, _MAX_TRIAL_EDGES // len(graph.edges)))
    _, communities = leiden_csr(
        starts, targets.astype(np.int32), weights, graph.size, resolution=resolution, seed=seed, trials=trials
    )
    labels = (communities.get(vertex, graph.size + vertex) for vertex in range(graph.size))
    return canonical_labels(np.fromiter(labels, dtype=np.int64, count=graph.size))


def _candidates(
    view: UndirectedGraph, levels: int, resolutions: tuple[float, ...], rng: np.random.Generator
) -> Iterator[EncodingTree]:
    if not len(view.edges):
        return
    yield entropy_tree(view, levels)
    for resolution in resolutions:
        yield entropy_tree(view, levels, leiden_labels(view, resolution, int(rng.integers(2**31))))


def information_share(graph: UndirectedGraph, tree: EncodingTree) -> float:
    """Return the share of a graph's entropy H1 that a tree explains, 0 to 1."""
    whole = one_dimensional_entropy(graph)
    return decoding_information(graph, tree) / whole if whole > 0 else 0.0


def _share_by_chance(view: UndirectedGraph, ends: IntArray, levels: int) -> float:
    """Return the share that merging explains of a view with its edges between random vertices; below 1."""
    mixed = UndirectedGraph.from_edges(view.size, ends, view.weights)
    return min(information_share(mixed, entropy_tree(mixed, levels)), _MAX_CHANCE) if len(mixed.edges) else 0.0


class _Pool:
    """Candidate trees, their value, and the choice among them."""

    def __init__(
        self,
        views: Mapping[str, UndirectedGraph],
        chance: Callable[[str], float],
        vertices: BoolArray,
        diversity: float,
        informative: bool,
    ) -> None:
        self._floor, self._gain = (_MIN_SHARE_OF_BEST, 1.0) if informative else (0.0, 0.0)
        self.candidates: list[Perspective] = []
        self._views = views
        self._chance = chance
        joined = {name: view.degrees() > 0 for name, view in views.items()}
        self._covered = {
            name: float(np.count_nonzero(some[vertices])) / vertices.sum() for name, some in joined.items()
        }
        self._held = vertices
        self._diversity = diversity
        self._known: set[EncodingTree] = set()
        self._shared: dict[tuple[int, int], float] = {}

    def add(self, view: str, trees: Iterator[EncodingTree]) -> None:
        for tree in trees:
            if tree not in self._known:
                self._known.add(tree)
                self.candidates.append(Perspective(tree, view, information_share(self._views[view], tree)))

    def add_best(self, chosen: list[int], only: str | None = None) -> list[int]:
        """Return the chosen trees and the one that adds most to them, if there is one; the earlier in a tie."""
        open_candidates = [number for number in self._useful(only) if number not in chosen]
        if not open_candidates:
            return chosen
        # Measuring chance takes as long as making a tree, so it is left out for trees that cannot be the best.
        bounds = {number: self._value(number, chosen, by_chance=False) for number in open_candidates}
        best, best_value = open_candidates[0], -np.inf
        for number in sorted(open_candidates, key=lambda number: -bounds[number]):
            if bounds[number] < best_value - _ROUNDING:
                break
            if (value := self._value(number, chosen)) > best_value or (value == best_value and number < best):
                best, best_value = number, value
        return [*chosen, best]

    def improve(self, chosen: list[int]) -> list[int]:
        """Replace chosen trees as long as the total of value minus overlap grows."""
        changed = True
        while changed:
            changed = False
            for number in range(len(chosen)):
                others = chosen[:number] + chosen[number + 1 :]
                best = self.add_best(others, None if number else RELATIONS)[-1]
                if self._value(best, others) > self._value(chosen[number], others) + _ROUNDING:
                    chosen = [*others[:number], best, *others[number:]]
                    changed = True
        return chosen

    def _useful(self, only: str | None) -> list[int]:
        numbers = [number for number, candidate in enumerate(self.candidates) if only in {None, candidate.view}]
        floor = self._floor * max(self.candidates[number].information for number in numbers)
        return [number for number in numbers if self.candidates[number].information >= floor]

    def _value(self, number: int, others: list[int], *, by_chance: bool = True) -> float:
        """Return what a tree adds to others; an upper bound without what chance explains."""
        candidate = self.candidates[number]
        chance = self._chance(candidate.view) if by_chance and self._gain else 0.0
        value: float = (candidate.information - chance) / (1 - chance) * self._covered[candidate.view]
        return self._gain * value - self._diversity * sum(self._shared_information(number, other) for other in others)

    def _shared_information(self, one: int, two: int) -> float:
        pair = (min(one, two), max(one, two))
        if pair not in self._shared:
            self._shared[pair] = tree_information(
                self.candidates[one].tree, self.candidates[two].tree, corrected_information, self._held
            )
        return self._shared[pair]


def shrunk(graph: UndirectedGraph, chosen: Sequence[EncodingTree]) -> UndirectedGraph:
    """Reduce the weights of edges inside clusters of the chosen trees, most where the clusters are coarse."""
    weights = graph.weights.copy()
    for tree in chosen:
        inside = np.zeros(len(weights))
        for level in tree.filled():
            inside += level[graph.edges[:, 0]] == level[graph.edges[:, 1]]
        weights *= (1 - _SHRINK) ** (inside / max(1, tree.height))
    return graph.with_weights(weights)


def describe_trees(
    graph: UndirectedGraph, perspectives: Sequence[Perspective], views: Sequence[UndirectedGraph]
) -> dict[str, Any]:
    """Measure trees; the result is JSON-serializable (SMART, table 4)."""
    filled = [one.tree.filled() for one in perspectives]
    # A vertex without edges is alone in every tree, so it does not count for the agreement of trees.
    joined, vertices = graph.degrees() > 0, graph.largest_component()
    rows: list[dict[str, Any]] = []
    for one, levels, view in zip(perspectives, filled, views, strict=True):
        whole = one_dimensional_entropy(view)
        rows.append(
            {
                "view": one.view,
                "clusters": [int(level.max(initial=-1)) + 1 for level in one.tree.labels],
                "modularity": [round(modularity(view, level), 4) for level in levels],
                "information": round(one.information * whole, 4),
                "entropy": round((1 - one.information) * whole, 4),
                "share": round(one.information, 4),
            }
        )
    clustered = [(number, levels) for number, levels in enumerate(filled, 1) if levels]
    pairs = {
        f"{one}-{two}": list(zip(first, second, strict=False))
        for (one, first), (two, second) in combinations(clustered, 2)
    }
    agreement = [
        normalized_mutual_information(first[joined], second[joined])
        for pair in pairs.values()
        for first, second in pair
    ]
    corrected = [
        [corrected_information(first[vertices], second[vertices]) for first, second in level]
        for level in zip(*pairs.values(), strict=False)
    ]
    qualities = [fmean(row["modularity"]) for row in rows if row["modularity"]]
    return {
        "entities": graph.size,
        "relations": len(graph.edges),
        "entropy": round(one_dimensional_entropy(graph), 4),
        "trees": rows,
        "modularity": round(fmean(qualities), 4) if qualities else None,
        "nmi": round(fmean(agreement), 4) if agreement else None,
        "corrected_nmi": [round(fmean(level), 4) for level in corrected] or None,
        "corrected_pairs": {name: round(value, 4) for name, value in zip(pairs, *corrected[:1], strict=False)},
    }


@dataclass(frozen=True, slots=True)
class StoredTrees(ArrayNote):
    """Clusters by entity, as stored between changes."""

    keys: HashArray  # `EntityNetwork.keys`, `[entities]`
    ids: HashArray  # codes of their ids in the knowledge graph, `[entities]`
    labels: Int32Array  # `[trees, levels, entities]`; lower trees repeat their highest level

    @classmethod
    def of(cls, trees: Sequence[EncodingTree], network: EntityNetwork) -> StoredTrees:
        """Build from trees over the entities of a network."""
        height = max((tree.height for tree in trees), default=0) or 1
        labels = np.empty((len(trees), height, network.size), dtype=np.int32)
        for table, tree in zip(labels, trees, strict=True):
            levels = list(tree.filled()) or [np.arange(tree.size, dtype=np.int64)]
            table[:] = [*levels, *[levels[-1]] * (height - len(levels))]
        return cls(network.keys, id_codes(network.ids), labels)

    @classmethod
    def empty(cls) -> StoredTrees:
        """No trees."""
        nothing = np.empty(0, dtype=np.uint64)
        return cls(nothing, nothing, np.empty((0, 0, 0), dtype=np.int32))


def carried_over(
    stored: StoredTrees, network: EntityNetwork, views: Sequence[EvidenceView]
) -> tuple[EncodingTree, ...]:
    """Apply stored trees to the vertices as they are now."""
    positions = positions_in(stored.keys, network.keys)
    is_stored = positions >= 0
    labels = np.where(is_stored, stored.labels[..., positions], -1).astype(np.int64)
    # The id of an entity changes with the passages that name it.
    changed = positions_in(stored.ids, id_codes(network.ids)) < 0
    for levels, view in zip(labels, views, strict=True):
        _place_new_vertices(levels, is_stored, view.graph)
        above = levels[1] if len(levels) > 1 else np.zeros_like(levels[0])
        levels[0] = repaired_clusters(view.graph, levels[0], above, ~is_stored, changed)
    return tuple(EncodingTree(network.size, tuple(levels)).contracted() for levels in labels)


def repaired_clusters(
    graph: UndirectedGraph, clusters: IntArray, above: IntArray, new: BoolArray, changed: BoolArray
) -> IntArray:
    """Group the vertices of the finest clusters with a changed vertex again, `new` ones alone at first; all are `[n]`.

    They stay below their nodes of the next level, `above` (all 0 where there is none), so no other level changes.
    """
    affected = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.bool_)
    affected[clusters[changed]] = True
    inside = np.flatnonzero(affected[clusters])
    if not len(inside):
        return canonical_labels(clusters)
    groups = np.where(new, len(affected) + np.arange(graph.size), clusters)
    positions = np.full(graph.size, -1, dtype=np.int64)
    positions[inside] = np.arange(len(inside))
    ends = positions[graph.edges]
    together = (ends >= 0).all(axis=1) & (above[graph.edges[:, 0]] == above[graph.edges[:, 1]])
    within = UndirectedGraph(len(inside), ends[together], graph.weights[together])
    degrees = graph.degrees()
    volumes = np.bincount(above, weights=degrees).astype(np.float64)
    level = MergeLevel(within, degrees[inside], volumes[above[inside]], graph.volume())
    regrouped = entropy_partition(level, canonical_labels(groups[inside]))
    groups[inside] = len(affected) + graph.size + inside[first_members(regrouped)][regrouped]
    return canonical_labels(groups)


def _place_new_vertices(levels: IntArray, is_stored: BoolArray, graph: UndirectedGraph) -> None:
    """Put new vertices into the clusters that most of their edges lead to, nearest ones first; changes `levels`.

    What no edge joins with a cluster becomes one of its own, component by component.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    starts, targets, weights = graph.rows()
    adjacency = csr_array((weights, targets, starts), shape=(graph.size, graph.size))
    waiting = np.flatnonzero(~is_stored)
    while len(waiting):
        placed, first = np.flatnonzero(levels[0] >= 0), first_members(levels[0])
        shape = (graph.size, max(1, len(first)))
        members = csr_array((np.ones(len(placed)), (placed, levels[0][placed])), shape=shape)
        links = (adjacency[waiting] @ members).tocsr()
        linked = np.diff(links.indptr) > 0
        if not linked.any():
            parts = connected_components(adjacency[waiting][:, waiting], directed=False)[1]
            levels[:, waiting] = int(levels.max(initial=-1)) + 1 + parts
            return
        levels[:, waiting[linked]] = levels[:, first[links[linked].argmax(axis=1).ravel()]]
        waiting = waiting[~linked]
