"""The edges of graphs that are kept as notes."""

from __future__ import annotations

from collections.abc import Iterable

from sire_core.knowledge.columns import EdgeColumns
from sire_core.recipes.iier.table import GRAPH_NOTE, InteractionTable
from sire_core.recipes.smart.report_table import REPORTS, ReportTable
from sire_core.types import Edge

__all__ = ["EDGE_NOTES", "edges_of_note"]

EDGE_NOTES = ("%/%", GRAPH_NOTE, REPORTS)
"""Patterns of SQL for the keys of these notes: blocks of an entity graph are `kind/block`."""


def edges_of_note(key: str, note: bytes) -> Iterable[Edge]:
    """The edges that a note holds.

    Args:
        key: Its key, one that `EDGE_NOTES` describes.
        note: Its bytes.
    """
    if key == GRAPH_NOTE:
        return InteractionTable.from_note(note) or ()
    if key == REPORTS:
        return ReportTable.from_note(note)
    return EdgeColumns.from_bytes(note).edges(key.split("/", 1)[0])
