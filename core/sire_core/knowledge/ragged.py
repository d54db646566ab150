"""`Ragged`: columns in groups of different lengths; and serialization of arrays."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ragged:
    """Columns of equal length, cut into groups.

    Attributes:
        counts: Rows of each group, int64 `[groups]`.
        columns: Arrays by name, `[sum(counts)]` each.
    """

    counts: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, groups: Sequence[Sequence[tuple[Any, ...]]], types: Mapping[str, Any]) -> Ragged:
        """Build columns from rows by group; `types` has the dtype of every column."""
        rows = [row for group in groups for row in group]
        return cls(
            np.array([len(group) for group in groups], dtype=np.int64),
            # Column by column: rows side by side would need an iterator each, for the collector of garbage to follow.
            {
                name: np.fromiter(map(itemgetter(index), rows), dtype=kind, count=len(rows))
                for index, (name, kind) in enumerate(types.items())
            },
        )

    @classmethod
    def joined(cls, parts: Sequence[Ragged]) -> Ragged:
        """Concatenate the groups of several."""
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
        return cls(np.concatenate([part.counts for part in parts]), columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column."""
        return self.columns[name]

    def starts(self) -> NDArray[np.int64]:
        """Return the first row of every group, `[groups]`."""
        return np.asarray(np.cumsum(self.counts) - self.counts, dtype=np.int64)

    def groups(self) -> NDArray[np.int64]:
        """Return the group of every row, `[rows]`."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)

    def chosen(self, others: Ragged, groups: NDArray[np.int64]) -> Ragged:
        """Select groups of `self` and `others`, whose numbers follow on, in the order given."""
        both = Ragged.joined([self, others])
        return both if np.array_equal(groups, np.arange(len(both.counts))) else both.take(groups)

    def take(self, groups: NDArray[np.int64]) -> Ragged:
        """Select groups, in the order given."""
        rows = ranges(self.starts()[groups], self.counts[groups])
        return Ragged(self.counts[groups], {name: column[rows] for name, column in self.columns.items()})

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return all arrays by name, for a file."""
        return {
            f"{prefix}.counts": self.counts,
            **{f"{prefix}.{name}": column for name, column in self.columns.items()},
        }

    @classmethod
    def from_arrays(cls, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Ragged:
        """Inverse of `arrays`."""
        names = [name.removeprefix(f"{prefix}.") for name in arrays if name.startswith(f"{prefix}.")]
        columns = {name: arrays[f"{prefix}.{name}"] for name in names if name != "counts"}
        return cls(arrays[f"{prefix}.counts"], columns)


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Serialize arrays by name, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))  # type: ignore[arg-type] # numpy's stub takes `allow_pickle` for an array
    return buffer.getvalue()


def unpack_arrays(note: bytes, *, in_place: bool = False) -> dict[str, NDArray[Any]]:
    """Inverse of `pack_arrays`; `in_place` returns read-only arrays over the bytes instead of copies."""
    # numpy reads every array through a file object and adds up its checksum, which the store has done: that takes ten
    # times as long.
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(io.BytesIO(note)) as archive:
        for member in archive.infolist():
            name, extra = struct.unpack_from("<HH", note, member.header_offset + _LENGTHS)
            start = member.header_offset + _LENGTHS + 4 + name + extra
            header = _HEADER.match(note, start)
            if header is None:
                values = np.lib.format.read_array(io.BytesIO(archive.read(member)), allow_pickle=False)
            else:
                size = int(header["size"])
                values = np.frombuffer(note, np.dtype(header["type"].decode()), size, header.end())
                values = values if in_place else values.copy()
            arrays[member.filename.removesuffix(".npy")] = values
    return arrays


_LENGTHS = 26
"""Offset of the lengths of name and extra field in the header of a zip member."""
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<type>[^']+)', 'fortran_order': False, 'shape': \((?P<size>\d+),\), \} *\n",
    re.DOTALL,
)
"""Header of a one-dimensional array in the npy format."""
