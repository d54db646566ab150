"""`SQIndex`: the nearest rows of a large pool, exactly, from one byte per number; similarities of one question."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.products import row_products
from sire_core.search.ranking import best_first

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, View

_DERIVED_NAME = "bytes-1"
_FEWEST = 1 << 21
"""Numbers of a matrix: as many bytes stay in the caches of a machine with other work, four times as many do not."""
_LEVELS = 127
_ROUNDED_ROWS = 512  # Rows that are rounded at once: they stay in the cache
_ROUNDING = 1e-5  # of float32 products
_REACH, _WIDER, _SHARE = 5, 4, 8
_FILES = ("codes.faiss", "rounding.npy")


def sq_pays(rows: int, dimension: int) -> bool:
    """True if bytes pay: a smaller matrix is multiplied as fast as its candidates are ranked again."""
    if rows * dimension < _FEWEST:
        return False
    import faiss

    return hasattr(faiss.ScalarQuantizer, "QT_8bit_direct_signed")


def _scale_of(matrix: FloatArray) -> float:
    return max(float(matrix.max(initial=0.0)), -float(matrix.min(initial=0.0))) / _LEVELS or 1.0


@dataclass(frozen=True, slots=True)
class SQIndex:
    """Rows rounded to a whole number from -127 to 127 per dimension (scalar quantisation).

    Products of whole numbers are exact, and how far rounding may change a product is known. So it is certain which rows
    cannot be among the nearest; the few others are compared by their exact vectors.
    """

    matrix: FloatArray  # Rows of length 1 at most, `[n, d]`
    codes: Any  # The rounded rows
    scale: float  # What a level is worth
    error: float  # Length of what rounding took from a row, at most

    @classmethod
    def of(cls, view: View) -> SQIndex:
        """The codes of a pool whose matrix is `sq_pays`: made once per generation and kept in files."""

        def load(directory: Path) -> SQIndex:
            import faiss

            codes, rounding = (directory / name for name in _FILES)
            # Mapped where that is possible, so that processes share them; not on Windows, where it would keep the file.
            mapped = 0 if os.name == "nt" else getattr(faiss, "IO_FLAG_MMAP_IFC", 0)
            return cls(view.matrix, faiss.read_index(str(codes), mapped), *np.load(rounding).tolist())

        def made(before: SQIndex | None) -> SQIndex:
            return view.cached_on_disk(_DERIVED_NAME, lambda: cls.make(view.matrix, before), _save, load)

        return view.cached_incremental(f"{_DERIVED_NAME} record", made)

    @classmethod
    def prepare(cls, view: View) -> None:
        """Make the codes of a pool that will be searched through them."""
        if view.scans and sq_pays(*view.matrix.shape):
            cls.of(view)

    @classmethod
    def make(cls, matrix: FloatArray, before: SQIndex | None = None) -> SQIndex:
        """Round all rows; those that only follow the rows of `before` alone, if they need no other scale."""
        import faiss

        rows, dimension = matrix.shape
        kind = faiss.ScalarQuantizer.QT_8bit_direct_signed
        codes = faiss.IndexScalarQuantizer(dimension, kind, faiss.METRIC_INNER_PRODUCT)
        first, scale, error = 0, _scale_of(matrix), 0.0
        if before is not None and before.scale == scale and np.array_equal(before.matrix, matrix[: len(before.matrix)]):
            first, error = len(before.matrix), before.error
            stored = faiss.rev_swig_ptr(before.codes.codes.data(), first * dimension)
            codes.add_sa_codes(stored.reshape(first, dimension))
        for start in range(first, rows, _ROUNDED_ROWS):
            block = np.asarray(matrix[start : start + _ROUNDED_ROWS])
            levels = block / np.float32(scale)
            np.rint(levels, out=levels)
            codes.add(levels)
            lost = block - levels * np.float32(scale)
            error = max(error, float(np.einsum("ij,ij->i", lost, lost).max()) ** 0.5)
        return cls(matrix, codes, scale, error)

    def best(self, question: FloatArray, n: int) -> tuple[IntArray, FloatArray] | None:
        """The `n` rows nearest to a question `[d]` of length 1 at most, best first, and their products."""
        rows = len(self.matrix)
        level = float(np.abs(question).max()) / _LEVELS
        if not level or n < 1:
            return None
        levels = np.rint(question / np.float32(level))
        rounded = levels.astype(np.float64) * level
        # |q.r - q'.r'| <= |q - q'| |r| + |q'| |r - r'|
        error = float(np.linalg.norm(question - rounded)) + float(np.linalg.norm(rounded)) * self.error + _ROUNDING
        reach = _REACH * n
        while reach * _SHARE <= rows:
            products, rows_found = self._nearest(levels, reach)
            highest = products * (level * self.scale) + error
            few = n + n // 2
            first = row_products(self.matrix[rows_found[:few]], question)
            lowest = float(np.partition(first, few - n)[few - n])
            near = np.searchsorted(-highest, -lowest, side="right")  # no later row is above n of these
            if near < reach:
                scores = np.concatenate([first, row_products(self.matrix[rows_found[few:near]], question)])
                order = np.argsort(rows_found[: max(few, near)])
                order = order[best_first(scores[order], n)]
                return rows_found[order].astype(np.int64), scores[order]
            reach *= _WIDER
        return None

    def _nearest(self, levels: FloatArray, n: int) -> tuple[FloatArray, IntArray]:
        """Products and rows, best first. One question is for one thread: others would only wait, and burn their CPU."""
        import faiss

        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # of the thread that says so, no other
        try:
            products, rows = self.codes.search(levels[None], n)
        finally:
            faiss.omp_set_num_threads(threads)
        return products[0], rows[0]


def _save(index: SQIndex, directory: Path) -> None:
    import faiss

    codes, rounding = (directory / name for name in _FILES)
    faiss.write_index(index.codes, str(codes))
    np.save(rounding, np.array([index.scale, index.error]))


_MAX_ROW_SHARE = 8  # Below one row in so many, rows are read one by one
_FIRST = 30  # So many are found about as fast as one


class KnownSimilarities:
    """Similarities of one question, all of which are known.

    Args:
        similarities: Of every unit, `[size]`.
    """

    __slots__ = ("_known",)

    def __init__(self, similarities: FloatArray) -> None:
        self._known = similarities

    def __len__(self) -> int:
        """Number of units there are."""
        return len(self._known)

    def all(self) -> FloatArray:
        """Cosines of all units, `[size]`."""
        return self._known

    def at(self, positions: IntArray, rows: FloatArray | None = None) -> FloatArray:  # noqa: ARG002 - they are known
        """Cosines of the units at some positions."""
        return self.all()[positions]

    def best(self, n: int) -> tuple[IntArray, FloatArray]:
        """The `n` most similar units, best first, ties by position, and their similarities."""
        positions = best_first(self.all(), n)
        return positions, self.all()[positions]


class ReadSimilarities(KnownSimilarities):
    """Cosines of one question, each computed when it is read from the vectors of a pool whose matrix is `sq_pays`."""

    __slots__ = ("_best", "_question", "_view")

    def __init__(self, view: View, question: FloatArray) -> None:
        super().__init__(np.empty(0, dtype=np.float32))
        self._view = view
        self._question = question
        self._best: tuple[IntArray, FloatArray] | None = None

    def __len__(self) -> int:
        """Number of units there are."""
        return self._view.size

    def all(self) -> FloatArray:
        """Cosines of all units, `[size]`."""
        if not len(self._known):
            self._known = np.asarray(row_products(self._view.matrix, self._question), dtype=np.float32)
        return self._known

    def at(self, positions: IntArray, rows: FloatArray | None = None) -> FloatArray:
        """Cosines of the units at some positions."""
        if len(self._known) or (rows is None and len(positions) * _MAX_ROW_SHARE > len(self)):
            return super().at(positions)
        return row_products(self._view.matrix[positions] if rows is None else rows, self._question)

    def best(self, n: int) -> tuple[IntArray, FloatArray]:
        """The `n` most similar units, best first, ties by position, and their similarities."""
        if self._best is None or len(self._best[0]) < n:
            self._best = SQIndex.of(self._view).best(self._question, max(n, _FIRST)) or super().best(max(n, _FIRST))
        positions, similar = self._best
        return positions[:n], similar[:n]
