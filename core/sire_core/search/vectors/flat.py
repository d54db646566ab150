"""`Flat`: cosine over the whole pool, the retrieval of RAPTOR's collapsed tree and of SiReRAG.

Large pools are searched through small codes of faiss; what these find is ranked again by exact products.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.search.ranking import LiftedRanking, ScoredRanking, best_first, cosine_step
from sire_core.search.vectors.sq_index import SQIndex
from sire_core.settings import check_settings, setting
from sire_core.types import PathStep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, IntArray, Ranking, View

_REACH = 100
_DEPTH = 1000
_DEPTH_READ = 400  # Of many rows: reading more from the file takes longer than the search
_FEWEST = 10 * _DEPTH
_CODES_FILE = "codes.faiss"
_TRAINED_ON = 20_000
_ROWS_PER_BLOCK = 65_536
_ROWS_PER_CELL = 40  # Centers of cells are learned from so many rows each
_ASKED = 200
_FOUND = 10
_SAME_HITS_SHARE = 0.99
_MOST_READ = 0.5
CELLS_FROM = 200_000


def pq_pays(rows: int, dimension: int) -> bool:
    """True if codes pay: below ten thousand rows, the exact scan is as fast as ranking candidates again."""
    return rows >= _FEWEST and dimension >= 16 and dimension % 2 == 0


class PQIndex:
    """Four bits per two numbers of a vector, summed from tables in registers (product quantization, fast scan).

    For 384 numbers 96 bytes instead of 1,536. Many rows lie in cells of which few are read, and those that are ranked
    again are read from their file, so that a search does not bring it into memory; see `coded`. On random unit vectors,
    which have no near neighbors and are the worst case, and on vectors like real ones the best 10 are found as
    `benchmarks/scan.py` shows; see `docs/results/scan.md`.
    """

    def __init__(self, view: View, cells_from: int = CELLS_FROM) -> None:
        self._matrix = view.matrix
        large = len(view.matrix) >= cells_from
        self._reader = RowReader(view.matrix) if large else None
        self._depth = _DEPTH_READ if large else _DEPTH
        self._index = view.cached_on_disk("codes", lambda: coded(view.matrix, cells_from), _save, _load)

    def best(self, question: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
        """Positions and exact scores of the best `n` rows, as nearly all of them as the codes can tell; n <= 100."""
        rows = np.sort(self._candidates(question))
        scores = np.asarray(self.rows(rows) @ question, dtype=np.float32)
        order = best_first(scores, n)
        return rows[order], scores[order]

    def rows(self, positions: IntArray) -> FloatArray:
        """Vectors of some rows."""
        return self._matrix[positions] if self._reader is None else self._reader.rows(positions)

    def _candidates(self, question: FloatArray) -> IntArray:
        cells = getattr(self._index, "nlist", 0)
        rows = self._index.search(question[None], self._depth)[1][0]
        if cells and rows[-1] < 0:  # the nearest cells hold too few rows
            import faiss

            every: Any = faiss.SearchParametersIVF()
            every.nprobe = cells
            rows = self._index.search(question[None], self._depth, params=every)[1][0]
        return np.asarray(rows[rows >= 0])


class PQRanking:
    """A ranking by cosine that finds its first 100 through codes; who reads further gets the exact `scan`."""

    def __init__(
        self,
        codes: PQIndex,
        question: FloatArray,
        scan: Callable[[], Awaitable[ScoredRanking]],
        explain: Callable[[int], tuple[PathStep, ...]],
    ) -> None:
        self._codes = codes
        self._question = question
        self._scan = scan
        self._explain = explain
        self._first: tuple[IntArray, FloatArray] | None = None
        self._exact: ScoredRanking | None = None

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        if n > _REACH:
            if self._exact is None:
                self._exact = await self._scan()
            return await self._exact.top(n)
        if self._first is None:
            self._first = await asyncio.to_thread(self._codes.best, self._question, _REACH)
        return self._first[0][:n], self._first[1][:n]

    def scores_at(self, positions: IntArray) -> FloatArray:
        """Exact scores of given positions."""
        return np.asarray(self._codes.rows(positions) @ self._question, dtype=np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a position is where it is."""
        return self._explain(position)


def _load(directory: Path) -> Any:
    import faiss

    return faiss.read_index(str(directory / _CODES_FILE))


def _save(index: Any, directory: Path) -> None:
    import faiss

    faiss.write_index(index, str(directory / _CODES_FILE))


def coded(matrix: FloatArray, cells_from: int = CELLS_FROM) -> Any:
    """Make the codes of unit rows `[n, d]`: product quantization with a fast scan of faiss."""
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
    for start in range(0, len(matrix), _ROWS_PER_BLOCK):
        index.add(np.ascontiguousarray(matrix[start : start + _ROWS_PER_BLOCK]))


