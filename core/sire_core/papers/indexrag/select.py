"""`Quota`: bounds on how many units of a kind a context holds (IndexRAG, section 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extend import (
    ConfigurationError,
    PathStep,
    UnitKind,
    WrappedRanking,
    check_settings,
    count_tokens,
    setting,
)

if TYPE_CHECKING:
    from sire_core.extend import FloatArray, IntArray, Ranking, View


@dataclass(frozen=True, slots=True)
class QuotaRange:
    """Number of places of a context a group gets at most."""

    high: int | None = None  # maximum entries; None for no limit, 0 leaves the group out
    max_tokens: int | None = None  # maximum tokens of all its entries together; None for no limit


def choose(
    groups: Sequence[str],
    k: int,
    ranges: Mapping[str, QuotaRange],
    tokens: Callable[[int], int] = lambda _: 0,
) -> list[int]:
    """Take entries of a ranking, best first, as the range of their group allows, until there are `k`."""
    accepted: list[int] = []
    counts: dict[str, int] = {}
    spent: dict[str, int] = {}
    for i, group in enumerate(groups):
        if len(accepted) >= k:
            break
        bounds, count = ranges.get(group, _FREE), counts.get(group, 0)
        if bounds.high is not None and count >= bounds.high:
            continue
        if bounds.max_tokens is not None:
            length = spent.get(group, 0) + tokens(i)
            if length > bounds.max_tokens:
                continue
            spent[group] = length
        accepted.append(i)
        counts[group] = count + 1
    return accepted


_FREE = QuotaRange()


@dataclass(frozen=True, slots=True)
class Quota:
    """Selects the best `k` units such that no kind takes more than its range allows.

    The ranking is read on, each time twice as far, until `k` units are selected or it ends. Units beyond their range
    fill the places that are left then.

    Attributes:
        ranges: Kinds and their ranges; other kinds are unlimited.
        depth: Number of candidates; None for as many as needed. 20 is the paper's setting, with which fewer units than
            requested may be found.
        top_up: Whether to fill empty places from the rest of the ranking: first below `depth` within the quotas, then
            beyond the quotas. The paper does not.
        outside: Kinds that are no candidates; they do not count for `depth` either.
        parts: Kinds whose units are parts of one text: only the best unit of a document is a candidate.
        per_step: Whether the ranges also hold in every step of IRCoT. The paper selects at the answer only (4.2).

    Raises:
        ConfigurationError: A kind is unknown or listed twice, a range is empty, or the depth is below one.
    """

    ranges: tuple[tuple[str, QuotaRange], ...]
    depth: int | None = setting(None, low=1)
    top_up: bool = True
    outside: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    per_step: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        kinds_defined = {kind.value for kind in UnitKind}
        kinds = [kind for kind, _ in self.ranges]
        unknown = [kind for kind in (*kinds, *self.outside, *self.parts) if kind not in kinds_defined]
        if unknown or len(set(kinds)) < len(kinds):
            raise ConfigurationError(
                f"Quotas are for distinct kinds among {', '.join(sorted(kinds_defined))}, not {unknown or kinds}."
            )
        for kind, bounds in self.ranges:
            if min(bounds.high or 0, bounds.max_tokens or 0) < 0:
                raise ConfigurationError(f"The limits of {kind} must be 0 or more, not {bounds}.")

    def for_step(self) -> Quota:
        """Return the selector of a step of IRCoT: kinds have their ranges at the answer only, or none at all."""
        left_out = tuple(pair for pair in self.ranges if pair[1].high == 0)
        return self if self.per_step else replace(self, ranges=left_out)

    async def select(self, query: str, ranking: Ranking, k: int, view: View) -> Ranking:  # noqa: ARG002 - the protocol's
        """Return a ranking whose first `k` are the context."""
        selected = _Selected(self, ranking, k, view)
        await selected.top(k)
        return selected


class _Selected(WrappedRanking):
    """A ranking of the context, then of further candidates, then of units beyond the ranges."""

    def __init__(self, settings: Quota, ranking: Ranking, k: int, view: View) -> None:
        super().__init__(ranking)
        self._settings = settings
        self._ranges = dict(settings.ranges)
        self._view = view
        self._k = k
        self._order: list[int] = []
        self._reached = 0
        self._within = 0
        self._scores: dict[int, float] = {}
        self._lengths: dict[int, int] = {}
        self._notes: dict[int, PathStep] = {}

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """Return the best `n` positions and the ranker's scores."""
        if n > len(self._order):
            await self._extend(n)
        positions = self._order[:n]
        scores = np.array([self._scores[position] for position in positions], dtype=np.float32)
        return np.asarray(positions, dtype=np.int64), scores

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Return the ranker's path, and a step for the quota of the kind."""
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
        """Return at most `n` candidates that the ranges allow, the context first."""
        reach = depth or 2 * max(n, self._k)
        while True:
            positions = await self._read(reach)
            candidates = self._candidates(positions)[:depth]
            order = self._arrange(candidates, n, context)
            if len(order) >= n or len(positions) < reach or len(candidates) == depth:
                return order
            reach *= 2

    def _candidates(self, positions: Sequence[int]) -> list[int]:
        """Filter positions by kind; of the parts of a document keep the first."""
        settings = self._settings
        candidates: dict[int | tuple[str, int], int] = {}
        for position in positions:
            kind = self._kind(position)
            if kind not in settings.outside:
                key = (kind, self._document(position)) if kind in settings.parts else position
                candidates.setdefault(key, position)
        return list(candidates.values())

    def _document(self, position: int) -> int:
        starts, chunks = self._view.chunk_pointers
        return int(self._view.chunk_documents[chunks[starts[position]]])

    async def _read(self, n: int) -> list[int]:
        top, scores = await self._ranking.top(n)
        positions: list[int] = top.tolist()
        self._scores.update(zip(positions, scores.tolist(), strict=True))
        return positions

    def _arrange(self, positions: Sequence[int], n: int, context: Sequence[int]) -> list[int]:
        """Choose the context if there is none yet, then further candidates up to the upper bounds."""
        if not context:
            context = self._choose(positions, self._k)
            if n <= self._k:
                return list(context)
        chosen = set(context)
        rest = [position for position in positions if position not in chosen]
        # The context comes first, so that its entries count for the bounds.
        return self._choose([*context, *rest], n)

    def _choose(self, positions: Sequence[int], k: int) -> list[int]:
        kinds = [self._kind(position) for position in positions]
        return [positions[i] for i in choose(kinds, k, self._ranges, lambda i: self._length(positions[i]))]

    def _kind(self, position: int) -> str:
        return str(self._view.kind_names[self._view.kinds[position]])

    def _length(self, position: int) -> int:
        if position not in self._lengths:
            self._lengths[position] = count_tokens(self._view.units([position])[0].text)
        return self._lengths[position]

    def _explain(self) -> None:
        counts: Counter[str] = Counter()
        for rank, position in enumerate(self._order):
            kind = self._kind(position)
            counts[kind] += 1
            bounds = self._ranges.get(kind)
            if rank >= self._within:
                self._notes[position] = PathStep("top_up", (), "fills a place that the quotas left empty")
            elif rank >= self._reached:
                self._notes[position] = PathStep("below_depth", (), "fills a place that the candidates left empty")
            elif bounds is not None and bounds.high is not None:
                self._notes[position] = PathStep("quota", (), f"{kind} {counts[kind]} of at most {bounds.high}")
