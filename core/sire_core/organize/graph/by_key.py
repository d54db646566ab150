"""`ByKey`: rows of a corpus by what they are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.graph.ragged import Ragged

__all__ = ["ByKey"]


@dataclass(frozen=True, slots=True)
class ByKey:
    """Rows of all passages, by key.

    Attributes:
        keys: Distinct ones, ascending, `[n]`.
        order: Rows by key, then in corpus order.
        starts: Rows about key i are `order[starts[i]:starts[i] + counts[i]]`.
        counts: Number of them, `[n]`.
    """

    keys: NDArray[np.uint64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Ragged) -> ByKey:
        """From a table's mentions or statements."""
        order = np.argsort(rows["keys"], kind="stable")
        keys, starts, counts = np.unique(rows["keys"][order], return_index=True, return_counts=True)
        return cls(keys, order, starts, counts)

    def rows(self, keys: NDArray[np.uint64]) -> dict[int, list[int]]:
        """Rows about some keys, ascending; the keys in the order of their first rows, without those that have none."""
        places = np.minimum(np.searchsorted(self.keys, keys), max(0, len(self.keys) - 1))
        places = places[self.keys[places] == keys] if len(self.keys) else places[:0]
        places = places[np.argsort(self.order[self.starts[places]])]
        starts = self.starts[places]
        spans = zip(self.keys[places].tolist(), starts.tolist(), (starts + self.counts[places]).tolist(), strict=True)
        return {key: self.order[start:end].tolist() for key, start, end in spans}

    def first(self, keys: NDArray[np.uint64], worth: NDArray[np.int64]) -> dict[int, int]:
        """Of some keys that have rows, the row of most worth, the first of several.

        Args:
            keys: Which.
            worth: Of every row of the corpus.
        """
        places = np.searchsorted(self.keys, keys)
        best = np.lexsort((-worth[self.order], np.repeat(np.arange(len(self.keys)), self.counts)))
        rows = self.order[best[self.starts[places]]]
        return dict(zip(keys.tolist(), rows.tolist(), strict=True))

    def above(self, limit: int) -> NDArray[np.uint64]:
        """Keys with more rows than a limit."""
        return self.keys[self.counts > limit]
