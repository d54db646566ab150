"""`ScoreRanker`: a ranker as one function of the units that a filter leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.ranking import ScoredRanking
from sire_core.types import PathStep, Unit

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, IntArray, Ranking, View


@dataclass(frozen=True, slots=True)
class VisibleUnits:
    """The units that the filter of a search lets pass; nothing here comes from others."""

    view: View  # the whole pool: use `positions` with it
    positions: IntArray  # of the units in the pool, ascending, int64 `[n]`
    cosines: FloatArray  # of the units with the question, float32 `[n]`

    def units(self) -> Sequence[Unit]:
        """The units, read from the store."""
        return self.view.units(self.positions)


class ScoreRanker:
    """Ranks by `scores`, which a subclass defines; filters, threads and paths are taken care of.

    A subclass is a frozen dataclass whose fields are its settings.
    """

    __slots__ = ()

    def scores(self, query: str, visible: VisibleUnits) -> FloatArray:
        """Score every visible unit for a question, `[n]`, finite, larger is better."""
        raise NotImplementedError

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter."""
        allowed = view.allowed(where)
        cosines = await view.cosines(query, await view.embed_query(query), where)
        positions = np.arange(view.size) if allowed is None else np.flatnonzero(allowed)
        scores = np.full(view.size, -np.inf, dtype=np.float32)
        if len(positions):
            visible = VisibleUnits(view, positions, cosines[positions])
            scores[positions] = await asyncio.to_thread(self.scores, query, visible)

        def path(position: int) -> tuple[PathStep, ...]:
            note = f"score {scores[position]:.3f}, cosine {cosines[position]:.3f} with the question"
            return (PathStep("score", (view.ids[position].decode(),), note),)

        return ScoredRanking(scores, allowed, path)
