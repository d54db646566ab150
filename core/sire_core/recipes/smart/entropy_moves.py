"""Out of the local optima of merging: units change their group, groups dissolve."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.recipes.smart.encoding_tree import canonical_labels
from sire_core.recipes.smart.entropy_merging import SMALLEST_GAIN, MergeLevel, worth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Rows = tuple[Ints, Ints, Floats]
    Scores = tuple[Floats, Floats, Floats]
    Lists = tuple[list[Any], ...]

__all__ = ["dissolve_groups", "move_units"]

_ENOUGH = 3e-4  # of the information: a sweep that adds less is the last one
_DIGITS = 10  # as for merges: ties must not hang on rounding


def move_units(level: MergeLevel, labels: Ints) -> Ints:
    """Sweeps in which every unit may move to the adjacent group where it is worth most, or into a group of its own.

    The gains of all moves are computed at once; then the moves are made one by one, the best first, each after its
    gain has been computed again.

    Args:
        level: Units, volumes and ceilings.
        labels: `[n]`, groups, 0 to c - 1.

    Returns:
        `[n]`, numbered by the smallest unit; never worth less than before.
    """
    rows = level.graph.rows()

    def sweep(labels: Ints, scores: Scores) -> Ints:
        units, targets = _best_moves(level, labels, rows, scores)
        starts, counts = rows[0][units], rows[0][units + 1] - rows[0][units]
        at = ranges(starts, counts)
        moves = (units, targets, level.volumes[units], counts, rows[1][at], rows[2][at])
        return _made(labels, tuple(column.tolist() for column in moves), scores, SMALLEST_GAIN * level.total)

    return _swept(level, labels, sweep)


def dissolve_groups(level: MergeLevel, labels: Ints) -> Ints:
    """Sweeps in which groups are taken apart, each unit going to the adjacent group where it is worth most.

    Units of a group that go to the same place take the weight between them along; a unit that is worth nothing
    elsewhere stays alone. No group changes twice in a sweep, so the gains are exact.

    Args:
        level: Units, volumes and ceilings.
        labels: `[n]`, groups, 0 to c - 1.

    Returns:
        `[n]`, numbered by the smallest unit; never worth less than before.
    """
    rows = level.graph.rows()

    def sweep(labels: Ints, scores: Scores) -> Ints:
        return _dissolved(labels, *_dissolutions(level, labels, rows, scores))

    return _swept(level, labels, sweep)


def _swept(level: MergeLevel, labels: Ints, sweep: Callable[[Ints, Scores], Ints]) -> Ints:
    """Labels after as many sweeps as add something."""
    labels = canonical_labels(labels)
    scores = level.scores(labels)
    information = float(worth(*scores).sum())
    while True:
        changed = canonical_labels(sweep(labels, scores))
        scores = level.scores(changed)
        before, information = information, float(worth(*scores).sum())
        if information <= before:
            return labels
        labels = changed
        if information - before <= _ENOUGH * information:
            return labels


class _Links(NamedTuple):
    """The weight between units and groups, and what a unit is worth in a group that it is not in."""

    units: Ints
    groups: Ints
    weights: Floats
    gains: Floats
    own: Floats  # per unit: the weight to its own group


def _links(level: MergeLevel, labels: Ints, rows: Rows, scores: Scores) -> _Links:
    from scipy.sparse import csr_array

    n = len(labels)
    inner, volumes, ceilings = scores
    adjacency = csr_array((rows[2], rows[1], rows[0]), shape=(n, n))
    groups = csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, len(inner)))
    links = (adjacency @ groups).tocoo()
    units, columns, weights = links.row.astype(np.int64), links.col.astype(np.int64), links.data
    own = np.zeros(n)
    home = labels[units] == columns
    own[units[home]] = weights[home]
    units, columns, weights = units[~home], columns[~home], weights[~home]
    joined = worth(inner[columns] + 2 * weights, volumes[columns] + level.volumes[units], ceilings[columns])
    return _Links(units, columns, weights, joined - worth(inner, volumes, ceilings)[columns], own)


def _best_links(links: _Links, gains: Floats, total: float) -> Ints:
    """Positions of the links with the largest positive gain of their unit, the smaller group first in a tie."""
    rounded = np.round(gains / max(total, 1e-300), _DIGITS)
    good = np.flatnonzero(rounded > SMALLEST_GAIN)
    most = np.zeros(len(links.own))
    np.maximum.at(most, links.units[good], rounded[good])
    good = good[rounded[good] == most[links.units[good]]]
    order = good[np.lexsort((links.groups[good], links.units[good]))]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = links.units[order[1:]] != links.units[order[:-1]]
    best = order[first]
    return np.asarray(best[np.argsort(-rounded[best], kind="stable")], dtype=np.int64)


def _best_moves(level: MergeLevel, labels: Ints, rows: Rows, scores: Scores) -> tuple[Ints, Ints]:
    """Units that gain by moving and where to (-1: a group of its own), the largest gains first."""
    links = _links(level, labels, rows, scores)
    inner, volumes, ceilings = scores
    without = worth(inner[labels] - 2 * links.own, volumes[labels] - level.volumes, level.ceilings)
    leaving = without - worth(inner, volumes, ceilings)[labels]
    alone = np.flatnonzero(leaving > SMALLEST_GAIN * level.total)
    every = _Links(
        np.concatenate([links.units, alone]),
        np.concatenate([links.groups, np.full(len(alone), -1)]),
        links.weights,
        np.concatenate([links.gains, np.zeros(len(alone))]),
        links.own,
    )
    best = _best_links(every, every.gains + leaving[every.units], level.total)
    return every.units[best], every.groups[best]


def _made(labels: Ints, moves: Lists, scores: Scores, least: float) -> Ints:
    """Labels after those of the moves, in this order, that still gain something when it is their turn.

    Moves are units, targets, volumes, how many neighbours, and, all in a row, the neighbours and the weights to them.
    """
    *units, neighbors, weights = moves
    inner, volumes, ceilings = (column.tolist() for column in scores)
    home: list[int] = labels.tolist()
    stop = 0
    for unit, target, size, count in zip(*units, strict=True):
        start, stop = stop, stop + count
        own, top = home[unit], ceilings[home[unit]]
        from_own = to_target = 0.0
        for place in range(start, stop):
            group = home[neighbors[place]]
            if group == own:
                from_own += weights[place]
            elif group == target:
                to_target += weights[place]
        group = len(inner) if target < 0 else target
        inside, volume = (0.0, 0.0) if target < 0 else (inner[group], volumes[group])
        before = _value(inner[own], volumes[own], top) + _value(inside, volume, top)
        left = (inner[own] - 2 * from_own, volumes[own] - size)
        joined = (inside + 2 * to_target, volume + size)
        if _value(left[0], left[1], top) + _value(joined[0], joined[1], top) - before <= least:
            continue
        if target < 0:
            inner.append(0.0)
            volumes.append(0.0)
            ceilings.append(top)
        home[unit] = group
        inner[own], volumes[own] = left
        inner[group], volumes[group] = joined
    return np.array(home, dtype=np.int64)


def _value(inner: float, volume: float, ceiling: float) -> float:
    return inner * log2(ceiling / volume) if inner > 0 and volume > 0 else 0.0


def _dissolutions(level: MergeLevel, labels: Ints, rows: Rows, scores: Scores) -> tuple[Floats, Ints]:
    """What dissolving each group gains, and where each unit would go (-1: stay alone)."""
    links = _links(level, labels, rows, scores)
    inner, volumes, ceilings = scores
    best = _best_links(links, links.gains, level.total)
    targets = np.full(len(labels), -1, dtype=np.int64)
    targets[links.units[best]] = links.groups[best]
    going = np.flatnonzero(targets >= 0)
    parts, first, part = np.unique(labels[going] * len(inner) + targets[going], return_index=True, return_inverse=True)
    goals = targets[going][first]
    taken = np.zeros(len(labels))
    taken[links.units[best]] = links.weights[best]
    added = np.bincount(part, weights=2 * taken[going], minlength=len(parts)) + _within(level, labels, targets, parts)
    moved = np.bincount(part, weights=level.volumes[going], minlength=len(parts)).astype(np.float64)
    after = worth(inner[goals] + added, volumes[goals] + moved, ceilings[goals])
    apart = worth(inner, volumes, ceilings)
    gains = np.bincount(parts // max(1, len(inner)), weights=after - apart[goals], minlength=len(inner)) - apart
    return gains / max(level.total, 1e-300), targets


def _within(level: MergeLevel, labels: Ints, targets: Ints, parts: Ints) -> Floats:
    """Twice the weight inside every part: units of one group that go to the same other group."""
    left, right = level.graph.edges.T
    together = (labels[left] == labels[right]) & (targets[left] == targets[right]) & (targets[left] >= 0)
    codes = labels[left[together]] * (int(labels.max(initial=-1)) + 1) + targets[left[together]]
    weights = 2 * level.graph.weights[together]
    return np.bincount(np.searchsorted(parts, codes), weights=weights, minlength=len(parts)).astype(np.float64)


def _dissolved(labels: Ints, gains: Floats, targets: Ints) -> Ints:
    """Labels after the best dissolutions that do not touch each other's groups."""
    good = np.flatnonzero(gains > SMALLEST_GAIN)
    order = good[np.argsort(-np.round(gains[good], _DIGITS), kind="stable")]
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
