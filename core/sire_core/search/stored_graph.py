"""`stored_graph`: the knowledge graph that an organizer noted for queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.organize.graph.note import GRAPH_NOTE, GraphNote

if TYPE_CHECKING:
    from sire_core.protocols import IntArray, View

__all__ = ["stored_graph"]


def stored_graph(view: View, chunks: IntArray) -> GraphNote | None:
    """The graph of a pool as arrays, read once per snapshot.

    Args:
        view: The snapshot.
        chunks: Positions of its passages.

    Returns:
        None where only the edges tell: an organizer of another layout made them, or another process has changed the
        index meanwhile.
    """
    note: GraphNote | None = view.derived("graph note", lambda: GraphNote.from_note(view.note(GRAPH_NOTE)))
    return note if note is not None and np.array_equal(note.passages, view.ids[chunks]) else None
