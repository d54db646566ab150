"""Nearest neighbours of the nodes of a level, where the build's runner works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.neighbors import nearest_neighbors
from sire_core.derive.local_runner import mapped
from sire_core.trees.clustering import EXACT_BELOW, NEIGHBORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray, Runner

    Lists = tuple[NDArray[np.int64], NDArray[np.float64]]

__all__ = ["nearest_lists"]


async def nearest_lists(vectors: FloatArray, runner: Runner) -> Lists | None:
    """Exact lists for clustering, row by row elsewhere; None where clustering finds its own here.

    Args:
        vectors: `[n, d]`.
        runner: Does the work.
    """
    if runner.part_size is None or not NEIGHBORS < len(vectors) < EXACT_BELOW:
        return None
    rows = await mapped(runner, _of_rows, vectors, range(len(vectors)))
    return np.stack([indices for indices, _ in rows]), np.stack([cosines for _, cosines in rows])


def _of_rows(vectors: FloatArray, rows: Sequence[int]) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Neighbours and cosines of some rows."""
    indices, cosines = nearest_neighbors(vectors, NEIGHBORS, np.asarray(rows, dtype=np.int64))
    return list(zip(indices, cosines, strict=True))
