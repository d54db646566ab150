"""`PQIndex`: the nearest rows of a large pool through small codes, ranked again by exact products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.search.ranking import best_first
from sire_core.search.vectors.coded_rows import CELLS_FROM, coded
from sire_core.search.vectors.row_reader import RowReader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from sire_core.protocols import FloatArray, IntArray, View
    from sire_core.search.ranking import ScoredRanking
    from sire_core.types import PathStep

__all__ = ["PQIndex", "PQRanking", "pq_pays"]

_REACH = 100
_DEPTH = 1000
_DEPTH_READ = 400
"""Of many rows: reading more from the file takes longer than the search."""
_FEWEST = 10 * _DEPTH
_FILE = "codes.faiss"


def pq_pays(rows: int, dimension: int) -> bool:
    """Whether codes pay: below ten thousand rows, the exact scan is as fast as ranking candidates again."""
    return rows >= _FEWEST and dimension >= 16 and dimension % 2 == 0


class PQIndex:
    """Four bits per two numbers of a vector, summed from tables in registers (product quantization, fast scan).

    For 384 numbers 96 bytes instead of 1,536. Many rows lie in cells of which few are read, and those that are ranked
    again are read from their file, so that a search does not bring it into memory; see `coded`. On random unit vectors,
    which have no near neighbors and are the worst case, and on vectors like real ones the best 10 are found as
    `benchmarks/scan.py` shows; see `benchmarks/results/scan.md`.
    """

    def __init__(self, view: View, cells_from: int = CELLS_FROM) -> None:
        self._matrix = view.matrix
        large = len(view.matrix) >= cells_from
        self._reader = RowReader(view.matrix) if large else None
        self._depth = _DEPTH_READ if large else _DEPTH
        self._index = view.cached_on_disk("codes", lambda: coded(view.matrix, cells_from), _save, _load)

    def best(self, question: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
        """Positions and exact scores of the best `n` rows, as nearly all of them as the codes can tell; n <= 100."""
        found = np.sort(self._candidates(question))
        scores = np.asarray(self.rows(found) @ question, dtype=np.float32)
        order = best_first(scores, n)
        return found[order], scores[order]

    def rows(self, positions: IntArray) -> FloatArray:
        """Vectors of some rows."""
        return self._matrix[positions] if self._reader is None else self._reader.rows(positions)

    def _candidates(self, question: FloatArray) -> IntArray:
        cells = getattr(self._index, "nlist", 0)
        found = self._index.search(question[None], self._depth)[1][0]
        if cells and found[-1] < 0:  # the nearest cells hold too few rows
            import faiss

            every: Any = faiss.SearchParametersIVF()
            every.nprobe = cells
            found = self._index.search(question[None], self._depth, params=every)[1][0]
        return np.asarray(found[found >= 0])


class PQRanking:
    """A ranking by cosine that finds its first 100 through codes; who reads further gets the exact scan.

    Args:
        codes: Of the pool.
        question: `[d]`.
        scan: Makes the exact ranking.
        explain: Steps that lead to a position.
    """

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
            import asyncio

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

    return faiss.read_index(str(directory / _FILE))


def _save(index: Any, directory: Path) -> None:
    import faiss

    faiss.write_index(index, str(directory / _FILE))
