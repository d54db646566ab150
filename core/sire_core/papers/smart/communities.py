"""Communities of small structural entropy: merging, moves, dissolutions, level by level (SMART)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sire_core.extend import ranges, run_starts
from sire_core.papers.smart.encoding_tree import EncodingTree, UndirectedGraph, canonical_labels

if TYPE_CHECKING:
    from sire_core.extend import DoubleArray, IntArray

    Rows = tuple[IntArray, IntArray, DoubleArray]
    Scores = tuple[DoubleArray, DoubleArray, DoubleArray]
    Lists = tuple[list[Any], ...]

SMALLEST_GAIN = 1e-10  # Gains up to this share of the volume are rounding
_GAIN_DIGITS = 10  # decimals, relative to the volume, to which gains are compared: ties must not hang on rounding
_NEARLY_BEST = 0.9  # share of the best gain that is nearly as good
_SLOW_ROUND = 0.95  # share of the groups left by a round after which less is nearly as good: there is an end to it


@dataclass(frozen=True, slots=True, eq=False)
class MergeLevel:
    """One level of an encoding tree to be found: units to be grouped below given parents.

    At the first level units are vertices and their volumes degrees; at a higher one they are the clusters below. A
    group X of units adds 2 e(X) / vol * log2(V_parent / V_X) to the decoding information, e(X) being the weight between
    the units of X: minus the change of the tree entropy, and equal to the paper's f(X), which is written with cuts.
    """

    graph: UndirectedGraph  # units and the weights between them
    volumes: DoubleArray  # sum of the degrees in each unit, `[n]`
    ceilings: DoubleArray  # volume of the node above each unit, equal for units that share an edge, `[n]`
    total: float  # volume of the whole graph
    inner: DoubleArray | None = None  # twice the weight inside each unit that counts as its group's, `[n]`; None for 0

    @classmethod
    def of(cls, graph: UndirectedGraph) -> MergeLevel:
        """Return the level right below the root, with vertices as units."""
        volume = graph.volume()
        return cls(graph, graph.degrees(), np.full(graph.size, volume), volume)

    def scores(self, labels: IntArray) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
        """Return twice the inner weight, the volume and the ceiling of every group `[n]`."""
        count = int(labels.max(initial=-1)) + 1
        left, right = labels[self.graph.edges].T
        inside = left == right
        inner = np.bincount(left[inside], weights=2 * self.graph.weights[inside], minlength=count).astype(np.float64)
        if self.inner is not None:
            inner += np.bincount(labels, weights=self.inner, minlength=count)
        volumes = np.bincount(labels, weights=self.volumes, minlength=count).astype(np.float64)
        ceilings = np.zeros(count)
        ceilings[labels] = self.ceilings
        return inner, volumes, ceilings

    def merged(self, labels: IntArray) -> MergeLevel:
        """Return the level whose units are the groups of this one."""
        inner, volumes, ceilings = self.scores(labels)
        return MergeLevel(self.graph.contracted(labels), volumes, ceilings, self.total, inner)

    def information(self, labels: IntArray) -> float:
        """Return what a grouping `[n]` adds to the decoding information, in bits."""
        inner, volumes, ceilings = self.scores(labels)
        return float(information_gain(inner, volumes, ceilings).sum()) / self.total if self.total else 0.0


def information_gain(inner: DoubleArray, volumes: DoubleArray, ceilings: DoubleArray) -> DoubleArray:
    """Return inner * log2(ceiling / volume), what groups add to the decoding information times the graph's volume."""
    ratio = np.divide(ceilings, volumes, out=np.ones_like(volumes), where=(inner > 0) & (volumes > 0))
    return np.asarray(inner * np.log2(ratio), dtype=np.float64)


def merge_communities(level: MergeLevel, labels: IntArray | None = None) -> IntArray:
    """Merge adjacent groups as long as some merge has a positive gain, the best ones first."""
    groups = canonical_labels(np.arange(level.graph.size) if labels is None else labels)
    state, strictness = level.merged(groups), _NEARLY_BEST
    while True:
        merged = _merge_round(state, strictness)
        if merged is None:
            return groups
        merged = canonical_labels(merged)
        groups, before, state = merged[groups], state, state.merged(merged)
        if state.graph.size > _SLOW_ROUND * before.graph.size:
            strictness *= _NEARLY_BEST


