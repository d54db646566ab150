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
_ROUGH = 1e-3
"""More than a quick product of two unit vectors can differ from their cosine, rounding included."""
_BLOCK_CELLS = 2**22
"""Cells of the largest intermediate matrix."""
_SAMPLE = 32
"""Rows per cell that centers are learned from."""
_ROUNDS = 3


def updated_neighbors(
    vectors: NDArray[np.float32], k: int, known: Lists, new: NDArray[np.bool_], stale: NDArray[np.bool_]
) -> Lists:
    """Bring lists of nearest neighbours up to date: what `nearest_neighbors` says, for less where little changed.

    Known rows are compared with new ones only, and only those that a new one may be near to are looked at precisely.
    Where much changed, everything is made anew.

    Args:
        vectors: All rows after the change, `[n, d]`.
        k: Neighbours wanted.
        known: Row numbers and cosines of the lists before the change, `[n, k]`, in rows' numbers after it, best first,
            ties by row number; places without a neighbour have a cosine that is not positive. Those of new and stale
            rows are not read.
        new: Rows that were not there before, `[n]`.
        stale: Known rows that lost a neighbour, `[n]`: searched for again.

    Returns:
        As `nearest_neighbors`, `[n, k]`; places without a positive cosine hold row 0 and -2.
    """
    again = np.flatnonzero(new | stale)
    found = np.zeros((len(vectors), k), dtype=np.int64), np.full((len(vectors), k), -2.0)
    if len(again) * _SHARE > len(vectors):
        _put(found, np.arange(len(vectors)), nearest_neighbors(vectors, k))
        return _cleared(found)
    old = np.flatnonzero(~(new | stale))
    found[0][old], found[1][old] = known[0][old], known[1][old]
    if len(again):
        _put(found, again, nearest_neighbors(vectors, k, again))
    if new.any():
        _join(unit_rows(vectors), found, old, np.flatnonzero(new))
    return _cleared(found)


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


def _join(unit: NDArray[np.float32], found: Lists, old: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    """Put new rows into the lists of old ones, where they are near enough."""
    k = found[0].shape[1]
    block = max(1, _BLOCK_CELLS // max(len(new), unit.shape[1]))
    for start in range(0, len(old), block):
        rows = old[start : start + block]
        # A new row that ties with the last neighbour may come before it.
        bar = np.maximum(found[1][rows, -1], 0.0) - _ROUGH
        places, columns = np.nonzero(unit[rows] @ unit[new].T >= bar[:, None])
        for first in range(0, len(places), block):
            part = slice(first, first + block)
            scores = precise_cosines(unit, rows[places[part]], new[columns[part], None])[:, 0]
            _insert(found, rows[places[part]], new[columns[part]], scores, k)


def _insert(
    found: Lists, rows: NDArray[np.int64], columns: NDArray[np.int64], scores: NDArray[np.float64], k: int
) -> None:
    """Put single neighbours into the lists of rows, best first, ties by row number."""
    touched, place = np.unique(rows, return_inverse=True)
    owners = np.concatenate((np.repeat(np.arange(len(touched)), k), place))
    members = np.concatenate((found[0][touched].ravel(), columns))
    values = np.concatenate((found[1][touched].ravel(), scores))
    order = np.lexsort((members, -values, owners))
    # Every row has k places at least: those that it had.
    first = np.searchsorted(owners[order], np.arange(len(touched)))
    best = order[first[:, None] + np.arange(k)]
    found[0][touched], found[1][touched] = members[best], values[best]


def _cleared(found: Lists) -> Lists:
    nobody = found[1] <= 0
    found[0][nobody], found[1][nobody] = 0, -2.0
    return found


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
