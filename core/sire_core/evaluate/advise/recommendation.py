"""`recommend`: which of the measured recipes is worth its costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FEW", "POINTS", "Candidate", "Measure", "recommend"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recipe that may be recommended.

    Attributes:
        recipe: Its name.
        calls: What a language model would be asked per 1,000 passages, if one builds it.
        settings: Names and values of settings that differ from its defaults.
        shown_only: It is measured and never recommended: questions made of a text's own words favour words alone more
            than people's questions do.
    """

    recipe: str
    calls: str
    settings: tuple[tuple[str, Any], ...] = ()
    shown_only: bool = False

    @property
    def name(self) -> str:
        """As `sire` takes it."""
        return " ".join([self.recipe, *(f"--set {key}={value}" for key, value in self.settings)])


POINTS = 2.0
"""Points of recall within which recipes count as equally good: questions of our own are not those of people."""

FEW = 20
"""Questions below which their shares say nothing."""

_RESAMPLED = 1000


@dataclass(frozen=True, slots=True)
class Measure:
    """What a recipe found.

    Attributes:
        candidate: The recipe.
        recall: Mean share of the two passages among the first k, 0 to 100.
        both: Share of the questions with both, 0 to 100.
        units: Size of its pool.
        build_s: CPU seconds of deriving what it needs; extraction and embedding count where they are needed first.
        query_ms: Milliseconds of a search, the mean.
        shares: Per question.
    """

    candidate: Candidate
    recall: float
    both: float
    units: int
    build_s: float
    query_ms: float
    shares: tuple[float, ...]


def recommend(measures: Sequence[Measure], seed: int = 0) -> Measure:
    """The first candidate that no other one beats by more than chance and a few points.

    Args:
        measures: On the same questions, in the order in which their candidates are preferred.
        seed: Of the resamples.
    """
    rng = np.random.default_rng(seed)
    eligible = [found for found in measures if not found.candidate.shown_only]
    if eligible and len(eligible[0].shares) < FEW:  # resamples of so few agree with one another, and say nothing
        return eligible[0]
    best = max(eligible, key=lambda m: m.recall)
    return next((found for found in eligible if not any(_beats(other, found, rng) for other in eligible)), best)


def _beats(one: Measure, other: Measure, rng: np.random.Generator) -> bool:
    """Whether one finds more on nearly all resamples of the questions, by points that count."""
    if one.recall - other.recall <= POINTS:
        return False
    differences = 100 * (np.array(one.shares) - np.array(other.shares))
    chosen = rng.integers(len(differences), size=(_RESAMPLED, len(differences)))
    return bool(np.quantile(differences[chosen].mean(axis=1), 0.025) > 0)
