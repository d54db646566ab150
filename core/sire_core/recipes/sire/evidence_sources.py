"""Scores of few passages, and of those beside them in a source and of the same source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.protocols import BoolArray
    from sire_core.recipes.sire.evidence_index import EvidenceIndex

    Floats = NDArray[np.float64]
    Score = Callable[[Ints], Floats]

__all__ = ["FewScores", "near_scores", "source_ranks", "source_scores"]


@dataclass(frozen=True, slots=True)
class FewScores:
    """A number for some passages and 0 for the others.

    Attributes:
        passages: Ascending.
        values: Of each, and a 0 behind them.
    """

    passages: Ints
    values: Floats

    @classmethod
    def of(cls, passages: Ints, values: Floats) -> FewScores:
        """Of some passages, ascending."""
        return cls(np.append(passages, np.iinfo(np.int64).max), np.append(values, 0.0))

    def at(self, passages: Ints) -> Floats:
        """The number of each of some passages."""
        places = np.searchsorted(self.passages, passages)
        return np.where(self.passages[places] == passages, self.values[places], 0.0)


def near_scores(
    index: EvidenceIndex, passages: Ints, scores: Sequence[Score], allowed: BoolArray | None
) -> list[Floats]:
    """The better score of the passages before and behind some passages; at least 0, `[len(passages)]` each.

    Args:
        index: The arrays.
        passages: Which.
        scores: Each gives the scores of passages.
        allowed: Passages that count, `[passages]`; None for all.
    """
    members = index.members
    source, place = index.source[passages], index.place[passages]
    found = [np.zeros(len(passages)) for _ in scores]
    if len(members) == len(members.values):  # every passage is a source of its own
        return found
    for there, other in ((place > 0, place - 1), (place + 1 < members.lengths(source), place + 1)):
        rows = np.flatnonzero(there)
        beside = members.values[members.starts[source[rows]] + other[rows]].astype(np.int64)
        for best, score in zip(found, scores, strict=True):
            best[rows] = np.maximum(best[rows], _counted(beside, score, allowed))
    return found


def source_scores(
    index: EvidenceIndex, passages: Ints, scores: Sequence[Score], allowed: BoolArray | None
) -> list[Floats]:
    """The best score of the other passages of each one's source; at least 0. See `near_scores`."""
    members = index.members
    found = [np.zeros(len(passages)) for _ in scores]
    if len(members) == len(members.values):
        return found
    sources, number = np.unique(index.source[passages], return_inverse=True)
    shared = members.lengths(sources) > 1
    which, others = members.take(sources[shared])
    first = np.searchsorted(which, np.arange(np.count_nonzero(shared)))
    rows = np.flatnonzero(shared[number])
    group = (np.cumsum(shared) - 1)[number[rows]]
    if not len(rows):
        return found
    for best, score in zip(found, scores, strict=True):
        counted = _counted(others, score, allowed)
        most = np.maximum.reduceat(counted, first)
        at_most = counted == most[which]
        second = np.maximum.reduceat(np.where(at_most, 0.0, counted), first)
        alone = np.add.reduceat(at_most.astype(np.int64), first) == 1
        mine = counted[first[group] + index.place[passages[rows]]]
        best[rows] = np.where(alone[group] & (mine == most[group]), second[group], most[group])
    return found


def source_ranks(index: EvidenceIndex, passages: Ints, scores: Floats, allowed: BoolArray | None) -> Floats:
    """Rank of some passages within their source, 0 for the best, `[len(passages)]`.

    Args:
        index: The arrays.
        passages: Numbers of the passages.
        scores: Score of every passage of the index, `[passages]`.
        allowed: Passages that count, `[passages]`; None for all.
    """
    sources = np.unique(index.source[passages])
    owners, members = index.members.take(sources)
    if allowed is not None:
        owners, members = owners[allowed[members]], members[allowed[members]]
    order = np.lexsort((-scores[members], owners))
    first = np.searchsorted(owners[order], np.arange(len(sources)))
    ranks = np.zeros(len(index.chunks))
    ranks[members[order]] = np.arange(len(order)) - first[owners[order]]
    return ranks[passages]


def _counted(passages: Ints, score: Score, allowed: BoolArray | None) -> Floats:
    """Scores of some passages, 0 at least; those that are not allowed have none."""
    found = np.maximum(score(passages), 0.0)
    return found if allowed is None else np.where(allowed[passages], found, 0.0)