def _cells_read(index: Any, matrix: FloatArray) -> int:
    """Number of the nearest cells that hold almost all nearest rows of a question."""
    import faiss

    pairs = np.random.default_rng(0).choice(len(matrix), (2, _ASKED), replace=False)
    questions = unit_rows(np.asarray(matrix[pairs[0]] + matrix[pairs[1]], dtype=np.float32))
    nearest = _nearest(matrix, questions, pairs)
    cell_of = np.full(len(matrix), -1, dtype=np.int64)
    for cell in range(index.nlist):
        size = index.invlists.list_size(cell)
        if size:
            cell_of[faiss.rev_swig_ptr(index.invlists.get_ids(cell), size)] = cell
    order = index.quantizer.search(questions, index.nlist)[1]
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(index.nlist)[None], axis=1)
    reached = np.take_along_axis(place, cell_of[nearest], axis=1)
    return int(np.quantile(reached, _SAME_HITS_SHARE)) + 1


def _nearest(matrix: FloatArray, questions: FloatArray, besides: IntArray) -> IntArray:
    """Positions of the nearest rows of each question, those `besides` left out; `[len(questions), 10]`."""
    import faiss

    near = faiss.knn(questions, matrix, min(_FOUND + len(besides), len(matrix)), metric=faiss.METRIC_INNER_PRODUCT)[1]
    others = (near[:, :, None] != besides.T[:, None, :]).all(axis=2)
    return np.array([row[other][:_FOUND] for row, other in zip(near, others, strict=True)])


class RowReader:
    """Reads single rows from the file behind a mapped matrix `[n, d]`, which must not change.

    A row that is read through the mapping brings the pages around it along, so that scattered rows of a few questions
    soon hold the whole file in the process. Read from the file they hold nothing. A matrix in memory, or one whose file
    is gone, is read where it is.
    """

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix
        self._file, self._offset = _opened(matrix)
        if self._file is not None:
            weakref.finalize(self, os.close, self._file)

    def rows(self, positions: IntArray) -> FloatArray:
        """Copies of some rows, `[len(positions), d]`."""
        file, size = self._file, self._matrix.strides[0]
        if file is None:
            return np.asarray(self._matrix[positions])
        parts = [os.pread(file, size, self._offset + size * position) for position in positions.tolist()]
        return np.frombuffer(b"".join(parts), dtype=self._matrix.dtype).reshape(len(parts), self._matrix.shape[1])


def _opened(matrix: FloatArray) -> tuple[int | None, int]:
    """Descriptor of the file behind a matrix, and where in it the first row starts."""
    mapping: Any = matrix
    while isinstance(mapping.base, np.ndarray):
        mapping = mapping.base
    mapped = isinstance(mapping, np.memmap) and mapping.mode == "r" and mapping.filename is not None
    if not (mapped and matrix.flags.c_contiguous and hasattr(os, "pread")):  # Windows has no pread
        return None, 0
    inside = matrix.__array_interface__["data"][0] - mapping.__array_interface__["data"][0]
    try:
        file = os.open(mapping.filename, os.O_RDONLY)
    except OSError:
        return None, 0
    return file, mapping.offset + inside


@dataclass(frozen=True, slots=True)
class Flat:
    """Ranks every unit by the cosine between its vector and the question's.

    Attributes:
        instruction: Text appended to the question before it is embedded. Empty by default; the released SiReRAG
            notebooks append the answer instruction (SiReRAG).
        ann_threshold: Pools of at least so many units (and of ten thousand) are searched through codes, which may miss
            a unit now and then; from 200,000 units on, codes lie in cells of which few are read, where the vectors have
            cells. None always scans. A filtered search always scans.
    """

    instruction: str = ""
    ann_threshold: int | None = setting(None, low=1)

    def __post_init__(self) -> None:
        check_settings(self)

    def prepare(self, view: View) -> None:
        """Make the codes of a large pool."""
        SQIndex.prepare(view)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - the ranking is read lazily
        """Rank the units that pass the filter."""
        question = await view.embed_query(f"{query} {self.instruction}" if self.instruction else query)
        matrix, allowed = view.matrix, view.allowed(where)

        def explain(position: int) -> tuple[PathStep, ...]:
            return (cosine_step(view, position, np.dot(matrix[position], question)),)

        async def scan() -> ScoredRanking:
            return ScoredRanking(await view.cosines(query, question, where), allowed, explain)

        if allowed is None and view.scans and self._through_codes(matrix):
            codes = await asyncio.to_thread(view.derived, "coded rows", lambda: PQIndex(view))
            return PQRanking(codes, question, scan, explain)
        if allowed is None and view.scans:
            return LiftedRanking(await view.similarities(query, question), explain)
        return await scan()

    def _through_codes(self, matrix: FloatArray) -> bool:
        return self.ann_threshold is not None and len(matrix) >= self.ann_threshold and pq_pays(*matrix.shape)
