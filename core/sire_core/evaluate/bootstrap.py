"""Comparisons of rows: intervals, tests of chance, spread over builds, rows with equal results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.evaluate.rows import BASELINES, EvalRow

if TYPE_CHECKING:
    from sire_core.protocols import DoubleArray


def mark_same(rows: Iterable[EvalRow]) -> list[EvalRow]:
    """Rows of one recipe with other settings that found exactly what an earlier one found, marked with its name."""
    marked: list[EvalRow] = []
    for row in rows:
        same = (old for old in marked if not old.same_as and _is_same(old, row))
        first = next(same, None)
        marked.append(row if first is None else replace(row, same_as=first.setup.recipe))
    return marked


def with_dense_notes(rows: Sequence[EvalRow]) -> list[EvalRow]:
    """Rows with a note where a recipe ranks exactly as the row `dense`, as it does when a model returns nothing."""
    base = next((row for row in rows if row.setup.recipe == "dense"), None)
    if base is None:
        return list(rows)
    return [replace(row, setup=row.setup.with_note(_dense_note(row, base))) for row in rows]


def _dense_note(row: EvalRow, base: EvalRow) -> str:
    if (row.setup.family or row.setup.recipe) in ("flat", *BASELINES) or _rankings(row) != _rankings(base):
        return ""
    is_empty = row.setup.pool == base.setup.pool and row.setup.extraction != base.setup.extraction
    return "every ranking is that of dense" + (": the extraction gave no units to rank by" if is_empty else "")


def _rankings(row: EvalRow) -> list[tuple[str | None, ...]]:
    return [result.passages for result in row.results]


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


BASELINE = "hybrid"  # The row that others are compared with: what most people would use otherwise

SIGNIFICANCE = 0.05
_FLIPS, _BATCH = 10_000, 500
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


def paired_bootstrap(row: EvalRow, other: EvalRow, measure: str = "R@5", other_measure: str = "") -> Interval:
    """Compare a measure of two rows over the same questions; of the other row perhaps one with another name."""
    return interval_of(paired_differences(row, other, measure, other_measure))


def paired_differences(row: EvalRow, other: EvalRow, measure: str, other_measure: str = "") -> DoubleArray:
    """Differences of a measure in points, by question, `[questions]`.

    Raises:
        ConfigurationError: The rows have other questions, or none.
    """
    ours, theirs = row.per_question(measure), other.per_question(other_measure or measure)
    if not ours and not theirs:
        raise ConfigurationError(
            f"{row.label} and {other.label} have no question with {measure}: tokens@N and context@N need budgets= and "
            "quotes or answers, EM, F1 and Acc need answers of a model, other measures gold."
        )
    if not ours or ours.keys() != theirs.keys():
        raise ConfigurationError(
            f"{row.label} and {other.label} cannot be compared by {measure}: they have {len(ours)} and "
            f"{len(theirs)} questions with it, {len(ours.keys() & theirs.keys())} in common. Evaluate both with the "
            "same data set, limit and seed."
        )
    return np.array([100.0 * (ours[name] - theirs[name]) for name in ours])


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference of one row from another, over the questions of both.

    Attributes:
        first: Name of the row that is compared.
        second: Name of the row that it is compared with.
        measure: What is compared, such as `nDCG@10`.
        difference: Mean of the first minus mean of the second, in points (0 to 100).
        low: Lower end of its 95 % interval (paired bootstrap).
        high: Upper end.
        p: Probability of a difference as large by chance (paired randomisation test, 10,000 sign flips).
        p_corrected: The same for all comparisons of the list together (Holm).
    """

    first: str
    second: str
    measure: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float

    def __str__(self) -> str:
        """The difference, its interval, and the corrected probability."""
        shown = (
            f"{self.difference:+.1f} [{self.low:.1f}, {self.high:.1f}] of {self.measure}, "
            f"p = {self.p_corrected:.3f} (corrected, Holm)"
        )
        return f"{self.first} against {self.second}: {shown}"

    @property
    def significant(self) -> bool:
        """True if the corrected probability is below 5 %."""
        return self.p_corrected < SIGNIFICANCE

    def as_json(self) -> dict[str, Any]:
        """Points, rounded to one decimal, and the corrected probability."""
        points = {name: round(getattr(self, name), 1) for name in ("difference", "low", "high")}
        return {**points, "p": round(self.p_corrected, 4), "significant": self.significant}


def compare_rows(pairs: Sequence[tuple[EvalRow, EvalRow]], measure: str) -> list[Comparison]:
    """Compare pairs of rows; probabilities are corrected for the number of pairs."""
    differences = [paired_differences(one, other, measure) for one, other in pairs]
    p_values = list(map(randomization_p, differences))
    intervals = map(interval_of, differences)
    return [
        Comparison(one.label, other.label, measure, i.difference, i.low, i.high, p, corrected)
        for (one, other), i, p, corrected in zip(pairs, intervals, p_values, holm(p_values), strict=True)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the number of tests (Holm 1979): no error among all of them, at the level of each."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, number in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[number]))
        corrected[number] = highest
    return corrected


def randomization_p(differences: DoubleArray, seed: int = 0) -> float:
    """Share of random signs of paired differences, `[n]`, with a mean as far from 0 as theirs; at least 1 / 10,001."""
    rng = np.random.default_rng(seed)
    seen, extreme = abs(differences.sum()) - 1e-12, 1
    for start in range(0, _FLIPS, _BATCH):
        signs = rng.integers(0, 2, size=(min(_BATCH, _FLIPS - start), len(differences))) * 2 - 1
        extreme += int((np.abs(signs @ differences) >= seen).sum())
    return extreme / (_FLIPS + 1)


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
    others = [row for row in rows if row is not base and {result.id for result in row.with_gold} == question_ids]
    compared = dict(zip(map(id, others), compare_rows([(row, base) for row in others], f"R@{_K}"), strict=True))
    return [
        replace(row, interval={"baseline": BASELINE, "k": _K, **compared[id(row)].as_json()})
        if id(row) in compared
        else row
        for row in rows
    ]


def interval_of(values: DoubleArray, samples: int = 10_000, seed: int = 0) -> Interval:
    """The mean of values and the 2.5 % and 97.5 % quantiles of the means of draws with replacement."""
    rng = np.random.default_rng(seed)
    n = len(values)
    # In batches: 10,000 draws of 1,000 questions at once would be 80 MB.
    sizes = [min(_SAMPLES_PER_BATCH, samples - start) for start in range(0, samples, _SAMPLES_PER_BATCH)]
    means = np.concatenate([values[rng.integers(n, size=(size, n))].mean(axis=1) for size in sizes])
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(values.mean()), float(low), float(high))
