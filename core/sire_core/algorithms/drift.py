"""How far a stored tree is from what a rebuild would make of the corpus as it is now. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.neighbors import nearest_neighbors
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Members = Sequence[int] | NDArray[np.int64]

__all__ = ["neighbors_together"]


def neighbors_together(
    vectors: NDArray[np.float32], clusters: Iterable[Members], *, neighbors: int = 1, sample: int | None = None
) -> float:
    """Share of (row, one of its nearest rows) pairs that some cluster holds, 0..1; 1 when there are no pairs.

    Fresh clusters keep most neighbours together. Where rows come and go and the clusters stay, the share falls.

    Args:
        vectors: `[n, d]` as they are now.
        clusters: Members by row number; rows in no cluster count as apart from all others.
        neighbors: Nearest rows of each row that count.
        sample: Of how many evenly spread rows; None asks all.

    Raises:
        ConfigurationError: `neighbors` is below 1.
    """
    if neighbors < 1:
        raise ConfigurationError(f"neighbors must be at least 1, not {neighbors}.")
    if len(vectors) < 2:
        return 1.0
    homes: list[set[int]] = [set() for _ in range(len(vectors))]
    for number, cluster in enumerate(clusters):
        for member in cluster:
            homes[int(member)].add(number)
    count = min(len(vectors), sample or len(vectors))
    rows = np.arange(count, dtype=np.int64) * len(vectors) // count
    nearest = nearest_neighbors(vectors, min(neighbors, len(vectors) - 1), rows)[0]
    together = [
        not homes[row].isdisjoint(homes[other])
        for row, found in zip(rows.tolist(), nearest.tolist(), strict=True)
        for other in found
    ]
    return sum(together) / len(together)
