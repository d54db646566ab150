"""`ScoredRanking`: a ranking over scores of the whole pool, sorted only as far as it is read."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sire_core.errors import ModelError, RefusalError
from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, DoubleArray, FloatArray, IntArray, Ranking, Similarities, View


T = TypeVar("T")

_logger = logging.getLogger(__name__)

_STEP = 8
_PARTITION_FACTOR = (
    4 * _STEP
)  # From so many times as many scores as are wanted, one in `_STEP` of them tells which are too low


def best_first(scores: FloatArray, n: int) -> IntArray:
    """Positions of the `n` largest scores, best first, ties by position. `-inf` entries are left out.

    Args:
        scores: `[size]`.
        n: How many; fewer are returned when fewer are finite.
    """
    if n < 1:
        return np.empty(0, dtype=np.int64)
    candidates = _at_least(scores, n)
    values = scores[candidates]
    order = np.argsort(-values, kind="stable")[:n]
    order = order[np.isfinite(values[order])]
    return np.asarray(candidates[order], dtype=np.int64)


def cosine_step(view: View, position: int, cosine: float, before: str = "") -> PathStep:
    """The step of a path that says how similar a unit is to the question."""
    kind, name = view.kind_names[view.kinds[position]], str(view.ids[position].decode())
    return PathStep(f"vector:{kind}", (name,), f"{before}cosine {cosine:.3f} with the question")


def _at_least(scores: FloatArray, n: int) -> IntArray:
    """Positions of everything at or above the n-th largest score, so that ties at the border are broken by position."""
    size = len(scores)
    if n >= size:
        return np.arange(size)
    if size < _PARTITION_FACTOR * n:
        return np.flatnonzero(scores >= np.partition(scores, size - n)[size - n])
    # The n-th largest of some is not above the n-th largest of all: what is below it needs no partition.
    some = scores[::_STEP]
    candidates = np.flatnonzero(scores >= np.partition(some, len(some) - n)[len(some) - n])
    values = scores[candidates]
    return np.asarray(candidates[values >= np.partition(values, len(values) - n)[len(values) - n]], dtype=np.int64)


class ScoredRanking:
    """A ranking over one score per unit.

    Args:
        scores: `[size]`; larger is better.
        allowed: Units that may appear, `[size]`; None for all.
        explain: Steps that lead to a position.
    """

    __slots__ = ("_explain", "_known", "_scores")

    def __init__(
        self, scores: FloatArray, allowed: BoolArray | None, explain: Callable[[int], tuple[PathStep, ...]]
    ) -> None:
        self._scores = scores if allowed is None else np.where(allowed, scores, -np.inf).astype(np.float32)
        self._explain = explain
        self._known: IntArray = np.empty(0, dtype=np.int64)

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        if len(self._known) < n and len(self._known) < len(self._scores):
            self._known = best_first(self._scores, n)
        positions = self._known[:n]
        return positions, self._scores[positions]

    def scores_at(self, positions: IntArray) -> FloatArray:
        """Scores of given positions, whether they are near the top or not."""
        return self._scores[positions]

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a position is where it is."""
        return self._explain(position)


