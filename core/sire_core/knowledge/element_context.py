"""Lines beside an answer's passages: entities and relations that voted for them, reports behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, View
    from sire_core.types import Hit, PathStep, Unit

__all__ = ["BESIDE", "ElementContext", "ReportLines", "WithoutReports", "positions_of"]

_VOTES = "vote:"


@dataclass(frozen=True, slots=True)
class ElementContext:
    """Summaries of the entities and relations in the paths of hits (MS-RAG 3.2.2).

    Those that the index holds are taken from it; others are asked of the language model, up to twenty in one call, and
    kept with the snapshot. A failed call leaves its elements out.

    Attributes:
        most: Elements that an answer is given.
        ask: Whether the language model is asked for summaries that the index does not hold.
    """

    most: int = 20
    ask: bool = True

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:
        """One line per element, in the order of the hits and their votes.

        Raises:
            LimitExceededError: A usage limit was reached.
        """
        units = self._elements(hits, view)
        known: dict[str, str] = view.derived("element summaries", dict)
        known.update((unit.id, str(unit.metadata["summary"])) for unit in units if unit.metadata.get("summary"))
        missing = [unit for unit in units if unit.id not in known]
        if missing and self.ask and view.language_model is not None:
            known.update(await self._summarize(missing, view))
        return [f"{unit.text}: {known[unit.id]}" for unit in units if known.get(unit.id)]

    def _elements(self, hits: Sequence[Hit], view: View) -> list[Unit]:
        """Entities and relations that voted for the hits or are hits themselves; each once."""
        wanted: dict[str, None] = {}
        for hit in hits:
            own = [hit.unit.id] if hit.unit.kind in (UnitKind.ENTITY, UnitKind.RELATION) else []
            votes = [i for step in hit.path if step.step in (f"{_VOTES}entity", f"{_VOTES}relation") for i in step.ids]
            wanted.update(dict.fromkeys((*own, *votes)))
        places = positions_of(list(wanted)[: self.most], view)
        return view.units(places)

    async def _summarize(self, units: Sequence[Unit], view: View) -> dict[str, str]:
        from sire_core.knowledge.element_descriptions import Element, summarize_elements

        assert view.language_model is not None
        chunks = dict.fromkeys(chunk for unit in units for chunk in unit.chunk_ids)
        passages = view.units(positions_of(list(chunks), view))
        texts = {chunk: passage.index_text for passage in passages for chunk in passage.chunk_ids}
        elements = [
            Element(unit.id, unit.text, tuple(chunk for chunk in unit.chunk_ids if chunk in texts)) for unit in units
        ]
        written, _ = await summarize_elements(elements, texts, view.language_model)
        return written


def positions_of(ids: Sequence[str], view: View) -> list[int]:
    """Where units stand in the pool; unknown ids are left out."""
    places = view.places()
    return [places[found] for found in ids if found in places]


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
