"""Similarities of a question with the units of a pool: all known, or computed as far as somebody reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.ranking import best_first
from sire_core.search.vectors.sq_index import SQIndex, row_products

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, View

_FEW = 8
"""Below one row in so many, rows are read one by one."""
_FIRST = 30
"""So many are found about as fast as one."""


class KnownSimilarities:
    """Similarities of one question, all of which are known.

    Args:
        known: Of every unit, `[size]`.
    """

    __slots__ = ("_known",)

    def __init__(self, known: FloatArray) -> None:
        self._known = known

    def __len__(self) -> int:
        """How many units there are."""
        return len(self._known)

    def all(self) -> FloatArray:
        """Those of all units, `[size]`."""
        return self._known

    def at(self, positions: IntArray, rows: FloatArray | None = None) -> FloatArray:  # noqa: ARG002 - they are known
        """Those of some units."""
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
        """How many units there are."""
        return self._view.size

    def all(self) -> FloatArray:
        """Those of all units, `[size]`."""
        if not len(self._known):
            self._known = np.asarray(np.dot(self._view.matrix, self._question), dtype=np.float32)
        return self._known

    def at(self, positions: IntArray, rows: FloatArray | None = None) -> FloatArray:
        """Those of some units."""
        if len(self._known) or (rows is None and len(positions) * _FEW > len(self)):
            return super().at(positions)
        return row_products(self._view.matrix[positions] if rows is None else rows, self._question)

    def best(self, n: int) -> tuple[IntArray, FloatArray]:
        """The `n` most similar units, best first, ties by position, and their similarities."""
        if self._best is None or len(self._best[0]) < n:
            self._best = SQIndex.of(self._view).best(self._question, max(n, _FIRST)) or super().best(max(n, _FIRST))
        positions, similar = self._best
        return positions[:n], similar[:n]
