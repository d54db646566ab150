"""`GroupedRows`: columns of rows that belong to groups, laid out group after group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GroupedRows"]


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows of several columns in groups.

    Attributes:
        counts: Rows of each group, int64 `[groups]`.
        columns: By name, each `[rows]`.
    """

    counts: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, groups: Sequence[Sequence[tuple[int, ...]]], types: Mapping[str, Any]) -> GroupedRows:
        """From rows per group.

        Args:
            groups: One value per column in each row.
            types: Type by name of the column.
        """
        counts = np.array([len(rows) for rows in groups], dtype=np.int64)
        values = list(zip(*(row for rows in groups for row in rows), strict=True)) or [()] * len(types)
        columns = {
            name: np.array(column, dtype=kind) for (name, kind), column in zip(types.items(), values, strict=True)
        }
        return cls(counts, columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column."""
        return self.columns[name]

    @property
    def groups(self) -> NDArray[np.int64]:
        """Group of every row."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)

    def take(self, groups: NDArray[np.int64]) -> GroupedRows:
        """Some groups, in another order."""
        counts = self.counts[groups]
        rows = ranges((np.cumsum(self.counts) - self.counts)[groups], counts)
        return GroupedRows(counts, {name: column[rows] for name, column in self.columns.items()})

    def followed_by(self, other: GroupedRows) -> GroupedRows:
        """These groups, then others."""
        columns = {name: np.concatenate([column, other[name]]) for name, column in self.columns.items()}
        return GroupedRows(np.concatenate([self.counts, other.counts]), columns)

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """All arrays by name, for a file."""
        return {f"{prefix}.counts": self.counts, **{f"{prefix}.{name}": found for name, found in self.columns.items()}}

    @classmethod
    def from_arrays(cls, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> GroupedRows:
        """What `arrays` gave."""
        names = [name.removeprefix(f"{prefix}.") for name in arrays if name.startswith(f"{prefix}.")]
        columns = {name: arrays[f"{prefix}.{name}"] for name in names if name != "counts"}
        return cls(arrays[f"{prefix}.counts"], columns)
