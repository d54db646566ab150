"""`ElementContext`: summaries of entities and relations for an answer (MS-RAG, section 3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import View
    from sire_core.types import Hit, Unit

_VOTES = "vote:"


@dataclass(frozen=True, slots=True)
class ElementContext:
    """Lines of a context: summaries of the entities and relations in the paths of hits.

    Stored summaries are used; the language model writes the others, up to twenty in a call, and the snapshot caches
    them. Elements of a failed call are left out.

    Attributes:
        max_elements: Maximum number of summaries.
        ask: Whether the language model writes summaries that are not stored.
    """

    max_elements: int = 20
    ask: bool = True

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:
        """Return a line per element, in the order of the hits and their votes."""
        units = self._elements(hits, view)
        known: dict[str, str] = view.derived("element summaries", dict)
        known.update((unit.id, str(unit.metadata["summary"])) for unit in units if unit.metadata.get("summary"))
        missing = [unit for unit in units if unit.id not in known]
        if missing and self.ask and view.language_model is not None:
            known.update(await self._summarize(missing, view))
        return [f"{unit.text}: {known[unit.id]}" for unit in units if known.get(unit.id)]

    def _elements(self, hits: Sequence[Hit], view: View) -> list[Unit]:
        """Entities and relations that are hits or voted for hits."""
        wanted: dict[str, None] = {}
        for hit in hits:
            own = [hit.unit.id] if hit.unit.kind in (UnitKind.ENTITY, UnitKind.RELATION) else []
            votes = [i for step in hit.path if step.step in (f"{_VOTES}entity", f"{_VOTES}relation") for i in step.ids]
            wanted.update(dict.fromkeys((*own, *votes)))
        positions = _positions(list(wanted)[: self.max_elements], view)
        return view.units(positions)

    async def _summarize(self, units: Sequence[Unit], view: View) -> dict[str, str]:
        from sire_core.knowledge.element_summaries import Element, summarize_elements

        assert view.language_model is not None
        chunks = dict.fromkeys(chunk for unit in units for chunk in unit.chunk_ids)
        passages = view.units(_positions(list(chunks), view))
        texts = {chunk: passage.index_text for passage in passages for chunk in passage.chunk_ids}
        elements = [
            Element(unit.id, unit.text, tuple(chunk for chunk in unit.chunk_ids if chunk in texts)) for unit in units
        ]
        written, _ = await summarize_elements(elements, texts, view.language_model)
        return written


def _positions(ids: Sequence[str], view: View) -> list[int]:
    """Positions of units; unknown ids are left out."""
    positions = view.places()
    return [positions[name] for name in ids if name in positions]
