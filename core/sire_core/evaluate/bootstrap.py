"""Paired bootstrap: whether one recipe really ranks better than another, or only on these questions."""

from __future__ import annotations

from dataclasses import dataclass

from sire_core.errors import ConfigurationError
from sire_core.evaluate.rows import Row

__all__ = ["Interval", "paired_bootstrap"]

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


def paired_bootstrap(row: Row, baseline: Row, *, k: int = 5, samples: int = 10_000, seed: int = 0) -> Interval:
    """Compare R@k (by provenance) of two rows over the same questions.

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
    import numpy as np

    ours, theirs = ({result.id: result.recall(k) for result in part.with_gold} for part in (row, baseline))
    if not ours or ours.keys() != theirs.keys():
        raise ConfigurationError(
            f"A paired comparison needs rows over the same questions with gold passages; '{row.setup.recipe}' has "
            f"{len(ours)} and '{baseline.setup.recipe}' {len(theirs)}, {len(ours.keys() & theirs.keys())} in common. "
            "Evaluate both with the same data set, limit and seed."
        )
    differences = np.array([100.0 * (ours[name] - theirs[name]) for name in ours])
    rng = np.random.default_rng(seed)
    n = len(differences)
    # In batches: 10,000 draws of 1,000 questions at once would be 80 MB.
    sizes = [min(_BATCH, samples - start) for start in range(0, samples, _BATCH)]
    means = np.concatenate([differences[rng.integers(n, size=(size, n))].mean(axis=1) for size in sizes])
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(differences.mean()), float(low), float(high))
