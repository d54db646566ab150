"""From the passages that a change touches to the units, edges and notes that differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.organize.graph.entity_change import EntityChange
from sire_core.organize.graph.name_lists import NameLists
from sire_core.organize.graph.note import GRAPH_NOTE, GraphNote
from sire_core.organize.graph.relation_change import RelationChange
from sire_core.organize.graph.table import TABLE_NOTE, GraphTable
from sire_core.protocols import Delta

if TYPE_CHECKING:
    from sire_core.organize.graph.change import GraphChange
    from sire_core.protocols import BuildView
    from sire_core.types import Unit

__all__ = ["graph_delta", "with_notes"]


def graph_delta(
    change: GraphChange, view: BuildView, limits: tuple[int, int], *, units: bool
) -> tuple[Delta, GraphTable]:
    """What differs from what is stored, without state and table; and the complete table.

    Args:
        change: The passages, resolved.
        view: Of the organizer.
        limits: An entity with more passages keeps only those it titles: before the change and after it.
        units: Whether entities and relations are units.
    """
    told = change.name_lists()
    lists = _lists(change, view).followed(np.unique(change.after.mentions["lists"]), told)
    chunks = [unit.chunk_ids for unit in view.chunk_units]
    entities = EntityChange(change, chunks, lists, told, limits, view.fingerprint)
    table = replace(change.after, entities=entities.elements)
    put_edges, drop_edges = entities.edges()
    delta = Delta(put_edges=tuple(put_edges), drop_edges=tuple(drop_edges))
    if units:
        relations = RelationChange(change, entities, chunks, view.fingerprint)
        table = replace(table, relations=relations.elements)
        put_edges, drop_edges = relations.edges()
        parts = entities.units(), relations.units()
        delta = Delta(
            put_units=tuple(unit for made, was, _ in parts for unit in _differing(made, was, view)),
            drop_units=tuple(found for _, was, now in parts for found in sorted(was - now)),
            put_edges=(*delta.put_edges, *put_edges),
            drop_edges=(*delta.drop_edges, *drop_edges),
        )
    if not change.before.passages:
        delta = _against_stored(delta, view)
    note = GraphNote.of(table, lists, limits[1]).to_note()
    return replace(delta, notes=change.notes() | {GRAPH_NOTE: note}), table


def with_notes(delta: Delta, table: GraphTable, state: Mapping[str, Any]) -> Delta:
    """A delta with everything to remember."""
    return replace(delta, notes={**delta.notes, TABLE_NOTE: table.to_note()}, state=state)


def _differing(made: Sequence[Unit], was: Collection[str], view: BuildView) -> Iterator[Unit]:
    """Units that are new, and those whose passages stand in another order now."""
    stored = {unit.id: unit for unit in view.units([unit.id for unit in made if unit.id in was])}
    for unit in made:
        known = stored.get(unit.id)
        if known is None:
            yield unit
        elif known.chunk_ids != unit.chunk_ids:
            yield replace(known, chunk_ids=unit.chunk_ids)


def _lists(change: GraphChange, view: BuildView) -> NameLists:
    note = GraphNote.from_note(view.notes([GRAPH_NOTE]).get(GRAPH_NOTE)) if change.before.passages else None
    return note.lists if note else NameLists()


def _against_stored(delta: Delta, view: BuildView) -> Delta:
    """Everything was made anew: leave what an earlier version of the organizer stored already, drop the rest of it."""
    units = {unit.id: unit for unit in view.units()}
    edges = {(edge.kind, edge.source, edge.target): edge for edge in view.edges()}
    made = {(edge.kind, edge.source, edge.target): edge for edge in delta.put_edges}
    there = {unit.id for unit in delta.put_units}
    known = {found: unit.metadata["summary"] for found, unit in units.items() if unit.metadata.get("summary")}
    put = [
        replace(unit, metadata={**unit.metadata, "summary": known[unit.id]}) if unit.id in known else unit
        for unit in delta.put_units
    ]
    return Delta(
        put_units=tuple(unit for unit in put if units.get(unit.id) != unit),
        drop_units=tuple(unit for unit in units if unit not in there),
        put_edges=tuple(edge for key, edge in made.items() if edges.get(key) != edge),
        drop_edges=tuple(edge for key, edge in edges.items() if key not in made),
    )
