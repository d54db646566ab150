"""Nearest neighbours of rows by cosine: exact, or in nearby cells for large corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.protocols.models import DoubleArray, FloatArray, IntArray

    Lists = tuple[IntArray, DoubleArray]

_DECIMALS = 6  # Similarities are rounded to these before they are ranked, so that equal texts tie.
SPARE = 4  # Candidates beyond k that are scored precisely.
_GROUP = 16  # Scores that share one maximum in the search for a bound.
_SCAN_CELLS = 2**23  # Cells of the largest intermediate matrix: 32 MB of float32.
_PROBES = 24  # Cells that a row looks into
_SAMPLED_ROWS = 32  # Rows per cell that centers are learned from
_ROUNDS = 3
_GATHERED_ROWS = 2048  # Rows whose vectors are gathered at once


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Rows `[n, d]` divided by their length; zero rows stay zero."""
    array = np.ascontiguousarray(vectors, dtype=np.float32)
    if array.ndim != 2:
        raise ConfigurationError(f"vectors must be a matrix with one row per text, not of shape {array.shape}")
    squares = np.einsum("ij,ij->i", array, array, dtype=np.float64)
    if not np.isfinite(squares).all():
        row = int(np.flatnonzero(~np.isfinite(squares))[0])
        raise ConfigurationError(f"vector {row} is not finite; check what the embedder returns for this text")
    lengths = np.sqrt(squares)
    return np.asarray(array / np.where(lengths > 0, lengths, 1.0)[:, None], dtype=np.float32)


def nearest_neighbors(
    vectors: FloatArray, k: int, rows: IntArray | None = None, among: IntArray | None = None
) -> tuple[IntArray, DoubleArray]:
    """Find the `k` most similar other rows of every row of `vectors` `[n, d]`, or of some `rows` `[m]` or `among` some.

    The candidates come from products of vectors rounded to whole numbers, small enough that float32 adds them without
    error in any order: threads, blocks and matrix libraries cannot change them. The best candidates are then scored
    precisely. Time grows with n * n * d, memory with n * k. `among` ascends and has all of `rows` or none of them.
    Returns row numbers and cosines, `[m, min(k, n - 1)]`, best first, ties by row number.
    """
    if k < 1:
        raise ConfigurationError(f"the number of neighbors must be at least 1, not {k}")
    unit = unit_rows(vectors)
    return nearest_units(unit, whole_numbers(unit), k, rows, among)


