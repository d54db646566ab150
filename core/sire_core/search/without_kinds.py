"""`WithoutKinds`: any ranker, as if some kinds of units were not in the pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, FloatArray, IntArray, Ranker, Ranking, View
    from sire_core.types import Step

__all__ = ["WithoutKinds"]


@dataclass(frozen=True, slots=True)
class WithoutKinds:
    """Leaves kinds out of a ranking, so that they take no ranks when it is fused with others.

    Attributes:
        ranker: Who ranks.
        kinds: What is left out.
    """

    ranker: Ranker
    kinds: tuple[str, ...]

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter and are of other kinds."""
        names = list(view.kind_names)
        kept = ~np.isin(view.kinds, [names.index(kind) for kind in self.kinds])
        return _Stripped(await self.ranker.rank(query, n, view, where), kept)


class _Stripped:
    """Reads the ranking as far as it takes."""

    __slots__ = ("_kept", "_ranking")

    def __init__(self, ranking: Ranking, kept: BoolArray) -> None:
        self._ranking = ranking
        self._kept = kept

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions of other kinds and their scores."""
        reach = max(1, n)
        while True:
            positions, scores = await self._ranking.top(reach)
            keep = self._kept[positions]
            if np.count_nonzero(keep) >= n or len(positions) < reach:
                return positions[keep][:n], scores[keep][:n]
            reach *= 2

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The ranker's scores."""
        return self._ranking.scores_at(positions)

    def path(self, position: int) -> tuple[Step, ...]:
        """The ranker's reasons."""
        return self._ranking.path(position)