def _merge_round(state: MergeLevel, strictness: float) -> IntArray | None:
    """Return the new number of every group after one round; None if no merge has a positive gain."""
    assert state.inner is not None
    edges, weights = state.graph.edges, state.graph.weights
    left, right = edges.T
    before = information_gain(state.inner, state.volumes, state.ceilings)
    joined = state.inner[left] + state.inner[right] + 2 * weights
    after = information_gain(joined, state.volumes[left] + state.volumes[right], state.ceilings[left])
    gains = np.round((after - before[left] - before[right]) / max(state.total, 1e-300), _GAIN_DIGITS)
    gaining = np.flatnonzero(gains > SMALLEST_GAIN)
    if not len(gaining):
        return None
    ends, gains, weights = edges[gaining], gains[gaining], weights[gaining]
    best = np.zeros(state.graph.size)
    np.maximum.at(best, ends.T.ravel(), np.tile(gains, 2))
    likely = np.flatnonzero(gains >= strictness * best[ends].max(axis=1))
    likely = likely[np.argsort(-gains[likely], kind="stable")]  # edges are in order already
    touched = np.zeros(state.graph.size, dtype=np.bool_)
    touched[ends[likely]] = True
    groups, labels = np.flatnonzero(touched), np.arange(state.graph.size)
    left, right = (np.cumsum(touched) - 1)[ends[likely]].T
    pairs = zip(*(column.tolist() for column in (left, right, gains[likely], weights[likely])), strict=True)
    parts = (state.inner[groups].tolist(), state.volumes[groups].tolist(), state.ceilings[groups].tolist())
    labels[groups] = groups[_pair_up(pairs, *parts, strictness * state.total)]
    return labels


def _pair_up(
    pairs: Iterable[tuple[int, int, float, float]],
    inner: list[float],
    volumes: list[float],
    ceilings: list[float],
    least: float,
) -> list[int]:
    """Merge pairs in the given order; a free group may join a merge that still gains `least` times as much."""
    groups = list(range(len(inner)))
    is_merged, is_full = [False] * len(inner), [False] * len(inner)
    value = [
        one * log2(top / volume) if one else 0.0 for one, volume, top in zip(inner, volumes, ceilings, strict=True)
    ]
    for first, second, gain, weight in pairs:
        if is_merged[first] and is_merged[second]:
            continue
        fresh = not (is_merged[first] or is_merged[second])
        group, joining = (groups[second], first) if is_merged[second] else (groups[first], second)
        if is_full[group]:
            continue
        inside = inner[group] + inner[joining] + 2 * weight
        volume = volumes[group] + volumes[joining]
        after = inside * log2(ceilings[group] / volume)
        if not fresh and after - value[group] - value[joining] < least * gain:
            is_full[group] = True
            continue
        groups[joining] = group
        is_merged[first] = is_merged[second] = True
        inner[group], volumes[group], value[group] = inside, volume, after
    return groups


_MIN_SWEEP_GAIN = 3e-4  # of the information: a sweep that adds less is the last one


def move_units(level: MergeLevel, labels: IntArray) -> IntArray:
    """Repeat sweeps in which each unit may move to the adjacent group, or alone, where the information gains most."""
    csr = level.graph.rows()

    def sweep(labels: IntArray, scores: Scores) -> IntArray:
        units, targets = _best_moves(level, labels, csr, scores)
        starts, counts = csr[0][units], csr[0][units + 1] - csr[0][units]
        at = ranges(starts, counts)
        moves = (units, targets, level.volumes[units], counts, csr[1][at], csr[2][at])
        return _apply_moves(labels, tuple(column.tolist() for column in moves), scores, SMALLEST_GAIN * level.total)

    return _repeat_sweep(level, labels, sweep)


def dissolve_groups(level: MergeLevel, labels: IntArray) -> IntArray:
    """Repeat sweeps that dissolve groups: each unit goes to the adjacent group where it gains most, or is alone."""
    csr = level.graph.rows()

    def sweep(labels: IntArray, scores: Scores) -> IntArray:
        return _apply_dissolutions(labels, *_dissolutions(level, labels, csr, scores))

    return _repeat_sweep(level, labels, sweep)


def _repeat_sweep(level: MergeLevel, labels: IntArray, sweep: Callable[[IntArray, Scores], IntArray]) -> IntArray:
    """Apply sweeps until one adds nothing or hardly anything."""
    labels = canonical_labels(labels)
    scores = level.scores(labels)
    information = float(information_gain(*scores).sum())
    while True:
        changed = canonical_labels(sweep(labels, scores))
        scores = level.scores(changed)
        before, information = information, float(information_gain(*scores).sum())
        if information <= before:
            return labels
        labels = changed
        if information - before <= _MIN_SWEEP_GAIN * information:
            return labels


class _Links(NamedTuple):
    """Weights between units and adjacent groups, and what each unit adds to such a group."""

    units: IntArray
    groups: IntArray
    weights: DoubleArray
    gains: DoubleArray
    own: DoubleArray  # per unit: the weight to its own group


