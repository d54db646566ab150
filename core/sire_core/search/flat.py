"""`Flat`: cosine over the whole pool, the retrieval of RAPTOR's collapsed tree and of SiReRAG (ALGORITHMS 1.4, 2.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.ranking import ScoredRanking
from sire_core.types import Step

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, Ranking, View

__all__ = ["Flat"]

_INLINE = 16_000_000
"""Matrix elements that one product gets through in about 5 ms; more work than that leaves the event loop."""


@dataclass(frozen=True, slots=True)
class Flat:
    """Ranks every unit by the cosine between its vector and the question's.

    Attributes:
        instruction: Text appended to the question before it is embedded. Empty by default; the released SiReRAG
            notebooks append the answer instruction (ALGORITHMS 2.5.4).
    """

    instruction: str = ""

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - one exact scan, however many are read
        """Rank the units that pass the filter."""
        question = await view.embed_query(f"{query} {self.instruction}" if self.instruction else query)
        scores = await _scan(view.matrix, question)

        def explain(position: int) -> tuple[Step, ...]:
            kind = view.kind_names[view.kinds[position]]
            note = f"cosine {scores[position]:.3f} with the question"
            return (Step(f"vector:{kind}", (view.ids[position].decode(),), note),)

        return ScoredRanking(scores, view.allowed(where), explain)


async def _scan(matrix: FloatArray, question: FloatArray) -> FloatArray:
    """Inner products `[n]` of a matrix `[n, d]` with a vector `[d]`."""
    if matrix.size == 0:
        return np.zeros(len(matrix), dtype=np.float32)
    if matrix.size > _INLINE:
        import asyncio

        return np.asarray(await asyncio.to_thread(np.dot, matrix, question))
    return np.asarray(np.dot(matrix, question))
