"""`Hybrid`: reciprocal rank fusion of several rankers over the same pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.flat import Flat
from sire_core.search.lexical import Lexical
from sire_core.search.ranking import ScoredRanking

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import Ranker, Ranking, View
    from sire_core.types import Step

__all__ = ["Hybrid"]


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Fuses rankings: a unit's score is the sum of 1 / (constant + rank) over the rankers that list it.

    Attributes:
        rankers: What is fused.
        constant: Damps the first ranks; 60 in the original paper of the method.
        depth: How far down each ranking is read.
    """

    rankers: tuple[Ranker, ...] = (Flat(), Lexical())
    constant: float = 60.0
    depth: int = 50

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter."""
        depth = max(self.depth, n)
        rankings = [await ranker.rank(query, depth, view, where) for ranker in self.rankers]
        fused = np.zeros(view.size, dtype=np.float32)
        for ranking in rankings:
            positions, _ = await ranking.top(depth)
            fused[positions] += (1.0 / (self.constant + 1.0 + np.arange(len(positions)))).astype(np.float32)

        def explain(position: int) -> tuple[Step, ...]:
            return tuple(step for ranking in rankings for step in ranking.path(position))

        return ScoredRanking(fused, view.allowed(where), explain)