def nearest_units(
    unit: FloatArray, whole: FloatArray, k: int, rows: IntArray | None = None, among: IntArray | None = None
) -> tuple[IntArray, DoubleArray]:
    """As `nearest_neighbors`, from unit-length vectors and their `whole_numbers`."""
    wanted = np.arange(len(unit)) if rows is None else np.asarray(rows, dtype=np.int64)
    others = np.arange(len(unit)) if among is None else np.asarray(among, dtype=np.int64)
    choice = len(others) - int(len(wanted) > 0 and bool((others == wanted[0]).any()))
    k = max(0, min(k, choice))
    indices = np.zeros((len(wanted), k), dtype=np.int64)
    similarities = np.zeros((len(wanted), k), dtype=np.float64)
    if k == 0:
        return indices, similarities
    columns_of = (whole if among is None else whole[others]).T
    block = max(16, min(512, _SCAN_CELLS // len(others)))
    for start in range(0, len(wanted), block):
        stop = min(start + block, len(wanted))
        rows = wanted[start:stop]
        product = whole[rows] @ columns_of
        product[others == rows[:, None]] = -np.inf
        columns = others[largest_columns(product, min(k + SPARE, choice))]
        scores = precise_cosines(unit, rows, columns)
        order = np.lexsort((columns, -scores))[:, :k]
        indices[start:stop] = np.take_along_axis(columns, order, axis=1)
        similarities[start:stop] = np.take_along_axis(scores, order, axis=1)
    return indices, similarities


def precise_cosines(unit: FloatArray, rows: IntArray, columns: IntArray) -> DoubleArray:
    """Cosines `[i, m]` of rows `[i]` with `columns` `[i, m]` each, among unit-length vectors `[n, d]`."""
    # Not a matrix product: einsum adds in one order, whatever the number of threads.
    return np.asarray(np.einsum("imd,id->im", unit[columns], unit[rows]).astype(np.float64).round(_DECIMALS))


def whole_numbers(unit: FloatArray) -> FloatArray:
    """Unit-length vectors as whole numbers so small that no order of adding can change their products."""
    # Rounded rows are at most 2**12 long, so by Cauchy-Schwarz no partial sum of a product exceeds 2**24, up to which
    # float32 counts whole numbers without error.
    scale = 2.0**12 - np.sqrt(unit.shape[1]) / 2 - 1
    return np.asarray(np.rint(unit * np.float32(scale)), dtype=np.float32)


def largest_columns(scores: FloatArray, m: int) -> IntArray:
    """Columns of the `m` largest scores of each row, ties by column: `[rows, m]`."""
    bound = _lower_bound(scores, m)
    rows, columns = np.divmod(np.flatnonzero(scores >= bound[:, None]), scores.shape[1])
    values = scores[rows, columns]
    # Of the scores equal to the bound only the first m of a row can matter: many equal vectors stay cheap.
    tied = values == bound[rows]
    before = np.cumsum(tied) - tied
    keep = ~tied | (before - before[np.searchsorted(rows, rows)] < m)
    rows, columns, values = rows[keep], columns[keep], values[keep]
    order = np.lexsort((columns, -values, rows))
    first = np.searchsorted(rows, np.arange(len(scores)))
    return np.asarray(columns[order][first[:, None] + np.arange(m)])


def _lower_bound(scores: FloatArray, m: int) -> FloatArray:
    """A bound that at least the `m` largest scores of a row reach, and hardly more, by looking at group maxima only."""
    width = scores.shape[1] // _GROUP
    if width < 2 * m:
        maxima = scores
    else:
        groups = scores[:, : width * _GROUP].reshape(len(scores), _GROUP, width).max(axis=1)
        maxima = np.concatenate([groups, scores[:, width * _GROUP :]], axis=1)
    cut = maxima.shape[1] - m
    return np.asarray(np.partition(maxima, cut, axis=1)[:, cut])


def approximate_neighbors(vectors: FloatArray, k: int) -> Lists:
    """Find `k` neighbours of each of `vectors` `[n, d]` in nearby cells: time grows with n ** 1.5 instead of n ** 2.

    Cells are made by a few rounds of k-means over evenly spaced rows; a row looks into the cells whose centers are
    nearest to it. All products are those of `nearest_neighbors`, so threads do not change the result. Equal rows are in
    one cell, so that their time grows with the square of their number. Places without a neighbour have the cosine -2.
    """
    unit = unit_rows(vectors)
    candidates = _candidates(whole_numbers(unit), k + SPARE)
    order = np.empty((len(unit), min(k, candidates.shape[1])), dtype=np.int64)
    nearest = np.empty(order.shape, dtype=np.float64)
    # Blocks whose vectors stay in the cache: all at once is ten times slower, and a gigabyte.
    for start in range(0, len(unit), _GATHERED_ROWS):
        rows = np.arange(start, min(start + _GATHERED_ROWS, len(unit)))
        columns = np.where(candidates[rows] < 0, rows[:, None], candidates[rows])
        scores = precise_cosines(unit, rows, columns)
        scores[columns == rows[:, None]] = -2.0
        best = np.lexsort((columns, -scores))[:, :k]
        order[rows] = np.take_along_axis(columns, best, axis=1)
        nearest[rows] = np.take_along_axis(scores, best, axis=1)
    return order, nearest


def _candidates(whole: FloatArray, m: int) -> IntArray:
    """The row itself and the `m` nearest in its cells by products of whole numbers, `[n, m + 1]`; -1 for none."""
    import faiss

    size, dimension = whole.shape
    cells = max(1, round(size**0.5))
    centers = faiss.IndexFlatIP(dimension)
    centers.add(_centers(whole, cells))
    index = faiss.IndexIVFFlat(centers, dimension, cells, faiss.METRIC_INNER_PRODUCT)
    index.train(whole[:cells])  # the centers are there already
    index.add(whole)
    index.nprobe = min(_PROBES, cells)
    found: IntArray = index.search(whole, min(m + 1, size))[1]
    return found


def _centers(whole: FloatArray, cells: int) -> FloatArray:
    """Centers of cells as whole numbers, `[cells, d]`."""
    import faiss

    sample = whole[np.linspace(0, len(whole) - 1, min(len(whole), cells * _SAMPLED_ROWS)).astype(np.int64)]
    centers = sample[np.linspace(0, len(sample) - 1, cells).astype(np.int64)]
    for _ in range(_ROUNDS):
        nearest = faiss.knn(sample, centers, 1, metric=faiss.METRIC_INNER_PRODUCT)[1][:, 0]
        sums = np.zeros(centers.shape, dtype=np.float64)
        np.add.at(sums, nearest, sample)
        empty = np.bincount(nearest, minlength=cells) == 0
        sums[empty] = centers[empty]
        centers = whole_numbers(unit_rows(sums.astype(np.float32)))
    return centers
