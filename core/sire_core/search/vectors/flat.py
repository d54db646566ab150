"""`Flat`: cosine over the whole pool, the retrieval of RAPTOR's collapsed tree and of SiReRAG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.ranking import LiftedRanking, ScoredRanking, cosine_step
from sire_core.search.vectors.sq_index import SQIndex

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import Ranking, View
    from sire_core.types import PathStep


@dataclass(frozen=True, slots=True)
class Flat:
    """Ranks every unit by the cosine between its vector and the question's.

    Attributes:
        instruction: Text appended to the question before it is embedded. Empty by default; the released SiReRAG
            notebooks append the answer instruction (SiReRAG).
    """

    instruction: str = ""

    def prepare(self, view: View) -> None:
        """Make the codes of a large pool."""
        SQIndex.prepare(view)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - the ranking is read lazily
        """Rank the units that pass the filter."""
        question = await view.embed_query(f"{query} {self.instruction}" if self.instruction else query)
        matrix, allowed = view.matrix, view.allowed(where)

        def explain(position: int) -> tuple[PathStep, ...]:
            return (cosine_step(view, position, np.dot(matrix[position], question)),)

        if allowed is None and view.scans:
            return LiftedRanking(await view.similarities(query, question), explain)
        return ScoredRanking(await view.cosines(query, question, where), allowed, explain)
