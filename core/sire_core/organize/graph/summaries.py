"""Summaries of the entities and relations of a knowledge graph, written for those that have none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sire_core.organize.graph.element_summaries import Element, summarize_elements

if TYPE_CHECKING:
    from sire_core.organize.graph.elements import Elements
    from sire_core.organize.graph.ragged import Ragged
    from sire_core.organize.graph.table import GraphTable
    from sire_core.protocols import BuildView, Delta
    from sire_core.types import Unit

__all__ = ["with_summaries"]


async def with_summaries(delta: Delta, table: GraphTable, view: BuildView) -> tuple[Delta, tuple[str, ...]]:
    """Ask the model about units that are new, and about those it was asked about in vain before.

    Args:
        delta: The change, without summaries of new units.
        table: The complete table.
        view: Of the organizer, with a language model.

    Returns:
        The delta with summaries and failures; and the units that are without one still.
    """
    assert view.language_model is not None
    rank = _ranks(table)
    put = {unit.id: unit for unit in delta.put_units}
    silent = [found for found in table.silent if found in rank and found not in put]
    units = {found: unit for found, unit in put.items() if not unit.metadata.get("summary")}
    units |= {unit.id: unit for unit in view.units(silent)}
    asked = sorted(units.values(), key=lambda unit: rank[unit.id])
    missing = [Element(unit.id, unit.text, unit.chunk_ids) for unit in asked]
    texts = {chunk.id: chunk.index_text for chunk in view.chunks} if missing else {}
    written, failures = await summarize_elements(missing, texts, view.language_model)
    told = [_with_summary(unit, written[unit.id]) for unit in asked if written.get(unit.id)]
    return (
        replace(
            delta,
            put_units=tuple((put | {unit.id: unit for unit in told}).values()),
            failures=(*delta.failures, *failures),
        ),
        tuple(unit.id for unit in asked if not written.get(unit.id)),
    )


def _with_summary(unit: Unit, summary: str) -> Unit:
    return replace(unit, metadata={**unit.metadata, "summary": summary})


def _ranks(table: GraphTable) -> dict[str, int]:
    """Order of the units by id: entities by first mention, then relations by first statement."""
    later = _first(table.relations, table.statements, len(table.mentions["keys"]))
    return later | _first(table.entities, table.mentions, 0)


def _first(elements: Elements, rows: Ragged, offset: int) -> dict[str, int]:
    owner = elements.places(rows["keys"])
    ids = elements.ids[owner].astype(str).tolist()
    # Of an id that comes up again the first row counts.
    return {found: row + offset for row, found in reversed(list(enumerate(ids)))}
