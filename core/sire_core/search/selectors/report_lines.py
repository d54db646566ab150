"""`ReportLines`: the reports behind the passages of an answer, as lines beside them (SMART, eq. 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sire_core.search.selectors.element_context import positions_of

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, View
    from sire_core.types import Hit, PathStep

__all__ = ["BESIDE", "ReportLines", "WithoutReports"]

BESIDE = "report_beside"
"""Step that names a report which stands behind a passage."""


class Selected(Protocol):
    """Passages and the reports behind them, as far as they were read."""

    async def hits(self, n: int) -> list[tuple[int, float]]:
        """The best `n` units that are no reports, with their scores."""

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The ranker's scores."""

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a unit was chosen."""

    def beside(self, hit: int) -> tuple[PathStep, ...]:
        """The reports that stand behind a hit, a step each."""


class WithoutReports:
    """The ranking without its reports, for a search of passages; hits say which reports stand behind them.

    Args:
        selected: Passages and reports.
    """

    def __init__(self, selected: Selected) -> None:
        self._selected = selected

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` units that are no reports."""
        found = await self._selected.hits(n)
        positions, scores = zip(*found, strict=True) if found else ((), ())
        return np.asarray(positions, dtype=np.int64), np.asarray(scores, dtype=np.float32)

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The ranker's scores."""
        return self._selected.scores_at(positions)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why the ranker chose a hit, and the reports behind it."""
        return (*self._selected.path(position), *self._selected.beside(position))


@dataclass(frozen=True, slots=True)
class ReportLines:
    """Shows the reports that a search for passages left beside its hits; where reports are hits, there are none."""

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:
        """The text of every report, in the order of the hits; each once."""
        wanted = dict.fromkeys(step.ids[0] for hit in hits for step in hit.path if step.step == BESIDE)
        return [unit.text for unit in view.units(positions_of(list(wanted), view))]
