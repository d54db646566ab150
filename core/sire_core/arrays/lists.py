"""Many short lists as two arrays (`Lists`), rows in groups (`Ragged`), texts (`PackedTexts`), and records of such."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sire_core.arrays.grouping import GOLDEN, mixed, ranges, row_pointers, run_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols.models import BoolArray, FloatArray, HashArray, Int32Array, IntArray

    Whole = NDArray[np.signedinteger[Any]]

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Lists:
    """List i is `values[starts[i]:starts[i + 1]]`."""

    starts: IntArray  # int64 `[lists + 1]`
    values: Int32Array  # int32 `[total]`

    @classmethod
    def of_pairs(cls, lists: Whole, values: Whole, size: int) -> Lists:
        """From pairs of a list and a value of it, at least 0; repeated pairs count once, values ascend."""
        width = int(values.max(initial=0)).bit_length()
        pairs = _sorted_pairs(lists, values, width)
        return cls._of_sorted(pairs[run_starts(pairs)], width, size)

    @classmethod
    def counted(cls, lists: Whole, values: Whole, size: int) -> tuple[Lists, Int32Array]:
        """As `of_pairs`, and how often each pair stands there."""
        width = int(values.max(initial=0)).bit_length()
        pairs = _sorted_pairs(lists, values, width)
        first = run_starts(pairs)
        counts = np.diff(np.flatnonzero(first), append=len(pairs)).astype(np.int32)
        return cls._of_sorted(pairs[first], width, size), counts

    @classmethod
    def _of_sorted(cls, pairs: IntArray, width: int, size: int) -> Lists:
        """From distinct pairs of `_sorted_pairs`."""
        return cls(row_pointers(pairs >> width, size), (pairs & ((1 << width) - 1)).astype(np.int32))

    @classmethod
    def of_runs(cls, lists: Whole, values: Whole, size: int) -> Lists:
        """From pairs of a list and a value of it, lists ascending: values keep their order, repeated ones stay."""
        return cls(row_pointers(lists, size), values.astype(np.int32))

    @classmethod
    def of_lengths(cls, lengths: Sequence[int] | IntArray, values: Sequence[int] | Whole) -> Lists:
        """From the length of every list, and their values one list after the other."""
        starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)
        return cls(starts, np.asarray(values, dtype=np.int32))

    def chosen(self, rows: IntArray) -> Lists:
        """Some of the lists, in this order."""
        if np.array_equal(rows, np.arange(len(self))):
            return self
        lengths = self.lengths(rows)
        return Lists.of_lengths(lengths, self.values[ranges(self.starts[rows], lengths)])

    def followed_by(self, others: Lists) -> Lists:
        """These lists and others behind them."""
        starts = np.concatenate([self.starts, others.starts[1:] + self.starts[-1]])
        return Lists(starts, np.concatenate([self.values, others.values]))

    def updated(
        self, lists: IntArray, values: IntArray, new: Lists, *columns: tuple[NDArray[Any], NDArray[Any]]
    ) -> tuple[Lists, list[NDArray[Any]]]:
        """These lists with new values, and columns aligned with both: list i is now `lists[i]`, value v `values[v]`.

        Values of a list ascend, before and after; -1 stands for what is gone.
        """
        if not len(self.values):
            return new, [column for _, column in columns]
        now, sizes = values[self.values], np.zeros(len(new), dtype=np.int64)
        olds = [column for column, _ in columns]
        if (values < 0).any():
            rows = np.flatnonzero(now >= 0)
            now, olds = now[rows], [column[rows] for column in olds]
            sizes[:] = np.bincount(lists.repeat(self.sizes())[rows], minlength=len(new))
        else:
            sizes[lists] = self.sizes()
        starts = np.append(0, np.cumsum(sizes))
        low, high = starts[:-1].repeat(new.sizes()), starts[1:].repeat(new.sizes())
        while (low < high).any():
            middle = (low + high) // 2
            before = (low < high) & (now[np.minimum(middle, len(now) - 1)] < new.values)
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        inserted = [np.insert(old, low, column) for old, (_, column) in zip(olds, columns, strict=True)]
        return Lists(starts + new.starts, np.insert(now.astype(np.int32), low, new.values)), inserted

    def __len__(self) -> int:
        """Number of lists."""
        return len(self.starts) - 1

    def lengths(self, rows: IntArray) -> IntArray:
        """Lengths of some lists."""
        return self.starts[rows + 1] - self.starts[rows]

    def sizes(self) -> IntArray:
        """Lengths of all lists."""
        return np.diff(self.starts)

    def owners(self) -> IntArray:
        """The list of every value."""
        return np.arange(len(self)).repeat(self.sizes())

    def kept(self, mask: BoolArray) -> Lists:
        """These lists with some of their values."""
        return Lists.of_runs(self.owners()[mask], self.values[mask], len(self))

    def take(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Some lists, one after the other."""
        lengths = self.lengths(rows)
        values = self.values[ranges(self.starts[rows], lengths)]
        return np.arange(len(rows)).repeat(lengths), values.astype(np.int64)

    def of(self, row: int) -> IntArray:
        """One list."""
        return self.values[self.starts[row] : self.starts[row + 1]].astype(np.int64)

    def inverted(self, size: int) -> Lists:
        """The lists that hold each of `size` values."""
        return Lists.of_pairs(self.values.astype(np.int64), self.owners(), size)