class ReachedRanking:
    """Ranks reached units by their score; all others come behind them by similarity plus `behind`, read on demand.

    `reached` ascends; `allowed` `[size]` has all of them, None allows everything.
    """

    __slots__ = ("_allowed", "_behind", "_explain", "_reached", "_scores", "_similarities", "_whole")

    def __init__(
        self,
        reached: IntArray,
        scores: FloatArray,
        similarities: Similarities,
        behind: float,
        allowed: BoolArray | None,
        explain: Callable[[int], tuple[PathStep, ...]],
    ) -> None:
        self._reached = reached
        self._scores = scores
        self._similarities = similarities
        self._behind = np.float32(behind)
        self._allowed = allowed
        self._explain = explain
        self._whole: ScoredRanking | None = None

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        if n <= len(self._reached):
            order = best_first(self._scores, n)
            return self._reached[order], self._scores[order]
        if self._whole is None:
            scores = self._similarities.all() + self._behind
            scores[self._reached] = self._scores
            self._whole = ScoredRanking(scores, self._allowed, self._explain)
        return await self._whole.top(n)

    def scores_at(self, positions: IntArray) -> FloatArray:
        """Scores of given positions, whether they are near the top or not."""
        scores = self._similarities.at(positions) + self._behind
        rows = np.minimum(np.searchsorted(self._reached, positions), max(0, len(self._reached) - 1))
        if len(self._reached):
            is_reached = self._reached[rows] == positions
            scores[is_reached] = self._scores[rows[is_reached]]
        return (
            scores if self._allowed is None else np.where(self._allowed[positions], scores, -np.inf).astype(np.float32)
        )

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a position is where it is."""
        return self._explain(position)


class LiftedRanking:
    """A ranking by similarity that lifts some units; similarities are read as far as they matter."""

    __slots__ = ("_explain", "_lifted", "_lifts", "_similarities", "_weight")

    def __init__(
        self,
        similarities: Similarities,
        explain: Callable[[int], tuple[PathStep, ...]],
        weight: float = 1.0,
        lifted: IntArray | None = None,
        lifts: DoubleArray | None = None,
    ) -> None:
        self._similarities = similarities
        self._weight = weight
        self._lifted = np.empty(0, dtype=np.int64) if lifted is None else lifted
        self._lifts = np.append(np.zeros(0) if lifts is None else lifts, 0.0)
        self._explain = explain

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        # A unit that nothing lifts stands behind all that are more similar: it is among the first of these or of none.
        near, similar = self._similarities.best(n)
        if not len(self._lifted):
            return near, self._scores(near, similar)
        near, first = np.unique(near, return_index=True)
        others = np.isin(near, self._lifted, invert=True)
        positions = np.concatenate([self._lifted, near[others]])
        similarities = np.concatenate([self._similarities.at(self._lifted), similar[first[others]]])
        order = np.argsort(positions)
        scores = self._scores(positions[order], similarities[order])
        best = best_first(scores, n)
        return positions[order][best], scores[best]

    def scores_at(self, positions: IntArray) -> FloatArray:
        """Scores of given positions, whether they are near the top or not."""
        return self._scores(positions, self._similarities.at(positions))

    def _scores(self, positions: IntArray, similar: FloatArray) -> FloatArray:
        rows = np.searchsorted(self._lifted, positions)
        lifts = np.where(np.append(self._lifted, -1)[rows] == positions, self._lifts[rows], 0.0)
        return np.asarray(lifts + self._weight * similar, dtype=np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a position is where it is."""
        return self._explain(position)


class WrappedRanking:
    """A ranking over another one, whose order, scores and steps it has; a subclass changes some of them.

    Args:
        ranking: The other one.
    """

    __slots__ = ("_ranking",)

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        return await self._ranking.top(n)

    def scores_at(self, positions: IntArray) -> FloatArray:
        """Scores of given positions."""
        return self._ranking.scores_at(positions)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a position is where it is."""
        return self._ranking.path(position)


class NotedRanking(WrappedRanking):
    """A ranking every path of which ends with one more step, such as that a model failed.

    Args:
        ranking: The order and the scores.
        step: What is said of every position.
    """

    __slots__ = ("_step",)

    def __init__(self, ranking: Ranking, step: PathStep) -> None:
        super().__init__(ranking)
        self._step = step

    def path(self, position: int) -> tuple[PathStep, ...]:
        """The ranking's own steps, and the one more."""
        return (*self._ranking.path(position), self._step)


class PathsLater(WrappedRanking):
    """A ranking whose hits get their steps later: most passages that a context is chosen from are not quoted."""

    __slots__ = ()

    def path(self, position: int) -> tuple[PathStep, ...]:  # noqa: ARG002 - later
        """No steps."""
        return ()


def with_failure(ranking: Ranking, step: str, instead: str, failure: str) -> Ranking:
    """Note in every path that a model failed and what was done instead; without a failure, return the ranking as it is.

    Args:
        ranking: The order and the scores.
        step: Name of the step.
        instead: What was done without the model's answer.
        failure: Why the model failed; empty if it did not.
    """
    return NotedRanking(ranking, PathStep(step, (), f"{instead}, the model failed: {failure}")) if failure else ranking


async def answer_or_reason(call: Awaitable[T], otherwise: str) -> tuple[T | None, str]:
    """A model's answer about a question; a failed call does not fail the search.

    Args:
        call: Asks the model.
        otherwise: What happens without the answer, for the warning.

    Returns:
        The answer, and nothing; or None and why there is none. A model that declines has nothing to say, and no fault.

    Raises:
        LimitExceededError: A usage limit was reached.
    """
    try:
        return await call, ""
    except RefusalError:
        return None, ""
    except ModelError as error:
        _logger.warning("A model failed while a question was ranked (%s): %s.", error, otherwise)
        return None, str(error)
