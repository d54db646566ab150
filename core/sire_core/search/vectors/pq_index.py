"""`PQIndex`: the nearest rows of a large pool through small codes, ranked again by exact products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.search.ranking import best_first

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from sire_core.protocols import FloatArray, IntArray, View
    from sire_core.search.ranking import ScoredRanking
    from sire_core.types import PathStep

__all__ = ["PQIndex", "PQRanking", "pq_pays"]

_REACH = 100
_DEPTH = 1000
_FEWEST = 10 * _DEPTH
_TRAINED_ON = 20_000
_BLOCK = 65_536
_FILE = "codes.faiss"


def pq_pays(rows: int, dimension: int) -> bool:
    """Whether codes pay: below ten thousand rows, the exact scan is as fast as ranking candidates again."""
    return rows >= _FEWEST and dimension >= 16 and dimension % 2 == 0


class PQIndex:
    """Four bits per two numbers of a vector, summed from tables in registers (product quantisation, fast scan).

    For 384 numbers 96 bytes instead of 1,536. On random unit vectors, which have no near neighbours and are the worst
    case, the best 10 are found as `benchmarks/scan.py` shows; see `benchmarks/results/scan.md`.

    Args:
        view: A snapshot whose matrix is `pq_pays`; it keeps the codes for the next process.
    """

    def __init__(self, view: View) -> None:
        self._matrix = view.matrix
        self._index = view.kept("codes", lambda: _make(view.matrix), _save, _load)

    def best(self, question: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
        """Positions and exact scores of the best `n` rows, as nearly all of them as the codes can tell; n <= 100."""
        found = np.sort(self._index.search(question[None], _DEPTH)[1][0])
        found = found[found >= 0]
        scores = np.asarray(self._matrix[found] @ question, dtype=np.float32)
        order = best_first(scores, n)
        return found[order], scores[order]


class PQRanking:
    """A ranking by cosine that finds its first 100 through codes; who reads further gets the exact scan.

    Args:
        codes: Of the pool.
        matrix: Unit-length rows, `[n, d]`.
        question: `[d]`.
        scan: Makes the exact ranking.
        explain: Steps that lead to a position.
    """

    def __init__(
        self,
        codes: PQIndex,
        matrix: FloatArray,
        question: FloatArray,
        scan: Callable[[], Awaitable[ScoredRanking]],
        explain: Callable[[int], tuple[PathStep, ...]],
    ) -> None:
        self._codes = codes
        self._matrix = matrix
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
        return np.asarray(self._matrix[positions] @ self._question, dtype=np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a position is where it is."""
        return self._explain(position)


def _make(matrix: FloatArray) -> Any:
    import faiss

    rows, dimension = matrix.shape
    index = faiss.IndexPQFastScan(dimension, dimension // 2, 4, faiss.METRIC_INNER_PRODUCT)
    # Evenly spread rows: chunks come first in a pool, and every kind of unit has to be known.
    index.train(np.ascontiguousarray(matrix[:: max(1, rows // _TRAINED_ON)][:_TRAINED_ON]))
    for start in range(0, rows, _BLOCK):
        index.add(np.ascontiguousarray(matrix[start : start + _BLOCK]))
    return index


def _load(directory: Path) -> Any:
    import faiss

    return faiss.read_index(str(directory / _FILE))


def _save(index: Any, directory: Path) -> None:
    import faiss

    faiss.write_index(index, str(directory / _FILE))
