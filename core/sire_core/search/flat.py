"""`Flat`: cosine over the whole pool, the retrieval of RAPTOR's collapsed tree and of SiReRAG (ALGORITHMS 1.4, 2.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.search.codes import CodedRanking, Codes, codable
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
        ann_threshold: Pools of at least so many units (and of ten thousand) are searched through codes, which may miss
            a unit now and then; None always scans. A filtered search always scans.
    """

    instruction: str = ""
    ann_threshold: int | None = None

    def __post_init__(self) -> None:
        threshold = self.ann_threshold
        if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int) or threshold < 1):
            raise ConfigurationError(f"ann_threshold is a number of units of at least 1, or None, not {threshold!r}.")

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - the ranking is read lazily
        """Rank the units that pass the filter."""
        question = await view.embed_query(f"{query} {self.instruction}" if self.instruction else query)
        matrix, allowed = view.matrix, view.allowed(where)

        def explain(position: int) -> tuple[Step, ...]:
            kind = view.kind_names[view.kinds[position]]
            note = f"cosine {np.dot(matrix[position], question):.3f} with the question"
            return (Step(f"vector:{kind}", (view.ids[position].decode(),), note),)

        async def scan() -> ScoredRanking:
            return ScoredRanking(await _scan(matrix, question), allowed, explain)

        if allowed is None and self._through_codes(matrix):
            import asyncio

            codes = await asyncio.to_thread(view.derived, "codes", lambda: Codes(matrix, view.directory))
            return CodedRanking(codes, matrix, question, scan, explain)
        return await scan()

    def _through_codes(self, matrix: FloatArray) -> bool:
        return self.ann_threshold is not None and len(matrix) >= self.ann_threshold and codable(*matrix.shape)


async def _scan(matrix: FloatArray, question: FloatArray) -> FloatArray:
    """Inner products `[n]` of a matrix `[n, d]` with a vector `[d]`."""
    if matrix.size == 0:
        return np.zeros(len(matrix), dtype=np.float32)
    if matrix.size > _INLINE:
        import asyncio

        return np.asarray(await asyncio.to_thread(np.dot, matrix, question))
    return np.asarray(np.dot(matrix, question))
