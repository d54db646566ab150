"""`Lists`: many short lists of numbers as two arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Whole = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True)
class Lists:
    """List i is `values[starts[i]:starts[i + 1]]`.

    Attributes:
        starts: int64 `[lists + 1]`.
        values: int32 `[total]`.
    """

    starts: Ints
    values: NDArray[np.int32]

    @classmethod
    def of_pairs(cls, lists: Whole, values: Whole, size: int) -> Lists:
        """From pairs of a list and a value of it, at least 0; repeated pairs count once, values ascend."""
        from scipy.sparse import coo_array

        shape = (size, int(values.max(initial=0)) + 1)
        # Counts what repeats and sorts lists that are out of order; those of pairs by value are not.
        rows = coo_array((np.ones(len(lists), dtype=np.int8), (lists, values)), shape=shape).tocsr()
        return cls(rows.indptr.astype(np.int64), rows.indices.astype(np.int32))

    @classmethod
    def of_runs(cls, lists: Whole, values: Whole, size: int) -> Lists:
        """From pairs of a list and a value of it, lists ascending: values keep their order, repeated ones stay."""
        starts = np.searchsorted(lists, np.arange(size + 1, dtype=np.int64)).astype(np.int64)
        return cls(starts, values.astype(np.int32))

    @classmethod
    def of_lengths(cls, lengths: Sequence[int] | Ints, values: Sequence[int] | Whole) -> Lists:
        """From the length of every list, and their values one list after the other."""
        starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)
        return cls(starts, np.asarray(values, dtype=np.int32))

    def chosen(self, rows: Ints) -> Lists:
        """Some of the lists, in this order."""
        lengths = self.lengths(rows)
        return Lists.of_lengths(lengths, self.values[ranges(self.starts[rows], lengths)])

    def followed_by(self, others: Lists) -> Lists:
        """These lists and others behind them."""
        starts = np.concatenate([self.starts, others.starts[1:] + self.starts[-1]])
        return Lists(starts, np.concatenate([self.values, others.values]))

    def __len__(self) -> int:
        """How many lists."""
        return len(self.starts) - 1

    def lengths(self, rows: Ints) -> Ints:
        """Lengths of some lists."""
        return self.starts[rows + 1] - self.starts[rows]

    def take(self, rows: Ints) -> tuple[Ints, Ints]:
        """Some lists, one after the other.

        Returns the place in `rows` of the list of every value, and the values.
        """
        lengths = self.lengths(rows)
        found = self.values[ranges(self.starts[rows], lengths)]
        return np.arange(len(rows)).repeat(lengths), found.astype(np.int64)

    def of(self, row: int) -> Ints:
        """One list."""
        return self.values[self.starts[row] : self.starts[row + 1]].astype(np.int64)

    def inverted(self, size: int) -> Lists:
        """The lists that hold each of `size` values."""
        owners = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return Lists.of_pairs(self.values.astype(np.int64), owners, size)