@dataclass(frozen=True, slots=True)
class Ragged:
    """Columns of equal length, cut into groups."""

    counts: IntArray  # Rows of each group, int64 `[groups]`
    columns: Mapping[str, NDArray[Any]]  # Arrays by name, `[sum(counts)]` each

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

    def starts(self) -> IntArray:
        """Return the first row of every group, `[groups]`."""
        return np.asarray(np.cumsum(self.counts) - self.counts, dtype=np.int64)

    def groups(self) -> IntArray:
        """Return the group of every row, `[rows]`."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)

    def chosen(self, others: Ragged, groups: IntArray) -> Ragged:
        """Select groups of `self` and `others`, whose numbers follow on, in the order given."""
        both = Ragged.joined([self, others])
        return both if np.array_equal(groups, np.arange(len(both.counts))) else both.take(groups)

    def take(self, groups: IntArray) -> Ragged:
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


def arrays_of(record: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """Arrays and texts in the fields of a dataclass by name, those of a nested one as `field.name`, no other fields."""
    arrays: dict[str, NDArray[Any]] = {}
    for entry in fields(record):
        value, name = getattr(record, entry.name), f"{prefix}{entry.name}"
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, (str, tuple)):
            texts = [value] if isinstance(value, str) else value
            arrays[name] = np.array([text.encode() for text in texts] or np.zeros(0, dtype="S1"))
        elif isinstance(value, Ragged):
            arrays |= value.arrays(name)
        elif is_dataclass(value):
            arrays |= arrays_of(value, f"{name}.")
    return arrays


def record_of(kind: type[Record], arrays: Mapping[str, NDArray[Any]], prefix: str = "", **others: Any) -> Record:
    """Inverse of `arrays_of`; `others` are the fields that it leaves out."""
    values: dict[str, Any] = dict(others)
    module = sys.modules[kind.__module__]
    for entry in fields(kind):  # type: ignore[arg-type] # a dataclass
        name = f"{prefix}{entry.name}"
        if not entry.init or entry.name in others:
            continue
        if name in arrays and str(entry.type).startswith(("str", "tuple[")):
            texts = tuple(text.decode() for text in arrays[name].tolist())
            values[entry.name] = texts if entry.type != "str" else texts[0]
        elif name in arrays:
            values[entry.name] = arrays[name]
        elif f"{name}.counts" in arrays:
            values[entry.name] = Ragged.from_arrays(name, arrays)
        else:
            values[entry.name] = record_of(getattr(module, str(entry.type)), arrays, f"{name}.")
    return kind(**values)


def _sorted_pairs(lists: Whole, values: Whole, width: int) -> IntArray:
    """Pairs of a list and a value of at most `width` bits as numbers, ascending."""
    # Importing scipy, which does this in three quarters of the time, takes as long as this for ten million pairs.
    pairs = lists.astype(np.int64)
    pairs <<= width
    pairs |= values
    pairs.sort()
    return pairs


_LINE_END = 10
_GATHERED_TEXTS = 1 << 16


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """Texts of any letters, each decoded when it is asked for."""

    letters: NDArray[np.uint8]  # Of all texts, uint8
    ends: NDArray[Any]  # Where each text ends, `[texts]`

    @classmethod
    def of(cls, texts: Sequence[str]) -> PackedTexts:
        """Pack texts."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)

    @classmethod
    def joined(cls, parts: Sequence[PackedTexts]) -> PackedTexts:
        """Concatenate the texts of several."""
        starts = np.cumsum([0, *(len(part.letters) for part in parts)])
        ends = [part.ends + start for part, start in zip(parts, starts[:-1], strict=True)]
        return cls(np.concatenate([part.letters for part in parts]), np.concatenate(ends))

    def sizes(self) -> IntArray:
        """Bytes of all texts."""
        return np.diff(self.ends, prepend=0)

    def chosen(self, rows: IntArray) -> PackedTexts:
        """Some of the texts, in this order; in parts, since the place of a letter is eight times as long."""
        sizes = self.sizes()[rows]
        starts = self.ends[rows] - sizes
        parts = np.array_split(np.arange(len(rows)), 1 + len(rows) // _GATHERED_TEXTS)
        letters = [self.letters[ranges(starts[part], sizes[part])] for part in parts]
        return PackedTexts(np.concatenate(letters), np.cumsum(sizes))

    def narrow(self) -> PackedTexts:
        """Store the ends in as few bytes as hold the last."""
        return PackedTexts(self.letters, self.ends.astype(np.min_scalar_type(len(self.letters))))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        start = int(self.ends[number - 1]) if number else 0
        return self.letters[start : int(self.ends[number])].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(len(self)))


