"""The nearest passages of every passage, from those that were stored before a change where that is less work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.neighbor_updates import approximate_neighbors, updated_neighbors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.types import Edge, Unit

__all__ = ["nearest_passages"]


def nearest_passages(
    vectors: NDArray[np.float32], units: Sequence[Unit], stored: Iterable[Edge], k: int, exact_below: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nearest neighbours of every passage: the same whatever is stored.

    Args:
        vectors: Of the passages after the change, `[n, d]`.
        units: The passages.
        stored: Edges before the change: those with `similarity` tell by `near` who listed whom.
        k: Neighbours wanted.
        exact_below: Corpora of at least so many passages are searched approximately, and anew after every change.

    Returns:
        Row numbers and cosines, `[n, k]` or fewer columns; what is not positive is no neighbour.
    """
    if len(units) >= exact_below:
        return approximate_neighbors(vectors, k)
    known, stale = _known(units, stored, k)
    return updated_neighbors(vectors, k, known, stale)


def _known(
    units: Sequence[Unit], stored: Iterable[Edge], k: int
) -> tuple[tuple[NDArray[np.int64], NDArray[np.float64]], NDArray[np.bool_]]:
    """Lists that the stored edges tell of, in numbers after the change, and who lost a member of its list."""
    number = {unit.id: i for i, unit in enumerate(units)}
    lists: dict[int, list[tuple[float, int]]] = {}
    stale = np.zeros(len(units), dtype=bool)
    for edge in stored:
        if "similarity" not in edge.metadata:
            continue
        near = int(edge.metadata["near"])
        for code, owner, other in ((1, edge.source, edge.target), (2, edge.target, edge.source)):
            if not near & code or owner not in number:
                continue
            if other in number:
                lists.setdefault(number[owner], []).append((-float(edge.metadata["similarity"]), number[other]))
            else:
                stale[number[owner]] = True
    indices = np.zeros((len(units), k), dtype=np.int64)
    similarities = np.full((len(units), k), -2.0)
    for row, found in lists.items():
        found.sort()
        indices[row, : len(found)] = [place for _, place in found]
        similarities[row, : len(found)] = [-negative for negative, _ in found]
    return (indices, similarities), stale