def _links(level: MergeLevel, labels: IntArray, csr: Rows, scores: Scores) -> _Links:
    from scipy.sparse import csr_array

    n = len(labels)
    inner, volumes, ceilings = scores
    adjacency = csr_array((csr[2], csr[1], csr[0]), shape=(n, n))
    groups = csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, len(inner)))
    links = (adjacency @ groups).tocoo()
    units, columns, weights = links.row.astype(np.int64), links.col.astype(np.int64), links.data
    inner_weights = np.zeros(n)
    is_own = labels[units] == columns
    inner_weights[units[is_own]] = weights[is_own]
    units, columns, weights = units[~is_own], columns[~is_own], weights[~is_own]
    joined = information_gain(inner[columns] + 2 * weights, volumes[columns] + level.volumes[units], ceilings[columns])
    return _Links(units, columns, weights, joined - information_gain(inner, volumes, ceilings)[columns], inner_weights)


def _best_links(links: _Links, gains: DoubleArray, total: float) -> IntArray:
    """Return the link with the largest positive gain of each unit, best units first; ties go to the smaller group."""
    rounded = np.round(gains / max(total, 1e-300), _GAIN_DIGITS)
    gaining = np.flatnonzero(rounded > SMALLEST_GAIN)
    largest = np.zeros(len(links.own))
    np.maximum.at(largest, links.units[gaining], rounded[gaining])
    gaining = gaining[rounded[gaining] == largest[links.units[gaining]]]
    order = gaining[np.lexsort((links.groups[gaining], links.units[gaining]))]
    best = order[run_starts(links.units[order])]
    return np.asarray(best[np.argsort(-rounded[best], kind="stable")], dtype=np.int64)


def _best_moves(level: MergeLevel, labels: IntArray, csr: Rows, scores: Scores) -> tuple[IntArray, IntArray]:
    """Return units that gain by moving and their targets (-1: a group of its own), the largest gains first."""
    links = _links(level, labels, csr, scores)
    inner, volumes, ceilings = scores
    without = information_gain(inner[labels] - 2 * links.own, volumes[labels] - level.volumes, level.ceilings)
    leaving = without - information_gain(inner, volumes, ceilings)[labels]
    alone = np.flatnonzero(leaving > SMALLEST_GAIN * level.total)
    all_links = _Links(
        np.concatenate([links.units, alone]),
        np.concatenate([links.groups, np.full(len(alone), -1)]),
        links.weights,
        np.concatenate([links.gains, np.zeros(len(alone))]),
        links.own,
    )
    best = _best_links(all_links, all_links.gains + leaving[all_links.units], level.total)
    return all_links.units[best], all_links.groups[best]


def _apply_moves(labels: IntArray, moves: Lists, scores: Scores, least: float) -> IntArray:
    """Make those moves, in this order, that still gain when it is their turn."""
    *units, neighbors, weights = moves
    inner, volumes, ceilings = (column.tolist() for column in scores)
    groups: list[int] = labels.tolist()
    stop = 0
    for unit, target, size, count in zip(*units, strict=True):
        start, stop = stop, stop + count
        home, top = groups[unit], ceilings[groups[unit]]
        from_own = to_target = 0.0
        for edge in range(start, stop):
            group = groups[neighbors[edge]]
            if group == home:
                from_own += weights[edge]
            elif group == target:
                to_target += weights[edge]
        group = len(inner) if target < 0 else target
        inside, volume = (0.0, 0.0) if target < 0 else (inner[group], volumes[group])
        before = _group_gain(inner[home], volumes[home], top) + _group_gain(inside, volume, top)
        own_after = (inner[home] - 2 * from_own, volumes[home] - size)
        target_after = (inside + 2 * to_target, volume + size)
        if (
            _group_gain(own_after[0], own_after[1], top) + _group_gain(target_after[0], target_after[1], top) - before
            <= least
        ):
            continue
        if target < 0:
            inner.append(0.0)
            volumes.append(0.0)
            ceilings.append(top)
        groups[unit] = group
        inner[home], volumes[home] = own_after
        inner[group], volumes[group] = target_after
    return np.array(groups, dtype=np.int64)


def _group_gain(inner: float, volume: float, ceiling: float) -> float:
    return inner * log2(ceiling / volume) if inner > 0 and volume > 0 else 0.0