def word_keys(words: Sequence[str]) -> HashArray:
    """A hash of each word, uint64 `[len(words)]`: a polynomial of its bytes, mixed (splitmix64)."""
    if not words:
        return np.zeros(0, dtype=np.uint64)
    joined = "\n".join(words).encode("utf-8", "surrogatepass")
    letters = np.append(np.frombuffer(joined, dtype=np.uint8), np.uint8(_LINE_END))
    ends = np.flatnonzero(letters == _LINE_END)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    powers = np.cumprod(np.full(int(lengths.max()), GOLDEN))  # wraps around at 64 bits, as wanted
    positions = np.arange(len(letters)) - np.repeat(starts, lengths)
    return mixed(np.add.reduceat(letters.astype(np.uint64) * powers[positions], starts))


_FEW_SUMS, _MANY_SUMS = 16, 8192
"""Sums that are added row by row: so few always, and so many in all before scipy is worth importing."""
_added: Counter[str] = Counter()  # Sums in this process


def weighted_sums(
    weights: FloatArray, rows: NDArray[np.integer[Any]], ends: NDArray[np.integer[Any]], table: FloatArray
) -> FloatArray:
    """Weighted sums of rows of a table, `[len(ends) - 1, table.shape[1]]`: of sum i the rows from `ends[i]`."""
    size = len(ends) - 1
    _added["sums"] += size
    if (size > _FEW_SUMS and ("scipy.sparse" in sys.modules or _added["sums"] > _MANY_SUMS)) or not size:
        from scipy.sparse import csr_array

        return np.asarray(csr_array((weights, rows, ends), shape=(size, len(table))) @ table, dtype=np.float32)
    parts = (slice(*pair) for pair in pairwise(ends.tolist()))
    return np.stack([np.add.reduce(weights[part, None] * table[rows[part]], axis=0) for part in parts])
