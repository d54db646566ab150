"""`FromSource`: a ranking that comes from the user's own vector store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.types import Step

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, FloatArray, IntArray, RankedSource, Ranking, View

__all__ = ["FromSource"]

_EXTRA = 8
"""Read this many more than asked for: the store may still hold units that are gone."""


@dataclass(frozen=True, slots=True)
class FromSource:
    """Ranks the pool in the order of a `RankedSource`: any recipe's pool in any vector store.

    Put it in the place of a recipe's ranker, `replace(recipe, ranker=FromSource(source))`; selectors, citations and
    filters stay ours. Units that the store still holds but the index no longer does, and units that do not pass the
    filter, are passed over, and the store is asked for more.

    Attributes:
        source: The user's store, filled with the units of the pool.
    """

    source: RankedSource

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter."""
        places: Mapping[str, int] = view.derived("positions", lambda: _positions(view))
        ranking = _SourceRanking(self.source, query, where, places, view.allowed(where))
        await ranking.top(n)
        return ranking


class _SourceRanking:
    """As much of the store's order as was read so far."""

    def __init__(
        self,
        source: RankedSource,
        query: str,
        where: Filter | None,
        places: Mapping[str, int],
        allowed: BoolArray | None,
    ) -> None:
        self._source = source
        self._query = query
        self._where = where
        self._places = places
        self._allowed = allowed
        self._scores: dict[int, float] = {}  # by position, best first
        self._asked = 0
        self._exhausted = False

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores; asks the store for more until there are enough or no more."""
        while len(self._scores) < n and not self._exhausted:
            self._asked = max(n + _EXTRA, 2 * self._asked)
            found = await self._source.rank(self._query, self._asked, self._where)
            self._exhausted = len(found) < self._asked
            for unit, score in found:
                position = self._places.get(unit)
                if position is not None and (self._allowed is None or self._allowed[position]):
                    self._scores.setdefault(position, float(score))
        positions = np.array(list(self._scores)[:n], dtype=np.int64)
        return positions, self.scores_at(positions)

    def scores_at(self, positions: IntArray) -> FloatArray:
        """Scores of given positions; `-inf` for what the store was not asked for so far."""
        return np.array([self._scores.get(int(at), -np.inf) for at in positions], dtype=np.float32)

    def path(self, position: int) -> tuple[Step, ...]:
        """What the store says of a position."""
        if position not in self._scores:
            return ()
        place = list(self._scores).index(position) + 1
        return (Step("store", (), f"number {place} in the vector store, score {self._scores[position]:.3f}"),)


def _positions(view: View) -> dict[str, int]:
    return {unit.decode(): position for position, unit in enumerate(view.ids.tolist())}
