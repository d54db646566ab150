"""`MergedRanking`: the rankings of several searches as one (ALGORITHMS 7, column merge)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.types import Step

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, Ranking

__all__ = ["MergedRanking", "Search"]


@dataclass(frozen=True, slots=True)
class Search:
    """One search of a reasoning.

    Attributes:
        query: What was searched for.
        ranking: Of the whole pool.
        found: Positions that count as found, best first.
        scores: Theirs.
    """

    query: str
    ranking: Ranking
    found: tuple[int, ...]
    scores: tuple[float, ...]


class MergedRanking:
    """What several searches found, each unit with the best score that any of them gave it.

    Whatever no search counts as found comes behind, in the order of its best score too, so that a selector that runs
    short can read on.

    Args:
        searches: At least one.
        appended: Keeps the order in which units were found, instead of the order of their best scores.
    """

    def __init__(self, searches: Sequence[Search], *, appended: bool = False) -> None:
        self._searches = tuple(searches)
        self._best: dict[int, float] = {}
        self._owner: dict[int, int] = {}
        for number, search in enumerate(self._searches):
            for position, score in zip(search.found, search.scores, strict=True):
                self._note(self._best, number, position, score)
        self._found = list(self._best) if appended else _sorted(self._best)

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        order, scores = self._found[:n], self._best
        if n > len(order):
            rest = await self._rest(n)
            order = order + _sorted(rest)[: n - len(order)]
            scores = {**rest, **scores}
        return np.array(order, dtype=np.int64), np.array([scores[position] for position in order], dtype=np.float32)

    async def _rest(self, n: int) -> dict[int, float]:
        """The best of what was not found. The best `n` of all are among the best `n` of each search."""
        rest: dict[int, float] = {}
        for number, search in enumerate(self._searches):
            positions, scores = await search.ranking.top(n)
            for position, score in zip(positions.tolist(), scores.tolist(), strict=True):
                if position not in self._best:
                    self._note(rest, number, position, score)
        return rest

    def _note(self, best: dict[int, float], number: int, position: int, score: float) -> None:
        if position not in best or score > best[position]:
            best[position] = score
            self._owner[position] = number

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The best score that any search gives each of the positions."""
        scores: FloatArray = np.max([search.ranking.scores_at(positions) for search in self._searches], axis=0)
        return scores

    def path(self, position: int) -> tuple[Step, ...]:
        """The search that scored a position best, if there were several, and its reasons."""
        if len(self._searches) == 1:
            return self._searches[0].ranking.path(position)
        number = self._owner.get(position, 0)
        search = self._searches[number]
        note = "search for the question" if number == 0 else f"search {number}: {search.query}"
        return (Step("reasoning", (), note), *search.ranking.path(position))


def _sorted(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda position: (-scores[position], position))