def _dissolutions(level: MergeLevel, labels: IntArray, csr: Rows, scores: Scores) -> tuple[DoubleArray, IntArray]:
    """Return what dissolving each group gains, and the target of each unit (-1: alone)."""
    links = _links(level, labels, csr, scores)
    inner, volumes, ceilings = scores
    best = _best_links(links, links.gains, level.total)
    targets = np.full(len(labels), -1, dtype=np.int64)
    targets[links.units[best]] = links.groups[best]
    going = np.flatnonzero(targets >= 0)
    parts, first, part = np.unique(labels[going] * len(inner) + targets[going], return_index=True, return_inverse=True)
    goals = targets[going][first]
    used = np.zeros(len(labels))
    used[links.units[best]] = links.weights[best]
    added = np.bincount(part, weights=2 * used[going], minlength=len(parts)) + _inner_weights(
        level, labels, targets, parts
    )
    moved = np.bincount(part, weights=level.volumes[going], minlength=len(parts)).astype(np.float64)
    after = information_gain(inner[goals] + added, volumes[goals] + moved, ceilings[goals])
    apart = information_gain(inner, volumes, ceilings)
    gains = np.bincount(parts // max(1, len(inner)), weights=after - apart[goals], minlength=len(inner)) - apart
    return gains / max(level.total, 1e-300), targets


def _inner_weights(level: MergeLevel, labels: IntArray, targets: IntArray, parts: IntArray) -> DoubleArray:
    """Return twice the inner weight of every part: units of one group with the same target."""
    left, right = level.graph.edges.T
    together = (labels[left] == labels[right]) & (targets[left] == targets[right]) & (targets[left] >= 0)
    codes = labels[left[together]] * (int(labels.max(initial=-1)) + 1) + targets[left[together]]
    weights = 2 * level.graph.weights[together]
    return np.bincount(np.searchsorted(parts, codes), weights=weights, minlength=len(parts)).astype(np.float64)


def _apply_dissolutions(labels: IntArray, gains: DoubleArray, targets: IntArray) -> IntArray:
    """Apply the best dissolutions that do not touch each other's groups."""
    gaining = np.flatnonzero(gains > SMALLEST_GAIN)
    order = gaining[np.argsort(-np.round(gains[gaining], _GAIN_DIGITS), kind="stable")]
    by_group = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[by_group], np.arange(len(gains) + 1))
    touched = np.zeros(len(gains), dtype=np.bool_)
    changed = labels.copy()
    for group in order.tolist():
        units = by_group[bounds[group] : bounds[group + 1]]
        goals = targets[units]
        if touched[group] or touched[goals[goals >= 0]].any():
            continue
        touched[group] = True
        touched[goals[goals >= 0]] = True
        changed[units] = np.where(goals >= 0, goals, len(gains) + units)
    return np.asarray(changed, dtype=np.int64)


_MIN_ROUND_GAIN = 1e-3  # of the information: the last round is the one whose dissolutions add less


def entropy_partition(level: MergeLevel, start: IntArray | None = None) -> IntArray:
    """Group units so that the tree entropy becomes small: merge, move and dissolve until it hardly improves."""
    labels = merge_communities(level, start)
    while True:
        moved = move_units(level, labels)
        improved = merge_communities(level, dissolve_groups(level, moved))
        before, after = level.information(moved), level.information(improved)
        if after - before <= _MIN_ROUND_GAIN * after:
            return improved
        labels = improved


def entropy_tree(graph: UndirectedGraph, levels: int = 3, start: IntArray | None = None) -> EncodingTree:
    """Build a tree of at most `levels` levels with little entropy."""
    base = MergeLevel.of(graph)
    labels = [entropy_partition(base) if start is None else canonical_labels(start)]
    while len(labels) < levels:
        above = _level_above(graph, labels[-1], base)
        if above is None:
            break
        labels.append(above)
    while len(labels) < levels:
        below = _level_below(graph, labels[0], base)
        if below is None:
            break
        labels.insert(0, below)
    return EncodingTree(graph.size, tuple(labels)).contracted()


def _level_above(graph: UndirectedGraph, labels: IntArray, base: MergeLevel) -> IntArray | None:
    """Group the clusters of the highest level; None if that saves nothing."""
    volumes = np.bincount(labels, weights=base.volumes).astype(np.float64)
    level = MergeLevel(graph.contracted(labels), volumes, np.full(len(volumes), base.total), base.total)
    groups = entropy_partition(level)
    return groups[labels] if level.information(groups) > SMALLEST_GAIN else None


def _level_below(graph: UndirectedGraph, labels: IntArray, base: MergeLevel) -> IntArray | None:
    """Divide the clusters of the finest level; None if that saves nothing."""
    inside = labels[graph.edges[:, 0]] == labels[graph.edges[:, 1]]
    within = UndirectedGraph(graph.size, graph.edges[inside], graph.weights[inside])
    ceilings = np.bincount(labels, weights=base.volumes)[labels].astype(np.float64)
    level = MergeLevel(within, base.volumes, ceilings, base.total)
    groups = entropy_partition(level)
    return groups if level.information(groups) > SMALLEST_GAIN else None
