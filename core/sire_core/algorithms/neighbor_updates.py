"""Lists of nearest neighbours after a change, and of large corpora: less work than comparing everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.neighbors import largest_columns, nearest_neighbors, precise_cosines, whole_numbers
from sire_core.algorithms.vectors import unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Lists = tuple[NDArray[np.int64], NDArray[np.float64]]

__all__ = ["approximate_neighbors", "updated_neighbors"]

_SHARE = 3
"""When more than one row of so many has to be searched for, everything is."""
_PROBES = 24
"""Cells that a row looks into."""
_SPARE = 4
"""Candidates beyond k that are scored precisely."""
_SAMPLE = 32
"""Rows per cell that centers are learned from."""
_ROUNDS = 3


def updated_neighbors(vectors: NDArray[np.float32], k: int, known: Lists, stale: NDArray[np.bool_]) -> Lists:
    """Bring lists of nearest neighbours up to date: what `nearest_neighbors` says, for less where little changed.

    Known rows are compared with new ones only. Where the stored cosines are not those of the vectors (the embedder was
    fitted again), or where much changed, everything is made anew.

    Args:
        vectors: All rows after the change, `[n, d]`.
        k: Neighbours wanted.
        known: Row numbers and cosines of the lists before the change, `[n, k]`, in rows' numbers after it; places
            without a neighbour have a cosine that is not positive. New rows have no neighbour.
        stale: Known rows that lost a neighbour, `[n]`: searched for again.

    Returns:
        As `nearest_neighbors`; places without a positive cosine may hold anything that is not positive.
    """
    indices, similarities = known
    listed = (similarities > 0).any(axis=1) & ~stale
    new = np.flatnonzero(~(similarities > 0).any(axis=1) & ~stale)
    fresh, old = np.flatnonzero(~listed), np.flatnonzero(listed)
    if not len(old) or len(fresh) * _SHARE > len(vectors) or not _current(vectors, old, indices, similarities):
        return nearest_neighbors(vectors, k)
    found = np.zeros((len(vectors), k), dtype=np.int64), np.full((len(vectors), k), -2.0)
    _put(found, fresh, nearest_neighbors(vectors, k, fresh))
    _put(found, old, (indices[old], similarities[old]))
    _put(found, old, nearest_neighbors(vectors, k, old, new))
    return found


def approximate_neighbors(vectors: NDArray[np.float32], k: int) -> Lists:
    """Nearest neighbours among the rows of nearby cells: time grows with n ** 1.5 instead of n ** 2.

    Cells are made by a few rounds of k-means over evenly spaced rows; a row looks into the cells whose centers are
    nearest to it. All products are those of `nearest_neighbors`, so threads do not change the result.

    Args:
        vectors: `[n, d]`.
        k: Neighbours wanted.

    Returns:
        As `nearest_neighbors`; places without a neighbour have the cosine -2.
    """
    unit = unit_rows(vectors)
    cells = max(1, round(len(unit) ** 0.5))
    near = _nearest_centers(unit, _centers(unit, cells), min(_PROBES, cells))
    candidates = _candidates(whole_numbers(unit), near, cells, k)
    # Places without a candidate hold the row itself.
    scores = precise_cosines(unit, np.arange(len(unit)), candidates)
    scores[candidates == np.arange(len(unit))[:, None]] = -2.0
    order = np.lexsort((candidates, -scores))[:, :k]
    return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _candidates(whole: NDArray[np.float32], near: NDArray[np.int64], cells: int, k: int) -> NDArray[np.int64]:
    """A few more rows than wanted, the nearest by products of whole numbers: `[n, m]`."""
    size, width = len(whole), k + _SPARE
    visits = np.argsort(near.ravel(), kind="stable")
    bounds = np.searchsorted(near.ravel()[visits], np.arange(cells + 1))
    rows, first = np.divmod(visits, near.shape[1])
    found = np.repeat(np.arange(size)[:, None], width, axis=1), np.full((size, width), -np.inf, dtype=np.float32)
    for cell in range(cells):
        visitors = rows[bounds[cell] : bounds[cell + 1]]
        inside = np.sort(visitors[first[bounds[cell] : bounds[cell + 1]] == 0])
        if not len(inside):
            continue
        product = whole[visitors] @ whole[inside].T
        product[inside == visitors[:, None]] = -np.inf
        places = largest_columns(product, min(width, len(inside)))
        _put(found, visitors, (inside[places], np.take_along_axis(product, places, axis=1)))
    return found[0]


def _centers(unit: NDArray[np.float32], cells: int) -> NDArray[np.float32]:
    sample = unit[np.linspace(0, len(unit) - 1, min(len(unit), cells * _SAMPLE)).astype(np.int64)]
    centers = sample[np.linspace(0, len(sample) - 1, cells).astype(np.int64)]
    for _ in range(_ROUNDS):
        nearest = _nearest_centers(sample, centers, 1)[:, 0]
        sums = np.zeros(centers.shape, dtype=np.float64)
        np.add.at(sums, nearest, sample)
        empty = np.bincount(nearest, minlength=cells) == 0
        sums[empty] = centers[empty]
        centers = unit_rows(sums.astype(np.float32))
    return centers


def _nearest_centers(unit: NDArray[np.float32], centers: NDArray[np.float32], probes: int) -> NDArray[np.int64]:
    """Numbers of the nearest centers of every row, `[n, probes]`."""
    both = np.concatenate((centers, unit))
    return nearest_neighbors(both, probes, np.arange(len(centers), len(both)), np.arange(len(centers)))[0]


def _current(
    vectors: NDArray[np.float32], rows: NDArray[np.int64], indices: NDArray[np.int64], similarities: NDArray[np.float64]
) -> bool:
    """Whether stored cosines are those of the vectors."""
    now = precise_cosines(unit_rows(vectors), rows, indices[rows])
    before = similarities[rows]
    return bool((now == before)[before > 0].all())


def _put(
    found: tuple[NDArray[np.int64], NDArray[Any]], rows: NDArray[np.int64], more: tuple[NDArray[np.int64], NDArray[Any]]
) -> None:
    """Merge lists into those of some rows, best first, ties by row number. No neighbour is in both."""
    k = found[0].shape[1]
    columns = np.concatenate((found[0][rows], more[0]), axis=1)
    scores = np.concatenate((found[1][rows], more[1]), axis=1)
    order = np.lexsort((columns, -scores))[:, :k]
    found[0][rows] = np.take_along_axis(columns, order, axis=1)
    found[1][rows] = np.take_along_axis(scores, order, axis=1)
