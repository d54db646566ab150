"""Reports beside the hits of a search for passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, View
    from sire_core.types import Hit, PathStep

__all__ = ["BESIDE", "ReportLines", "WithoutReports"]

BESIDE = "report_beside"
"""Step that names a report whose sources include the passage."""


class Selected(Protocol):
    """A selection of passages and reports."""

    async def hits(self, n: int) -> list[tuple[int, float]]:
        """Return the best `n` units that are no reports, with their scores."""

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The ranker's scores."""

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a unit was chosen."""

    def beside(self, hit: int) -> tuple[PathStep, ...]:
        """Return a step for every report behind a hit."""


class WithoutReports:
    """The ranking without reports, for a search of passages; paths of hits name the reports behind them."""

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
    """Lines of a context: the reports behind the hits of a search for passages."""

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:
        """Return the texts of the reports, in the order of the hits."""
        wanted = dict.fromkeys(step.ids[0] for hit in hits for step in hit.path if step.step == BESIDE)
        positions = view.places()
        return [unit.text for unit in view.units([positions[name] for name in wanted if name in positions])]
