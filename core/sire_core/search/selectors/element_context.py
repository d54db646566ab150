"""`ElementContext`: what is known about the entities and relations that voted for an answer's passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import View
    from sire_core.types import Hit, Unit

__all__ = ["ElementContext", "positions_of"]

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
        from sire_core.graph.element_summaries import Element, summarize_elements

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
