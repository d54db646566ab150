"""Comparisons of rows: confidence intervals, spread over builds, rows with equal results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.evaluate.rows import EvalRow

if TYPE_CHECKING:
    from numpy.typing import NDArray


def mark_same(rows: Iterable[EvalRow]) -> list[EvalRow]:
    """Rows of one recipe with other settings that found exactly what an earlier one found, marked with its name."""
    marked: list[EvalRow] = []
    for row in rows:
        same = (old for old in marked if not old.same_as and _is_same(old, row))
        first = next(same, None)
        marked.append(row if first is None else replace(row, same_as=first.setup.recipe))
    return marked


def tper(seconds: float, base_seconds: float, units: int, base_units: int) -> float:
    """Time-pool efficiency ratio (SiReRAG section 5): growth of the time per query over growth of the pool."""
    if min(base_seconds, units, base_units) <= 0:
        raise ConfigurationError("tper needs a positive base time and positive pool sizes")
    return (seconds / base_seconds) / (units / base_units)


def with_tper(rows: Iterable[EvalRow]) -> list[EvalRow]:
    """Rows with TPER beside their TPQ: time per query and unit of the pool, over that of RAPTOR (SiReRAG section 5.3).

    Rows stay as they are where RAPTOR is not among them, or questions were not timed.
    """
    result = list(rows)
    base = next((row for row in result if row.setup.family == "raptor" and row.answers.get("TPQ")), None)
    if base is None:
        return result
    for number, row in enumerate(result):
        if row.answers.get("TPQ") and row.setup.pool:
            ratio = tper(row.answers["TPQ"], base.answers["TPQ"], row.setup.pool, base.setup.pool)
            result[number] = replace(row, answers={**row.answers, "TPER": round(ratio, 3)})
    return result


def _is_same(old: EvalRow, row: EvalRow) -> bool:
    """True if two rows of one family stand on the same pool and found, answered and built the same."""
    return (
        (old.setup.family or old.setup.recipe) == (row.setup.family or row.setup.recipe)
        and old.setup.pool == row.setup.pool
        and old.setup.perspectives == row.setup.perspectives
        and _untimed(old.answers) == _untimed(row.answers)
        and old.evidence_match == row.evidence_match
        and [result.found for result in old.results] == [result.found for result in row.results]
    )


def _untimed(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answers.items() if name not in ("TPQ", "TPER")}


def with_spread(runs: Sequence[Sequence[EvalRow]]) -> list[EvalRow]:
    """The rows of the first run, each with those of all runs; see `EvalRow.repeats`."""
    groups = ([row for row in rows if row is not None] for rows in zip_longest(*runs))
    return [replace(rows[0], builds=tuple(rows)) for rows in groups]


BASELINE = "hybrid"
"""The row that others are compared with: what most people would use otherwise."""

_K = 5  # Hits whose recall rows are compared by
_SAMPLES_PER_BATCH = 500


@dataclass(frozen=True, slots=True)
class Interval:
    """A difference in points (0..100) and its 95 % confidence interval."""

    difference: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """True if zero lies outside the interval."""
        return self.low > 0.0 or self.high < 0.0

    def as_json(self) -> dict[str, Any]:
        """Points, rounded to one decimal; significance is that of the unrounded interval."""
        return {**{name: round(value, 1) for name, value in asdict(self).items()}, "significant": self.significant}


def paired_bootstrap(row: EvalRow, other: EvalRow, measure: str = "R@5") -> Interval:
    """Compare a measure of two rows over the same questions."""
    return interval_of(paired_differences(row, other, measure))


def paired_differences(row: EvalRow, other: EvalRow, measure: str) -> NDArray[np.float64]:
    """Differences of a measure in points, by question, `[questions]`.

    Raises:
        ConfigurationError: The rows have other questions, or none.
    """
    ours, theirs = row.per_question(measure), other.per_question(measure)
    if not ours or ours.keys() != theirs.keys():
        raise ConfigurationError(
            f"{row.setup.recipe} and {other.setup.recipe} cannot be compared by {measure}: they have {len(ours)} and "
            f"{len(theirs)} questions with it, {len(ours.keys() & theirs.keys())} in common. Evaluate both with the "
            "same data set, limit and seed."
        )
    return np.array([100.0 * (ours[name] - theirs[name]) for name in ours])


def mean_interval(rates: Sequence[float], *, samples: int = 10_000) -> Interval:
    """A mean of rates (0..1) in points, and its 95 % interval over the questions."""
    if not rates:
        raise ConfigurationError("An interval needs at least one question.")
    return interval_of(100.0 * np.array(rates), samples)


def with_intervals(rows: Sequence[EvalRow]) -> list[EvalRow]:
    """Rows with what `EvalRow.interval` holds: the difference of R@5 to the row `BASELINE`, where there is one."""
    base = next((row for row in rows if row.setup.recipe == BASELINE), None)
    if base is None or not base.with_gold:
        return list(rows)
    question_ids = {result.id for result in base.with_gold}
    return [
        row
        if row is base or {result.id for result in row.with_gold} != question_ids
        else replace(row, interval={"baseline": BASELINE, "k": _K, **paired_bootstrap(row, base, f"R@{_K}").as_json()})
        for row in rows
    ]


def interval_of(values: NDArray[np.float64], samples: int = 10_000, seed: int = 0) -> Interval:
    """The mean of values and the 2.5 % and 97.5 % quantiles of the means of draws with replacement."""
    rng = np.random.default_rng(seed)
    n = len(values)
    # In batches: 10,000 draws of 1,000 questions at once would be 80 MB.
    sizes = [min(_SAMPLES_PER_BATCH, samples - start) for start in range(0, samples, _SAMPLES_PER_BATCH)]
    means = np.concatenate([values[rng.integers(n, size=(size, n))].mean(axis=1) for size in sizes])
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(values.mean()), float(low), float(high))
