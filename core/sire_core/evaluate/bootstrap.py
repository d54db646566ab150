"""Paired bootstrap: whether one recipe really ranks better than another, or only on these questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.evaluate.rows import EvalRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BASELINE", "Interval", "mean_interval", "paired_bootstrap", "with_intervals"]

BASELINE = "hybrid"
"""The row that others are compared with: what most people would use otherwise."""

_K = 5
"""Hits whose recall rows are compared by."""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Interval:
    """A difference in points (0..100) and its 95 % confidence interval."""

    difference: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether zero lies outside the interval."""
        return self.low > 0.0 or self.high < 0.0

    def as_json(self) -> dict[str, Any]:
        """Points, rounded to one decimal; significance is that of the unrounded interval."""
        return {**{name: round(value, 1) for name, value in asdict(self).items()}, "significant": self.significant}


def paired_bootstrap(row: EvalRow, baseline: EvalRow, *, k: int = 5, samples: int = 10_000, seed: int = 0) -> Interval:
    """Compare R@k by passages, the main column, of two rows over the same questions.

    Questions are drawn with replacement, the same ones for both rows, and the 2.5 % and 97.5 % quantiles of the mean
    difference are taken (percentile bootstrap).

    Args:
        row: The row under test.
        baseline: The row it is compared with; the difference is `row - baseline`.
        k: Cut-off.
        samples: Number of draws.
        seed: The same seed gives the same interval.

    Raises:
        ConfigurationError: The rows do not stand on the same questions with gold passages.
    """
    ours, theirs = ({result.id: result.recall_passages(k) for result in part.with_gold} for part in (row, baseline))
    if not ours or ours.keys() != theirs.keys():
        raise ConfigurationError(
            f"A paired comparison needs rows over the same questions with gold passages; '{row.setup.recipe}' has "
            f"{len(ours)} and '{baseline.setup.recipe}' {len(theirs)}, {len(ours.keys() & theirs.keys())} in common. "
            "Evaluate both with the same data set, limit and seed."
        )
    import numpy as np

    return _interval(np.array([100.0 * (ours[name] - theirs[name]) for name in ours]), samples, seed)


def mean_interval(rates: Sequence[float], *, samples: int = 10_000) -> Interval:
    """A mean of rates (0..1) in points, and its 95 % interval over the questions.

    Raises:
        ConfigurationError: There are no rates.
    """
    import numpy as np

    if not rates:
        raise ConfigurationError("An interval needs at least one question.")
    return _interval(100.0 * np.array(rates), samples, 0)


def with_intervals(rows: Sequence[EvalRow]) -> list[EvalRow]:
    """Rows with what `EvalRow.interval` holds: the difference of R@5 to the row `BASELINE`, where there is one.

    The baseline itself has none, nor has a row over other questions or over none with gold passages.
    """
    base = next((row for row in rows if row.setup.recipe == BASELINE), None)
    if base is None or not base.with_gold:
        return list(rows)
    asked = {result.id for result in base.with_gold}
    return [
        row
        if row is base or {result.id for result in row.with_gold} != asked
        else replace(row, interval={"baseline": BASELINE, "k": _K, **paired_bootstrap(row, base, k=_K).as_json()})
        for row in rows
    ]


def _interval(values: NDArray[np.float64], samples: int, seed: int) -> Interval:
    """The mean of values and the 2.5 % and 97.5 % quantiles of the means of draws with replacement."""
    import numpy as np

    rng = np.random.default_rng(seed)
    n = len(values)
    # In batches: 10,000 draws of 1,000 questions at once would be 80 MB.
    sizes = [min(_BATCH, samples - start) for start in range(0, samples, _BATCH)]
    means = np.concatenate([values[rng.integers(n, size=(size, n))].mean(axis=1) for size in sizes])
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(values.mean()), float(low), float(high))
