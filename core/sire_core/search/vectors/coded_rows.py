"""Codes of a large matrix: four bits per two numbers, from many rows on in cells of which few are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.vectors import unit_rows

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray

__all__ = ["CELLS_FROM", "coded"]

_TRAINED_ON = 20_000
_BLOCK = 65_536
CELLS_FROM = 200_000
_ROWS_PER_CELL = 40
"""Centers of cells are learned from so many rows each."""
_ASKED = 200
_FOUND = 10
_SHARE = 0.99
_MOST_READ = 0.5


def coded(matrix: FloatArray, cells_from: int = CELLS_FROM) -> Any:
    """Make the codes of unit rows `[n, d]`: product quantization with a fast scan of faiss.

    From 200,000 rows on they lie in cells, of which a search reads the nearest ones: so many that they hold 99 % of the
    nearest rows of test questions. Where that takes more than half of the cells, as on random vectors, there are none.
    """
    import faiss

    rows, dimension = matrix.shape
    if rows >= cells_from:
        cells = 1 << round(float(np.log2(rows**0.5)))
        centers = faiss.IndexFlatIP(dimension)
        index: Any = faiss.IndexIVFPQFastScan(centers, dimension, cells, dimension // 2, 4, faiss.METRIC_INNER_PRODUCT)
        _fill(index, matrix, max(_TRAINED_ON, _ROWS_PER_CELL * cells))
        index.nprobe = _cells_read(index, matrix)
        if index.nprobe <= _MOST_READ * cells:
            return index
    index = faiss.IndexPQFastScan(dimension, dimension // 2, 4, faiss.METRIC_INNER_PRODUCT)
    _fill(index, matrix, _TRAINED_ON)
    return index


def _fill(index: Any, matrix: FloatArray, trained_on: int) -> None:
    # Evenly spread rows: chunks come first in a pool, and every kind of unit has to be known.
    index.train(np.ascontiguousarray(matrix[:: max(1, len(matrix) // trained_on)][:trained_on]))
    for start in range(0, len(matrix), _BLOCK):
        index.add(np.ascontiguousarray(matrix[start : start + _BLOCK]))


def _cells_read(index: Any, matrix: FloatArray) -> int:
    """How many of the nearest cells hold almost all nearest rows of a question.

    A test question lies between two rows, which do not count: rows themselves lie nearer to others than questions do.
    """
    import faiss

    pairs = np.random.default_rng(0).choice(len(matrix), (2, _ASKED), replace=False)
    questions = unit_rows(np.asarray(matrix[pairs[0]] + matrix[pairs[1]], dtype=np.float32))
    found = _nearest(matrix, questions, pairs)
    cell_of = np.full(len(matrix), -1, dtype=np.int64)
    for cell in range(index.nlist):
        size = index.invlists.list_size(cell)
        if size:
            cell_of[faiss.rev_swig_ptr(index.invlists.get_ids(cell), size)] = cell
    order = index.quantizer.search(questions, index.nlist)[1]
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(index.nlist)[None], axis=1)
    reached = np.take_along_axis(place, cell_of[found], axis=1)
    return int(np.quantile(reached, _SHARE)) + 1


def _nearest(matrix: FloatArray, questions: FloatArray, besides: IntArray) -> IntArray:
    """Positions of the nearest rows of each question, those `besides` left out; `[len(questions), 10]`."""
    best = np.full((len(questions), 0), 0, dtype=np.float32)
    found = np.zeros((len(questions), 0), dtype=np.int64)
    numbers = np.arange(len(questions))
    for start in range(0, len(matrix), _BLOCK):
        scores = questions @ matrix[start : start + _BLOCK].T
        for own in besides:
            inside = (own >= start) & (own < start + scores.shape[1])
            scores[numbers[inside], own[inside] - start] = -np.inf
        top = np.argpartition(-scores, min(_FOUND, scores.shape[1] - 1), axis=1)[:, :_FOUND]
        best = np.concatenate((best, np.take_along_axis(scores, top, 1)), axis=1)
        found = np.concatenate((found, top + start), axis=1)
    order = np.argsort(-best, axis=1, kind="stable")[:, :_FOUND]
    return np.take_along_axis(found, order, 1)
