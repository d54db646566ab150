"""`MergedRanking`: the rankings of several searches as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, Ranking

__all__ = ["Merge", "MergedRanking", "Search", "shared_out"]

Merge = Literal["relative", "max_score", "append"]
"""How searches become one ranking.

`max_score`: by the best score that any search gave a unit. `relative`: so too, after the scores of each search were
divided by its best one, because scores of different queries have no common scale: BM25 grows with the words of a query,
and a long question has lower cosines than a short one. `append`: in the order in which units were found.
"""


@dataclass(frozen=True, slots=True)
class Search:
    """One search of a reasoning.

    Attributes:
        query: What was searched for.
        ranking: Of the whole pool, as the recipe's selectors left it.
        found: Positions that count as found, best first.
        scores: Theirs.
    """

    query: str
    ranking: Ranking
    found: tuple[int, ...]
    scores: tuple[float, ...]


class MergedRanking:
    """What several searches found, each unit with the best score that any of them gave it (see `Merge`).

    Whatever no search counts as found comes behind, in the order of its best score too, so that a selector that runs
    short can read on.
    """

    def __init__(self, searches: Sequence[Search], merge: Merge = "max_score") -> None:
        self._searches = tuple(searches)
        relative = merge == "relative" and len(self._searches) > 1
        self._scales = [_scale(search) if relative else 1.0 for search in self._searches]
        self._best: dict[int, float] = {}
        self._owner: dict[int, int] = {}
        for number, search in enumerate(self._searches):
            for position, score in zip(search.found, search.scores, strict=True):
                self._note(self._best, number, position, score)
        self._found = list(self._best)
        if merge != "append":  # of equal scores the one that was found first: the order that a reranker gave them stays
            self._found.sort(key=lambda position: -self._best[position])

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
        scaled = score * self._scales[number]
        if position not in best or scaled > best[position]:
            best[position] = scaled
            self._owner[position] = number

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The best score that any search gives each of the positions."""
        pairs = zip(self._searches, self._scales, strict=True)
        scaled = [search.ranking.scores_at(positions) * scale for search, scale in pairs]
        return np.asarray(np.max(scaled, axis=0), dtype=np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """The search that scored a position best, if there were several, and its reasons."""
        if len(self._searches) == 1:
            return self._searches[0].ranking.path(position)
        number = self._owner.get(position, 0)
        search = self._searches[number]
        note = "search for the question" if number == 0 else f"search {number}: {search.query}"
        return (PathStep("reasoning", (), note), *search.ranking.path(position))


def shared_out(searches: Sequence[Search], k: int) -> list[Search]:
    """Cut searches to `k` units in all: the best of each in turn, so that the last search has its share."""
    seen: set[int] = set()
    fresh: list[list[int]] = []
    for search in searches:
        fresh.append([position for position in search.found if position not in seen])
        seen.update(search.found)
    in_turn = [part[rank] for rank in range(max(map(len, fresh), default=0)) for part in fresh if rank < len(part)]
    kept = set(in_turn[:k])
    return [_only(search, kept) for search in searches]


def _only(search: Search, kept: set[int]) -> Search:
    pairs = [pair for pair in zip(search.found, search.scores, strict=True) if pair[0] in kept]
    return replace(search, found=tuple(p for p, _ in pairs), scores=tuple(s for _, s in pairs))


def _sorted(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda position: (-scores[position], position))


def _scale(search: Search) -> float:
    best = max(search.scores, default=0.0)
    return 1.0 / best if best > 0 else 1.0
