"""Products of a search, on the calling thread.

BLAS shares products of more than 10,000 to 500,000 numbers among threads, which then wait 20 ms for more work: a search
would take twice its CPU time and end no sooner. Limits of BLAS hold for a whole process, so they are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORTH_THREADS = 4_000_000  # Numbers of a matrix from which threads save more than they cost
_ALONE, _TOGETHER = 250_000, 100_000_000
"""Multiplications of two matrices that BLAS makes on the calling thread, and from how many on threads save time."""


def row_products(rows: NDArray[Any], vector: NDArray[Any]) -> NDArray[Any]:
    """Product of each row `[n, d]` with a vector `[d]`, `[n]`."""
    if rows.size > _WORTH_THREADS:
        return np.asarray(rows @ vector)
    return np.asarray(np.einsum("ij,j->i", rows, vector))


def all_products(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Product of each row `[n, d]` with each of others `[m, d]`, `[n, m]`; faster with the fewer as `rows`."""
    step = max(1, _ALONE // max(1, rows.size))
    if step >= len(others) or rows.size * len(others) > _TOGETHER:
        return np.asarray(rows @ others.T)
    return np.concatenate([rows @ others[start : start + step].T for start in range(0, len(others), step)], axis=1)
