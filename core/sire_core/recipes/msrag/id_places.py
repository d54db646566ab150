"""`IdPlaces`: positions of units by their ids, on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import id_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import IntArray, View

__all__ = ["IdPlaces"]


class IdPlaces:
    """Where the units of a pool are.

    Args:
        ids: Unit ids, `[size]`.
    """

    def __init__(self, ids: NDArray[np.bytes_]) -> None:
        self._ids = ids
        codes = id_codes(ids)
        self._order = np.argsort(codes)
        self._codes = codes[self._order]

    @classmethod
    def of(cls, view: View) -> IdPlaces:
        """Those of a pool, made once per snapshot."""
        places: IdPlaces = view.derived("places of ids", lambda: cls(view.ids))
        return places

    def find(self, ids: NDArray[np.bytes_]) -> IntArray:
        """Positions of some ids; -1 for one that the pool does not hold."""
        if not len(self._order):
            return np.full(len(ids), -1, dtype=np.int64)
        found = np.minimum(np.searchsorted(self._codes, id_codes(ids)), len(self._codes) - 1)
        places = self._order[found]
        return np.where(self._ids[places] == ids, places, -1).astype(np.int64)
