"""Exact nearest neighbours by cosine, and the graph they make: the same result for any number of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.vectors import unit_rows
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["largest_columns", "nearest_neighbors", "neighbor_graph", "precise_cosines", "whole_numbers"]

_DECIMALS = 6  # Similarities are rounded to these before they are ranked, so that equal texts tie.
SPARE = 4  # Candidates beyond k that are scored precisely.
_GROUP = 16  # Scores that share one maximum in the search for a bound.
_BLOCK_CELLS = 2**23  # Cells of the largest intermediate matrix: 32 MB of float32.


def nearest_neighbors(
    vectors: NDArray[np.float32],
    k: int,
    rows: NDArray[np.int64] | None = None,
    among: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find the `k` most similar other rows of every row, or of some rows.

    The candidates come from products of vectors rounded to whole numbers, small enough that float32 adds them without
    error in any order: threads, blocks and matrix libraries cannot change them. The best candidates are then scored
    precisely. Time grows with n * n * d, memory with n * k (blocks of the product are bounded).

    Args:
        vectors: `[n, d]`; rows of any length, zero rows have similarity 0 to everything.
        k: Neighbours wanted, at least 1.
        rows: Whose neighbours are wanted, `[m]`; None means everybody's.
        among: Who may be a neighbour, ascending; None means everybody. Either all of `rows` are among them or none is.

    Returns:
        Row numbers and cosine similarities, both `[m, min(k, n - 1)]` (n counts `among`; without the -1 where `rows`
        are not among them), best first, ties by row number; a row is never its own neighbour.
    """
    if k < 1:
        raise ConfigurationError(f"the number of neighbors must be at least 1, not {k}")
    unit = unit_rows(vectors)
    wanted = np.arange(len(unit)) if rows is None else np.asarray(rows, dtype=np.int64)
    others = np.arange(len(unit)) if among is None else np.asarray(among, dtype=np.int64)
    choice = len(others) - int(len(wanted) > 0 and bool((others == wanted[0]).any()))
    k = max(0, min(k, choice))
    indices = np.zeros((len(wanted), k), dtype=np.int64)
    similarities = np.zeros((len(wanted), k), dtype=np.float64)
    if k == 0:
        return indices, similarities
    whole = whole_numbers(unit)
    columns_of = (whole if among is None else whole[others]).T
    block = max(16, min(512, _BLOCK_CELLS // len(others)))
    for start in range(0, len(wanted), block):
        stop = min(start + block, len(wanted))
        own = wanted[start:stop]
        product = whole[own] @ columns_of
        product[others == own[:, None]] = -np.inf
        columns = others[largest_columns(product, min(k + SPARE, choice))]
        scores = precise_cosines(unit, own, columns)
        order = np.lexsort((columns, -scores))[:, :k]
        indices[start:stop] = np.take_along_axis(columns, order, axis=1)
        similarities[start:stop] = np.take_along_axis(scores, order, axis=1)
    return indices, similarities


def precise_cosines(
    unit: NDArray[np.float32], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Cosines of rows with some others each, rounded as `nearest_neighbors` rounds them.

    Args:
        unit: Unit-length vectors, `[n, d]`.
        rows: `[i]`.
        columns: `[i, m]`.

    Returns:
        `[i, m]`.
    """
    # Not a matrix product: einsum adds in one order, whatever the number of threads.
    return np.asarray(np.einsum("imd,id->im", unit[columns], unit[rows]).astype(np.float64).round(_DECIMALS))


def neighbor_graph(indices: NDArray[np.int64], similarities: NDArray[np.float64]) -> csr_array[np.float64]:
    """Undirected graph that joins each row with its neighbours, the nearer the heavier.

    The r-th neighbour (from 1) weighs w = 1 / (r + 1), and 0 for a row that is not a neighbour. An edge weighs
    ((sqrt(w there) + sqrt(w back)) / 2) ** 2, between the mean and the minimum of both directions. By ranks and mutual
    liking, rows that are near to everything do not glue groups together, as they do when cosines are the weights.

    Args:
        indices: `[n, k]` from `nearest_neighbors`.
        similarities: `[n, k]`; neighbours of zero or negative similarity are left out.

    Returns:
        Symmetric float64 CSR `[n, n]` with sorted indices and an empty diagonal.
    """
    from scipy.sparse import coo_array

    n, k = indices.shape
    keep = similarities > 0
    rows = np.broadcast_to(np.arange(n)[:, None], (n, k))[keep]
    roots = np.broadcast_to(np.sqrt(1.0 / np.arange(2, k + 2)), (n, k))[keep]
    directed = coo_array((roots, (rows, indices[keep])), shape=(n, n)).tocsr()
    graph: csr_array[np.float64] = ((directed + directed.T) / 2).tocsr()
    graph.sort_indices()
    graph.data **= 2
    return graph


def whole_numbers(unit: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit-length vectors as whole numbers so small that no order of adding can change their products."""
    # Rounded rows are at most 2**12 long, so by Cauchy-Schwarz no partial sum of a product exceeds 2**24, up to which
    # float32 counts whole numbers without error.
    scale = 2.0**12 - np.sqrt(unit.shape[1]) / 2 - 1
    return np.asarray(np.rint(unit * np.float32(scale)), dtype=np.float32)


def largest_columns(scores: NDArray[np.float32], m: int) -> NDArray[np.int64]:
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


def _lower_bound(scores: NDArray[np.float32], m: int) -> NDArray[np.float32]:
    """A bound that at least the `m` largest scores of a row reach, and hardly more, by looking at group maxima only."""
    width = scores.shape[1] // _GROUP
    if width < 2 * m:
        maxima = scores
    else:
        groups = scores[:, : width * _GROUP].reshape(len(scores), _GROUP, width).max(axis=1)
        maxima = np.concatenate([groups, scores[:, width * _GROUP :]], axis=1)
    cut = maxima.shape[1] - m
    return np.asarray(np.partition(maxima, cut, axis=1)[:, cut])
