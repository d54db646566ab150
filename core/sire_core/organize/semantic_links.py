"""The nearest passages of every passage, from those of the corpus before a change where that is less work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.neighbor_updates import approximate_neighbors, updated_neighbors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.passage_moves import PassageMoves

    Lists = tuple[NDArray[np.int64], NDArray[np.float64]]

__all__ = ["nearest_passages"]


def nearest_passages(
    vectors: NDArray[np.float32], k: int, exact_below: int, known: Lists | None, moves: PassageMoves
) -> Lists:
    """Nearest neighbours of every passage: the same whatever is known.

    Args:
        vectors: Of the passages after the change, `[n, d]`.
        k: Neighbours wanted.
        exact_below: Corpora of at least so many passages are searched approximately, and anew after every change.
        known: Exact lists of the passages before the change by the same vectors, `[n, k]`; None where there are none.
        moves: Where these passages are now.

    Returns:
        Row numbers and cosines, `[n, k]` or fewer columns; what is not positive is no neighbour.
    """
    if len(vectors) >= exact_below:
        return approximate_neighbors(vectors, k)
    new = np.asarray(moves.origin < 0, dtype=bool)
    indices, similarities = np.zeros((len(vectors), k), dtype=np.int64), np.full((len(vectors), k), -2.0)
    if known is None or not moves.in_order:  # ties go by the order of passages
        return updated_neighbors(vectors, k, (indices, similarities), np.ones_like(new), np.zeros_like(new))
    origin = moves.origin[~new]
    indices[~new], similarities[~new] = moves.place[known[0][origin]], known[1][origin]
    stale = np.asarray(((indices < 0) & (similarities > 0)).any(axis=1), dtype=bool)
    return updated_neighbors(vectors, k, (indices, similarities), new, stale)
