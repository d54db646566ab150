"""`Flat`: cosine over the whole pool, the retrieval of RAPTOR's collapsed tree and of SiReRAG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.ranking import LiftedRanking, ScoredRanking
from sire_core.search.vectors.pq_index import PQIndex, PQRanking, pq_pays
from sire_core.search.vectors.sq_index import SQIndex
from sire_core.settings import check_settings, setting
from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, Ranking, View


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
            kind = view.kind_names[view.kinds[position]]
            note = f"cosine {np.dot(matrix[position], question):.3f} with the question"
            return (PathStep(f"vector:{kind}", (view.ids[position].decode(),), note),)

        async def scan() -> ScoredRanking:
            return ScoredRanking(await view.cosines(query, question, where), allowed, explain)

        if allowed is None and view.scans and self._through_codes(matrix):
            import asyncio

            codes = await asyncio.to_thread(view.derived, "coded rows", lambda: PQIndex(view))
            return PQRanking(codes, question, scan, explain)
        if allowed is None and view.scans:
            return LiftedRanking(await view.similarities(query, question), explain)
        return await scan()

    def _through_codes(self, matrix: FloatArray) -> bool:
        return self.ann_threshold is not None and len(matrix) >= self.ann_threshold and pq_pays(*matrix.shape)
