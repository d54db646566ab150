"""Rankers made of rankers: `Hybrid` fuses several, `ExcludeKinds` leaves units out, `Instructed` asks for more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.rankers.lexical import Lexical
from sire_core.search.ranking import ScoredRanking, WrappedRanking
from sire_core.search.vectors.flat import Flat
from sire_core.settings import check_settings, setting

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, FloatArray, IntArray, Ranker, Ranking, View
    from sire_core.types import PathStep


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Fuses rankings: a unit's score is the sum of 1 / (constant + rank) over the rankers that list it.

    A score of 0 says nothing and is not counted. Units that no ranker has among its first `depth` come behind all
    others, so that the order does not depend on how many are asked for.

    Attributes:
        rankers: What is fused.
        constant: Damps the first ranks; 60 in the original paper of the method.
        depth: How far down each ranking counts.
    """

    rankers: tuple[Ranker, ...] = (Flat(), Lexical())
    constant: float = setting(60.0, low=0.0)
    depth: int = setting(50, low=1)

    def __post_init__(self) -> None:
        check_settings(self)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter."""
        reach = max(self.depth, n)
        rankings = [await ranker.rank(query, reach, view, where) for ranker in self.rankers]
        ranking = _Fused(rankings, view.allowed(where), view.size, self)
        await ranking.top(n)
        return ranking


class _Fused:
    """Reads the rankings as far as `depth`, and to their ends once more is wanted than they list so far."""

    def __init__(self, rankings: Sequence[Ranking], allowed: BoolArray | None, size: int, settings: Hybrid) -> None:
        self._rankings = rankings
        self._allowed = allowed
        self._size = size
        self._settings = settings
        self._reach = 0
        self._listed = 0
        self._fused = self._scored(np.zeros(size, dtype=np.float32))

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        for reach in (self._settings.depth, self._size):
            if self._listed < n and self._reach < reach:
                self._reach = reach
                scores = await self._fuse(reach)
                self._listed = int(np.count_nonzero(scores))
                self._fused = self._scored(scores)
        return await self._fused.top(n)

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The rankings' orders of just these positions, fused: the same however far the rankings were read."""
        fused = np.zeros(len(positions), dtype=np.float32)
        for ranking in self._rankings:
            scores = ranking.scores_at(positions)
            order = np.argsort(-scores, kind="stable")
            fused[order] += self._parts(scores[order])
        return fused if self._allowed is None else np.where(self._allowed[positions], fused, -np.inf).astype(np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:
        return tuple(step for ranking in self._rankings for step in ranking.path(position))

    def _scored(self, scores: FloatArray) -> ScoredRanking:
        return ScoredRanking(scores, self._allowed, self.path)

    async def _fuse(self, reach: int) -> FloatArray:
        depth = self._settings.depth
        head = np.zeros(self._size, dtype=np.float32)
        tail = np.zeros(self._size, dtype=np.float32)
        for ranking in self._rankings:
            positions, scores = await ranking.top(reach)
            parts = self._parts(scores)
            head[positions[:depth]] += parts[:depth]
            tail[positions[depth:]] += parts[depth:]
        # Scaled down, the sum of all tails stays below the least that a single listing gives.
        return np.where(head > 0, head, tail / (2 * max(1, len(self._rankings))))

    def _parts(self, scores: FloatArray) -> FloatArray:
        """Worth of each place of a ranking; among scores of 0 the place is only corpus order."""
        worth = 1.0 / (self._settings.constant + 1.0 + np.arange(len(scores)))
        return np.where(scores == 0, 0.0, worth).astype(np.float32)


@dataclass(frozen=True, slots=True)
class ExcludeKinds:
    """Leaves kinds out of a ranking, so that they take no ranks when it is fused with others."""

    ranker: Ranker
    kinds: tuple[str, ...]

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter and are of other kinds."""
        kept = ~np.isin(view.kinds, [code for code, kind in enumerate(view.kind_names) if kind in self.kinds])
        return _Stripped(await self.ranker.rank(query, n, view, where), kept)


class _Stripped(WrappedRanking):
    """Reads the ranking as far as it takes."""

    __slots__ = ("_kept",)

    def __init__(self, ranking: Ranking, kept: BoolArray) -> None:
        super().__init__(ranking)
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


@dataclass(frozen=True, slots=True)
class Instructed:
    """Ranks for the question with a text appended, as SiReRAG's released notebooks do with any retriever."""

    ranker: Ranker
    instruction: str

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter."""
        return await self.ranker.rank(f"{query} {self.instruction}", n, view, where)
