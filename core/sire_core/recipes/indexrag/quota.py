"""`Quota`: bounds on how many units of a kind a context holds (IndexRAG section 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.algorithms.text import count_tokens
from sire_core.errors import ConfigurationError
from sire_core.recipes.indexrag.quotas import Band, choose
from sire_core.settings import check_settings, setting
from sire_core.types import PathStep, UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, Ranking, View

__all__ = ["Band", "Quota"]


@dataclass(frozen=True, slots=True)
class Quota:
    """Selects the best `k` units such that no kind takes more, or less, than its band allows.

    The ranking is read further, each time twice as far, until `k` units are selected or it has no more. What is shut
    out fills the places that are left then, behind everything else.

    Attributes:
        bands: Kinds and their bands; kinds that are not listed are unbounded.
        depth: Number of candidates; None for as many as needed. 20 is the paper's setting, with which fewer units than
            requested may be found.
        top_up: Whether to fill empty places from the rest of the ranking: first below `depth` within the quotas, then
            beyond the quotas. The paper does not.
        outside: Kinds that are no candidates; they take no part in `depth` either.
        parts: Kinds of which the units of one document are parts of one text: they are one candidate, the best of them.

    Raises:
        ConfigurationError: A kind is unknown or listed twice, a band is empty, or the depth is below one.
    """

    bands: tuple[tuple[str, Band], ...]
    depth: int | None = setting(None, low=1)
    top_up: bool = True
    outside: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_settings(self)
        known = {kind.value for kind in UnitKind}
        kinds = [kind for kind, _ in self.bands]
        unknown = [kind for kind in (*kinds, *self.outside, *self.parts) if kind not in known]
        if unknown or len(set(kinds)) < len(kinds):
            raise ConfigurationError(
                f"Quotas are for distinct kinds among {', '.join(sorted(known))}, not {unknown or kinds}."
            )
        for kind, band in self.bands:
            bounds = [bound for bound in (band.high, band.max_tokens) if bound is not None]
            if band.low < 0 or min(bounds, default=0) < 0 or (band.high is not None and band.high < band.low):
                raise ConfigurationError(
                    f"The band of {kind} must fit 0 <= low <= high and max_tokens >= 0, not {band}."
                )

    async def select(self, query: str, ranking: Ranking, k: int, view: View) -> Ranking:  # noqa: ARG002 - the protocol's
        """Return a ranking whose first `k` are the context."""
        selected = _Selected(self, ranking, k, view)
        await selected.top(k)
        return selected


class _Selected:
    """The context, then what would have come next, then what the bands shut out."""

    def __init__(self, settings: Quota, ranking: Ranking, k: int, view: View) -> None:
        self._settings = settings
        self._bands = dict(settings.bands)
        self._ranking = ranking
        self._view = view
        self._k = k
        self._order: list[int] = []
        self._reached = 0
        self._within = 0
        self._scores: dict[int, float] = {}
        self._lengths: dict[int, int] = {}
        self._notes: dict[int, PathStep] = {}

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and the ranker's scores."""
        if n > len(self._order):
            await self._extend(n)
        import numpy as np  # recipes name selectors, and importing them must stay cheap

        found = self._order[:n]
        scores = np.array([self._scores[position] for position in found], dtype=np.float32)
        return np.asarray(found, dtype=np.int64), scores

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The ranker's scores."""
        return self._ranking.scores_at(positions)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why the ranker chose a position, and which place of its kind's quota it took."""
        note = self._notes.get(position)
        steps = self._ranking.path(position)
        return (*steps, note) if note else steps

    async def _extend(self, n: int) -> None:
        depth = self._settings.depth
        order = await self._allowed(n, depth)
        self._within = self._reached = len(order)
        if len(order) < n and self._settings.top_up:
            if depth is not None:
                order = await self._allowed(n, None, order)
                self._within = len(order)
            ranked = await self._read(n + len(order))
            chosen = set(order)
            order = [*order, *(position for position in ranked if position not in chosen)]
        self._order = order
        self._explain()

    async def _allowed(self, n: int, depth: int | None, context: Sequence[int] = ()) -> list[int]:
        """At most `n` candidates that the bands allow, the context first."""
        reach = depth or 2 * max(n, self._k)
        while True:
            positions = await self._read(reach)
            candidates = self._candidates(positions)[:depth]
            order = self._arrange(candidates, n, context)
            if len(order) >= n or len(positions) < reach or len(candidates) == depth:
                return order
            reach *= 2

    def _candidates(self, positions: Sequence[int]) -> list[int]:
        """Positions of the kinds that count, and of a document's parts only the first."""
        settings = self._settings
        found: dict[int | tuple[str, int], int] = {}
        for position in positions:
            kind = self._kind(position)
            if kind not in settings.outside:
                found.setdefault((kind, self._document(position)) if kind in settings.parts else position, position)
        return list(found.values())

    def _document(self, position: int) -> int:
        starts, chunks = self._view.chunk_pointers
        return int(self._view.chunk_documents[chunks[starts[position]]])

    async def _read(self, n: int) -> list[int]:
        positions, scores = await self._ranking.top(n)
        found: list[int] = positions.tolist()
        self._scores.update(zip(found, scores.tolist(), strict=True))
        return found

    def _arrange(self, positions: Sequence[int], n: int, context: Sequence[int]) -> list[int]:
        """The context, chosen where there is none yet, and behind it what the upper bounds allow."""
        if not context:
            context = self._choose(positions, self._k, self._bands)
            if n <= self._k:
                return list(context)
        chosen = set(context)
        rest = [position for position in positions if position not in chosen]
        upper = {kind: Band(0, band.high, band.max_tokens) for kind, band in self._bands.items()}
        # The context's own entries stand in front and so use up their share of the bounds.
        return self._choose([*context, *rest], n, upper)

    def _choose(self, positions: Sequence[int], k: int, bands: dict[str, Band]) -> list[int]:
        kinds = [self._kind(position) for position in positions]
        return [positions[i] for i in choose(kinds, k, bands, lambda i: self._length(positions[i]))]

    def _kind(self, position: int) -> str:
        return str(self._view.kind_names[self._view.kinds[position]])

    def _length(self, position: int) -> int:
        if position not in self._lengths:
            self._lengths[position] = count_tokens(self._view.units([position])[0].text)
        return self._lengths[position]

    def _explain(self) -> None:
        counts: Counter[str] = Counter()
        for place, position in enumerate(self._order):
            kind = self._kind(position)
            counts[kind] += 1
            band = self._bands.get(kind)
            if place >= self._within:
                self._notes[position] = PathStep("top_up", (), "fills a place that the quotas left empty")
            elif place >= self._reached:
                self._notes[position] = PathStep("below_depth", (), "fills a place that the candidates left empty")
            elif band is not None and band.high is not None:
                self._notes[position] = PathStep("quota", (), f"{kind} {counts[kind]} of at most {band.high}")
