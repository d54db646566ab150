"""The nearest passages of every passage, from those of the corpus before a change where that is less work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.neighbor_updates import NeighborLists, approximate_neighbors, updated_neighbors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.interactions.moves import PassageMoves

__all__ = ["nearest_passages"]


def nearest_passages(
    vectors: NDArray[np.float32], k: int, exact_below: int, known: NeighborLists | None, moves: PassageMoves
) -> tuple[NeighborLists, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Nearest neighbours of every passage: the same whatever is known.

    Args:
        vectors: Of the passages after the change, `[n, d]`.
        k: Neighbours wanted.
        exact_below: Corpora of at least so many passages are searched approximately, and anew after every change.
        known: Lists of the passages before the change by the same vectors; None where there are none.
        moves: Where these passages are now.

    Returns:
        Lists to be remembered, of no row where the search was approximate; and row numbers and cosines, `[n, k]` or
        fewer columns: what is not positive is no neighbour.
    """
    size = len(vectors)
    if size >= exact_below:
        return NeighborLists.empty(0, k), approximate_neighbors(vectors, k)
    new, lost = np.ones(size, dtype=bool), np.zeros(size, dtype=bool)
    lists = NeighborLists.empty(size, k)
    if known is not None and moves.in_order:  # ties go by the order of passages
        lists, lost = known.renumbered(moves.origin, moves.place)
        new = np.asarray(moves.origin < 0, dtype=bool)
    lists = updated_neighbors(vectors, lists, new, lost)
    return lists, lists.nearest(k)
