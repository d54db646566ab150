"""Judging clusterings by the pairs they put together (SiReRAG section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Members = Sequence[int] | NDArray[np.int64]

_SHIFT = 32


def pairs(clusters: Iterable[Members]) -> NDArray[np.int64]:
    """All unordered pairs that share a cluster, each once.

    Returns:
        Sorted codes `low << 32 | high`, int64.
    """
    codes = [np.empty(0, dtype=np.int64)]
    for cluster in clusters:
        members = np.unique(np.asarray(cluster, dtype=np.int64))
        if len(members) and not 0 <= members[0] <= members[-1] < 2**31:
            raise ConfigurationError("cluster members must be row numbers from 0 to 2**31 - 1")
        low, high = np.triu_indices(len(members), k=1)
        codes.append(members[low] << _SHIFT | members[high])
    return np.unique(np.concatenate(codes))


def coverage(predicted: NDArray[np.int64], gold: NDArray[np.int64]) -> float:
    """Share of the gold pairs that are also predicted; 0 without gold pairs."""
    return _common(predicted, gold) / len(gold) if len(gold) else 0.0


def overlap(first: NDArray[np.int64], second: NDArray[np.int64], gold: NDArray[np.int64]) -> float:
    """Share of the gold pairs found by `first` that `second` finds, too; 0 when `first` finds none."""
    return coverage(second, np.intersect1d(first, gold, assume_unique=True))


def tper(seconds: float, base_seconds: float, units: int, base_units: int) -> float:
    """Time-pool efficiency ratio (SiReRAG section 5): growth of the time per query over growth of the pool."""
    if min(base_seconds, units, base_units) <= 0:
        raise ConfigurationError("tper needs a positive base time and positive pool sizes")
    return (seconds / base_seconds) / (units / base_units)


def _common(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    return len(np.intersect1d(first, second, assume_unique=True))
