"""Lists of nearest neighbours after a change, and of large corpora: less work than comparing everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.neighbors import SPARE, largest_columns, nearest_neighbors, precise_cosines, whole_numbers
from sire_core.algorithms.vectors import unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Lists = tuple[NDArray[np.int64], NDArray[np.float64]]
    Marks = NDArray[np.bool_]

__all__ = ["NeighborLists", "approximate_neighbors", "updated_neighbors"]

_SHARE = 3
"""When more than one row of so many has to be searched for, everything is."""
_PROBES = 16
"""Cells that a row looks into."""
_BLOCK_CELLS = 2**22
"""Cells of the largest intermediate matrix."""
_SAMPLE = 32
"""Rows per cell that centers are learned from."""
_ROUNDS = 3
_ROWS = 2048
"""Rows whose vectors are gathered at once."""


@dataclass(frozen=True, slots=True)
class NeighborLists:
    """The candidates that `nearest_neighbors` scores precisely: what its result follows from, whatever changes.

    Places without a candidate hold row 0, the product -inf and the cosine -2.

    Attributes:
        indices: Row numbers, the largest product first, ties by row number, `[n, m]`.
        products: Products of the vectors rounded to whole numbers, `[n, m]`.
        cosines: `[n, m]`.
    """

    indices: NDArray[np.int64]
    products: NDArray[np.float32]
    cosines: NDArray[np.float64]

    @classmethod
    def empty(cls, size: int, k: int) -> NeighborLists:
        """Lists of `size` rows without candidates, wide enough for `k` neighbours."""
        shape = (size, k + SPARE)
        return cls(np.zeros(shape, dtype=np.int64), np.full(shape, -np.inf, dtype=np.float32), np.full(shape, -2.0))

    def nearest(self, k: int) -> Lists:
        """The best `k` candidates by cosine, ties by row number, as `nearest_neighbors` returns them.

        Returns:
            Row numbers and cosines, `[n, k]`; what has no positive cosine is no neighbour.
        """
        order = np.lexsort((self.indices, -self.cosines))[:, :k]
        return np.take_along_axis(self.indices, order, axis=1), np.take_along_axis(self.cosines, order, axis=1)

    def renumbered(self, origin: NDArray[np.int64], place: NDArray[np.int64]) -> tuple[NeighborLists, Marks]:
        """The lists of the rows that stay when rows come and go, without changing the order of those that stay.

        Args:
            origin: Number before of every row after, -1 for a new one, `[n]`.
            place: Number after of every row before, -1 for one that is gone.

        Returns:
            Lists in numbers after, those of new rows empty; and which rows lost a candidate, `[n]`.
        """
        found = NeighborLists.empty(len(origin), self.indices.shape[1] - SPARE)
        stays = origin >= 0
        found.products[stays], found.cosines[stays] = self.products[origin[stays]], self.cosines[origin[stays]]
        moved = place[self.indices[origin[stays]]]
        gone = (moved < 0) & (found.products[stays] > -np.inf)
        found.indices[stays] = np.where(found.products[stays] > -np.inf, moved, 0)
        lost = np.zeros(len(origin), dtype=bool)
        lost[stays] = gone.any(axis=1)
        return found, lost


def updated_neighbors(vectors: NDArray[np.float32], known: NeighborLists, new: Marks, stale: Marks) -> NeighborLists:
    """Bring lists of nearest neighbours up to date: what a search of everything finds, for less.

    Known rows are compared with new ones only. Where much changed, everything is computed again.

    Args:
        vectors: All rows after the change, `[n, d]`.
        known: The lists before the change, in rows' numbers after it; those of new and stale rows are not read.
        new: Rows that were not there before, `[n]`.
        stale: Known rows that lost a candidate, `[n]`: searched for again.
    """
    unit = unit_rows(vectors)
    whole = whole_numbers(unit)
    again = new | stale
    if int(again.sum()) * _SHARE > len(unit):
        again = np.ones_like(again)
    found = NeighborLists.empty(len(unit), known.indices.shape[1] - SPARE)
    kept = ~again
    for column in ("indices", "products", "cosines"):
        getattr(found, column)[kept] = getattr(known, column)[kept]
    _search(whole, found, np.flatnonzero(again))
    joined = _join(whole, found, np.flatnonzero(kept), np.flatnonzero(new))
    rows = np.concatenate((np.flatnonzero(again), joined))
    block = max(1, _BLOCK_CELLS // (found.indices.shape[1] * max(1, unit.shape[1])))
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        cosines = precise_cosines(unit, part, found.indices[part])
        found.cosines[part] = np.where(found.products[part] > -np.inf, cosines, -2.0)
    return found


def approximate_neighbors(vectors: NDArray[np.float32], k: int) -> Lists:
    """Nearest neighbours among the rows of nearby cells: time grows with n ** 1.5 instead of n ** 2.

    Cells are made by a few rounds of k-means over evenly spaced rows; a row looks into the cells whose centers are
    nearest to it. All products are those of `nearest_neighbors`, so threads do not change the result. Equal rows are in
    one cell, so that their time grows with the square of their number.

    The result is that of `nearest_neighbors`; places without a neighbour have the cosine -2.

    Args:
        vectors: `[n, d]`.
        k: Neighbours wanted.
    """
    unit = unit_rows(vectors)
    cells = max(1, round(len(unit) ** 0.5))
    near = _nearest_centers(unit, _centers(unit, cells), min(_PROBES, cells))
    candidates = _candidates(whole_numbers(unit), near, cells, k)
    order = np.empty((len(unit), min(k, candidates.shape[1])), dtype=np.int64)
    nearest = np.empty(order.shape, dtype=np.float64)
    # Blocks whose vectors stay in the cache: all at once is ten times slower, and a gigabyte.
    for start in range(0, len(unit), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(unit)))
        scores = precise_cosines(unit, rows, candidates[rows])
        scores[candidates[rows] == rows[:, None]] = -2.0  # a place without a candidate holds the row itself
        best = np.lexsort((candidates[rows], -scores))[:, :k]
        order[rows] = np.take_along_axis(candidates[rows], best, axis=1)
        nearest[rows] = np.take_along_axis(scores, best, axis=1)
    return order, nearest


def _candidates(whole: NDArray[np.float32], near: NDArray[np.int64], cells: int, k: int) -> NDArray[np.int64]:
    """A few more rows than wanted, the nearest by products of whole numbers: `[n, m]`."""
    size, width = len(whole), k + SPARE
    found = NeighborLists(
        np.repeat(np.arange(size)[:, None], width, axis=1),
        np.full((size, width), -np.inf, dtype=np.float32),
        np.empty((0, width)),
    )
    visits = np.argsort(near.ravel(), kind="stable")
    bounds = np.searchsorted(near.ravel()[visits], np.arange(cells + 1))
    rows, rank = np.divmod(visits, near.shape[1])
    for cell in range(cells):
        visit = slice(bounds[cell], bounds[cell + 1])
        inside = rows[visit][rank[visit] == 0]  # ascending, as visits of a cell are
        block = max(1, min(_ROWS, _BLOCK_CELLS // max(1, len(inside))))
        for start in range(visit.start, visit.stop if len(inside) else visit.start, block):
            visitors = rows[start : min(start + block, visit.stop)]
            product = whole[visitors] @ whole[inside].T
            home = np.flatnonzero(rank[start : start + len(visitors)] == 0)
            product[home, np.searchsorted(inside, visitors[home])] = -np.inf
            _improve(found, visitors, inside, product)
    _add_reversed(found)
    return found.indices


def _add_reversed(found: NeighborLists) -> None:
    """Put rows into the lists of those that they have found, but that did not look where they are."""
    size, width = found.indices.shape
    rows, columns, products = np.repeat(np.arange(size), width), found.indices.ravel(), found.products.ravel()
    known = np.sort(rows * size + columns)
    better = np.flatnonzero((products > -np.inf) & (products >= found.products[columns, -1]))
    back = columns[better] * size + rows[better]
    place = np.minimum(np.searchsorted(known, back), len(known) - 1)
    better = better[known[place] != back]
    if len(better):
        _insert(found, columns[better], rows[better], products[better])


def _improve(
    found: NeighborLists, rows: NDArray[np.int64], columns: NDArray[np.int64], product: NDArray[np.float32]
) -> None:
    """Put those of some columns into the lists of rows that are better than what is there."""
    worst = found.products[rows, -1:]
    width = found.indices.shape[1]
    places, chosen = np.nonzero((product >= worst) & (product > -np.inf))
    if len(places) > width * len(rows):  # lists that are not full yet take everything
        best = largest_columns(product, min(width, len(columns)))
        places, chosen = np.repeat(np.arange(len(rows)), best.shape[1]), best.ravel()
        better = product[places, chosen] >= worst[places, 0]
        places, chosen = places[better], chosen[better]
    if len(places):
        _insert(found, rows[places], columns[chosen], product[places, chosen])


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


def _search(whole: NDArray[np.float32], found: NeighborLists, rows: NDArray[np.int64]) -> None:
    """Candidates of some rows among all."""
    width = min(found.indices.shape[1], len(whole) - 1)
    block = max(16, min(512, _BLOCK_CELLS // max(1, len(whole))))
    for start in range(0, len(rows) if width > 0 else 0, block):
        own = rows[start : start + block]
        product = whole[own] @ whole.T
        product[np.arange(len(own)), own] = -np.inf
        places = largest_columns(product, width)
        found.indices[own, :width], found.products[own, :width] = places, np.take_along_axis(product, places, axis=1)


def _join(
    whole: NDArray[np.float32], found: NeighborLists, old: NDArray[np.int64], new: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Put new rows into the lists of old ones where they belong; returns the rows whose lists changed."""
    joined = [old[:0]]
    block = max(1, _BLOCK_CELLS // max(1, len(new)))
    for start in range(0, len(old) if len(new) else 0, block):
        rows = old[start : start + block]
        product = whole[rows] @ whole[new].T
        # A new row that ties with the last candidate may come before it.
        places, columns = np.nonzero(product >= found.products[rows, -1:])
        _insert(found, rows[places], new[columns], product[places, columns])
        joined.append(rows[np.unique(places)])
    return np.concatenate(joined)


def _insert(
    found: NeighborLists, rows: NDArray[np.int64], columns: NDArray[np.int64], products: NDArray[np.float32]
) -> None:
    """Put single candidates into the lists of rows."""
    width = found.indices.shape[1]
    touched, place = np.unique(rows, return_inverse=True)
    owners = np.concatenate((np.repeat(np.arange(len(touched)), width), place))
    members = np.concatenate((found.indices[touched].ravel(), columns))
    values = np.concatenate((found.products[touched].ravel(), products))
    order = np.lexsort((members, -values, owners))
    first = np.searchsorted(owners[order], np.arange(len(touched)))
    best = order[first[:, None] + np.arange(width)]  # a row has as many places as it had, at least
    found.indices[touched], found.products[touched] = members[best], values[best]
