"""Communities by merging: every merge raises the decoding information."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

import numpy as np

from sire_core.recipes.smart.encoding_tree import canonical_labels
from sire_core.recipes.smart.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["SMALLEST_GAIN", "MergeLevel", "merge_communities"]

SMALLEST_GAIN = 1e-10
"""Gains up to this share of the volume are rounding."""
_DIGITS = 10  # decimals, relative to the volume, to which gains are compared: ties must not hang on rounding
_STRICT = 0.9  # share of the best gain that is nearly as good
_SLOW = 0.95  # share of the groups left by a round after which less is nearly as good: there is an end to it


@dataclass(frozen=True, slots=True, eq=False)
class MergeLevel:
    """One level of an encoding tree to be found: units that are to be grouped below given parents.

    At the first level units are vertices and their volumes degrees; at a higher one they are the clusters below. A
    group X of units adds 2 e(X) / vol * log2(V_parent / V_X) to the decoding information, e(X) being the weight between
    the units of X: this is minus the change of the tree entropy, and the same as the paper's f(X) written
    with cuts.

    Attributes:
        graph: Units and the weights between them.
        volumes: `[n]`, sum of the degrees in each unit.
        ceilings: `[n]`, volume of the node above the units; the same for units that share an edge.
        total: The graph's volume.
    """

    graph: UndirectedGraph
    volumes: Floats
    ceilings: Floats
    total: float

    @classmethod
    def of(cls, graph: UndirectedGraph) -> MergeLevel:
        """The level right below the root, vertices being the units.

        Args:
            graph: The graph.
        """
        volume = graph.volume()
        return cls(graph, graph.degrees(), np.full(graph.size, volume), volume)

    def scores(self, labels: Ints) -> tuple[Floats, Floats, Floats]:
        """Twice the inner weight, volume and ceiling of every group.

        Args:
            labels: `[n]`, the group of every unit, 0 to c - 1.
        """
        count = int(labels.max(initial=-1)) + 1
        left, right = labels[self.graph.edges].T
        inside = left == right
        inner = np.bincount(left[inside], weights=2 * self.graph.weights[inside], minlength=count).astype(np.float64)
        volumes = np.bincount(labels, weights=self.volumes, minlength=count).astype(np.float64)
        ceilings = np.zeros(count)
        ceilings[labels] = self.ceilings
        return inner, volumes, ceilings

    def information(self, labels: Ints) -> float:
        """What a grouping adds to the decoding information, in bits.

        Args:
            labels: `[n]`, the group of every unit, 0 to c - 1.
        """
        inner, volumes, ceilings = self.scores(labels)
        return float(worth(inner, volumes, ceilings).sum()) / self.total if self.total else 0.0


def worth(inner: Floats, volumes: Floats, ceilings: Floats) -> Floats:
    """What groups are worth: inner * log2(ceiling / volume); 0 without inner weight."""
    ratio = np.divide(ceilings, volumes, out=np.ones_like(volumes), where=(inner > 0) & (volumes > 0))
    return np.asarray(inner * np.log2(ratio), dtype=np.float64)


def merge_communities(level: MergeLevel, labels: Ints | None = None) -> Ints:
    """Merge adjacent groups as long as some merge has a positive gain, the best ones first.

    In every round the gains of all adjacent pairs are computed; then pairs are merged in the order of their gains, each
    group once, if the gain is (nearly) the best of both. A further group may join one of this round's merges if its
    gain is nearly as good after the merge as before. The rounds do what a heap does one merge at a time, with arrays.

    Args:
        level: Units, volumes and ceilings.
        labels: `[n]`, groups to start from, 0 to c - 1; every unit alone when left out.

    Returns:
        `[n]`, numbered by the smallest unit; ties between gains go to the smaller numbers.
    """
    groups = canonical_labels(np.arange(level.graph.size) if labels is None else labels)
    now = _Groups(level.graph.contracted(groups), *level.scores(groups))
    strictness = _STRICT
    while True:
        merged = _merge_round(now, level.total, strictness)
        if merged is None:
            return groups
        merged = canonical_labels(merged)
        groups, before, now = merged[groups], now, now.merged(merged)
        if now.between.size > _SLOW * before.between.size:
            strictness *= _STRICT


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Groups as vertices: the weights between them and what each is."""

    between: UndirectedGraph
    inner: Floats
    volumes: Floats
    ceilings: Floats

    def merged(self, labels: Ints) -> _Groups:
        count = int(labels.max(initial=-1)) + 1
        left, right = labels[self.between.edges].T
        joined = left == right
        inner = np.bincount(labels, weights=self.inner, minlength=count)
        inner += np.bincount(left[joined], weights=2 * self.between.weights[joined], minlength=count)
        volumes = np.bincount(labels, weights=self.volumes, minlength=count).astype(np.float64)
        ceilings = np.zeros(count)
        ceilings[labels] = self.ceilings
        return _Groups(self.between.contracted(labels), inner.astype(np.float64), volumes, ceilings)


