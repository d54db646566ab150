"""Positions of units by id, and which entities each relation of a pool joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import id_codes
from sire_core.knowledge import RELATES
from sire_core.knowledge.edge_columns import EdgeColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import IntArray, View


class IdPositions:
    """Looks up positions of units by id, on arrays instead of a dict.

    Args:
        ids: Unit ids, `[size]`.
    """

    def __init__(self, ids: NDArray[np.bytes_]) -> None:
        self._ids = ids
        codes = id_codes(ids)
        self._order = np.argsort(codes)
        self._codes = codes[self._order]

    @classmethod
    def of(cls, view: View) -> IdPositions:
        """Return those of a pool, made once per snapshot."""
        positions: IdPositions = view.derived("places of ids", lambda: cls(view.ids))
        return positions

    def find(self, ids: NDArray[np.bytes_]) -> IntArray:
        """Return positions of ids; -1 for an unknown id."""
        if not len(self._order):
            return np.full(len(ids), -1, dtype=np.int64)
        rows = np.minimum(np.searchsorted(self._codes, id_codes(ids)), len(self._codes) - 1)
        positions = self._order[rows]
        return np.where(self._ids[positions] == ids, positions, -1).astype(np.int64)


def relation_ends(view: View) -> IntArray:
    """Return positions of relations and of the entities at their ends, `[2, pairs]`, without ends that are no units."""
    positions = IdPositions.of(view)
    columns = EdgeColumns.of_blocks(view.notes(f"{RELATES}/"))
    pairs = np.stack([positions.find(columns.sources), positions.find(columns.targets)])
    return np.asarray(pairs[:, (pairs >= 0).all(axis=0)])