def _merge_round(now: _Groups, total: float, strictness: float) -> Ints | None:
    """New number of every group after one round, or None if no merge has a positive gain."""
    gains = np.round(_gains(now) / max(total, 1e-300), _DIGITS)
    good = np.flatnonzero(gains > SMALLEST_GAIN)
    if not len(good):
        return None
    ends, gains, weights = now.between.edges[good], gains[good], now.between.weights[good]
    best = np.zeros(now.between.size)
    np.maximum.at(best, ends.T.ravel(), np.tile(gains, 2))
    likely = np.flatnonzero(gains >= strictness * best[ends].max(axis=1))
    likely = likely[np.argsort(-gains[likely], kind="stable")]  # edges are in order already
    touched = np.zeros(now.between.size, dtype=np.bool_)
    touched[ends[likely]] = True
    groups, labels = np.flatnonzero(touched), np.arange(now.between.size)
    left, right = (np.cumsum(touched) - 1)[ends[likely]].T
    pairs = zip(*(column.tolist() for column in (left, right, gains[likely], weights[likely])), strict=True)
    parts = (now.inner[groups].tolist(), now.volumes[groups].tolist(), now.ceilings[groups].tolist())
    labels[groups] = groups[_pair_up(pairs, *parts, strictness * total)]
    return labels


def _gains(now: _Groups) -> Floats:
    """What merging the ends of every edge adds to the worth of the grouping."""
    left, right = now.between.edges.T
    apart = worth(now.inner, now.volumes, now.ceilings)
    joined = now.inner[left] + now.inner[right] + 2 * now.between.weights
    after = worth(joined, now.volumes[left] + now.volumes[right], now.ceilings[left])
    return np.asarray(after - apart[left] - apart[right], dtype=np.float64)


def _pair_up(
    pairs: Iterable[tuple[int, int, float, float]],
    inner: list[float],
    volumes: list[float],
    ceilings: list[float],
    least: float,
) -> list[int]:
    """Merge pairs in the given order; a group that is free may join a merge of this round that is still worth it.

    `least` turns the gain of a pair before this round into what it must at least be when it is its turn.
    """
    home = list(range(len(inner)))
    taken, full = [False] * len(inner), [False] * len(inner)
    value = [
        one * log2(top / volume) if one else 0.0 for one, volume, top in zip(inner, volumes, ceilings, strict=True)
    ]
    for left, right, gain, weight in pairs:
        if taken[left] and taken[right]:
            continue
        fresh = not (taken[left] or taken[right])
        group, joining = (home[right], left) if taken[right] else (home[left], right)
        if full[group]:
            continue
        inside = inner[group] + inner[joining] + 2 * weight
        volume = volumes[group] + volumes[joining]
        after = inside * log2(ceilings[group] / volume)
        if not fresh and after - value[group] - value[joining] < least * gain:
            full[group] = True
            continue
        home[joining] = group
        taken[left] = taken[right] = True
        inner[group], volumes[group], value[group] = inside, volume, after
    return home
