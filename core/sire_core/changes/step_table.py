"""`Table`: rows and outputs of one step, packed in memory, as stored and as a change leaves them."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.grouping import ranges
from sire_core.changes.step_rows import Entry, Group, Item, OutputChange, StoredOutput, decode, decode_all, encode
from sire_core.protocols import Int32Array, IntArray, TableChange

if TYPE_CHECKING:
    from sire_core.storage.step_tables import OutputRow, StepTables, StoredRow


_OBJECTS_AT_ONCE = 4096  # Rows or groups that are objects at the same time when all are gone through
_NOTHING = encode([None])[:-1]  # What the body of an output without data begins with


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows in the order in which they came, their bodies as they are stored.

    As objects they would take four times as much memory, in pieces so small that it is not given back.
    """

    keys: Mapping[str, int]  # Distinct keys, with their numbers
    items: Sequence[str]  # Ids of the items by number
    key_numbers: Int32Array  # Number of the key of every row
    item_numbers: Int32Array  # Number of the item of every row
    places: IntArray  # See `Entry`, as for `numbers`
    numbers: IntArray  # Of the rows inside their passages
    ends: IntArray  # The body of row i is `bodies[ends[i]:ends[i + 1]]`
    bodies: bytes | bytearray

    @classmethod
    def of(cls, rows: Iterable[StoredRow]) -> PackedRows:
        """From rows as they are stored."""
        keys, places, numbers, items, bodies = tuple(zip(*rows, strict=True)) or ((),) * 5
        key_of = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        item_of = {item: number for number, item in enumerate(dict.fromkeys(items))}
        return cls(
            key_of,
            list(item_of),
            np.array([key_of[key] for key in keys], dtype=np.int32),
            np.array([item_of[item] for item in items], dtype=np.int32),
            np.array(places, dtype=np.int64),
            np.array(numbers, dtype=np.int64),
            np.cumsum([0, *map(len, bodies)], dtype=np.int64),
            b"".join(bodies),
        )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.key_numbers)

    def __iter__(self) -> Iterator[StoredRow]:
        """All rows as they are stored, key by key in the order of the keys; made one by one."""
        rank = np.empty(len(self.keys), dtype=np.int32)
        rank[[number for _, number in sorted(self.keys.items())]] = np.arange(len(self.keys), dtype=np.int32)
        return self.stored(np.argsort(rank[self.key_numbers], kind="stable"))

    def of_keys(self, keys: Collection[str]) -> IntArray:
        """Rows that have some of these keys."""
        return self._having(self.key_numbers, [self.keys[key] for key in keys if key in self.keys], len(self.keys))

    def of_items(self, items: Collection[str]) -> IntArray:
        """Rows of some items."""
        numbers = [number for number, item in enumerate(self.items) if item in items]
        return self._having(self.item_numbers, numbers, len(self.items))

    def _having(self, column: Int32Array, wanted: Sequence[int], size: int) -> IntArray:
        there = np.zeros(size, dtype=bool)
        there[list(wanted)] = True
        return np.flatnonzero(there[column])

    def chosen(self, rows: IntArray) -> PackedRows:
        """Some of the rows."""
        return self if len(rows) == len(self) else PackedRows.of(self.stored(rows))

    def sizes(self, keys: Collection[str]) -> dict[str, int]:
        """Number of rows that have a key, of those keys that have any."""
        counts = np.bincount(self.key_numbers, minlength=len(self.keys)) if len(self) else ()
        return {key: int(counts[self.keys[key]]) for key in keys if key in self.keys}

    def entries(self, rows: IntArray | None = None) -> list[Entry]:
        """Some of the rows, or all, as objects."""
        return _entries(self.stored(rows))

    def stored(self, rows: IntArray | None = None) -> Iterator[StoredRow]:
        """Some of the rows, or all, as they are stored."""
        rows = np.arange(len(self)) if rows is None else rows
        keys = list(self.keys)
        for start in range(0, len(rows), _OBJECTS_AT_ONCE):
            part = rows[start : start + _OBJECTS_AT_ONCE]
            columns = (self.key_numbers, self.places, self.numbers, self.item_numbers, self.ends[:-1], self.ends[1:])
            for key, place, number, item, begin, end in zip(*(c[part].tolist() for c in columns), strict=True):
                yield keys[key], place, number, self.items[item], bytes(self.bodies[begin:end])


class JoinedRows:
    """Rows that come in parts; a part is not needed any more when it was added."""

    def __init__(self) -> None:
        self._keys: dict[str, int] = {}
        self._items: dict[str, int] = {}
        self._columns: tuple[list[Any], ...] = ([], [], [], [], [])
        self._bodies = bytearray()

    def add(self, part: PackedRows) -> None:
        """Append the rows of a part."""
        keys, items = self._keys, self._items
        key_of = np.array([keys.setdefault(key, len(keys)) for key in part.keys], dtype=np.int32)
        item_of = np.array([items.setdefault(item, len(items)) for item in part.items], dtype=np.int32)
        lengths = np.diff(part.ends).astype(np.int32)
        new = (key_of[part.key_numbers], item_of[part.item_numbers], part.places, part.numbers, lengths)
        for column, values in zip(self._columns, new, strict=True):
            column.append(values)
        self._bodies += part.bodies

    def finish(self) -> PackedRows:
        """All of them; nothing can be added any more."""
        empty = PackedRows.of(())
        types = (empty.key_numbers, empty.item_numbers, empty.places, empty.numbers, empty.item_numbers)
        key_numbers, item_numbers, places, numbers, lengths = (
            _drained(column, first) for column, first in zip(self._columns, types, strict=True)
        )
        ends = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=ends[1:])
        return PackedRows(self._keys, list(self._items), key_numbers, item_numbers, places, numbers, ends, self._bodies)


def _drained(parts: list[Any], first: Any) -> Any:
    """Arrays one after the other, which are let go of."""
    joined = np.concatenate([first, *parts])
    parts.clear()
    return joined


class PackedGroups(Sequence[Group]):
    """Groups that have rows, in corpus order of their first rows; a group is made whenever it is asked for."""

    def __init__(self, rows: PackedRows, names: Sequence[str], group_of: IntArray, member: IntArray) -> None:
        rank = np.empty(len(rows.items), dtype=np.int64)
        rank[sorted(range(len(rows.items)), key=rows.items.__getitem__)] = np.arange(len(rows.items))
        columns = (member[rows.key_numbers], rank[rows.item_numbers], rows.numbers, rows.places)
        groups = group_of[rows.key_numbers]
        order = np.lexsort((*columns, groups))
        order = order[int((groups < 0).sum()) :]
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        first = order[starts]
        by_place = np.lexsort([column[first] for column in columns[1:]])
        self._rows = rows
        self._keys = [names[group] for group in groups[first[by_place]].tolist()]
        self._starts = starts[by_place]
        self._lengths = np.diff(np.append(starts, len(order)))[by_place]
        self._order = order

    @classmethod
    def of(cls, rows: PackedRows, wanted: Mapping[str, Sequence[str]]) -> PackedGroups:
        """Some groups."""
        group_of = np.full(len(rows.keys), -1, dtype=np.int64)
        member = np.zeros(len(rows.keys), dtype=np.int64)
        for group, keys in enumerate(wanted.values()):
            for place, key in enumerate(keys):
                if (number := rows.keys.get(key)) is not None:
                    group_of[number], member[number] = group, place
        return cls(rows, list(wanted), group_of, member)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, place: Any) -> Any:
        return self._made(place) if isinstance(place, slice) else self._made(slice(place, place + 1 or None))[0]

    def __iter__(self) -> Iterator[Group]:
        for start in range(0, len(self), _OBJECTS_AT_ONCE):
            yield from self._made(slice(start, start + _OBJECTS_AT_ONCE))

    def _made(self, part: slice) -> list[Group]:
        lengths = self._lengths[part]
        entries = self._rows.entries(self._order[ranges(self._starts[part], lengths)])
        ends = np.cumsum(lengths).tolist()
        return [
            Group(key, entries[start:end]) for key, start, end in zip(self._keys[part], [0, *ends], ends, strict=False)
        ]

    def first_places(self) -> Iterator[tuple[str, int, int]]:
        """Key of every group, with place and number of its first row."""
        for start in range(0, len(self), _OBJECTS_AT_ONCE):
            part = slice(start, start + _OBJECTS_AT_ONCE)
            first = self._order[self._starts[part]]
            yield from zip(
                self._keys[part], self._rows.places[first].tolist(), self._rows.numbers[first].tolist(), strict=True
            )


class PackedOutputs:
    """Outputs by key, in the order in which they came; as objects they would take six times as much memory."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._places, self._numbers, self._ends = array("q"), array("q"), array("q", (0,))
        self._failed = bytearray()
        self._bodies = bytearray()

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        """Number of outputs."""
        return len(self._rows)

    def __iter__(self) -> Iterator[OutputRow]:
        """All as they are written, made one by one."""
        for key, row in self._rows.items():
            yield key, self._places[row], self._numbers[row], bool(self._failed[row]), self._body(row)

    def put(self, key: str, output: StoredOutput) -> None:
        """Set the output of a key."""
        self._rows[key] = len(self._places)
        self._places.append(output.place)
        self._numbers.append(output.number)
        self._failed.append(output.failed)
        self._bodies += encode([output.data, output.units])
        self._ends.append(len(self._bodies))

    def drop(self, key: str) -> None:
        """Forget the output of a key, if there is one."""
        self._rows.pop(key, None)

    def data(self, key: str) -> Any:
        """Data of the output of a key."""
        return decode(self._body(self._rows[key]))[0]

    def items(self) -> Iterator[tuple[str, StoredOutput]]:
        """All as objects, by key."""
        keys = self.keys()
        for start in range(0, len(keys), _OBJECTS_AT_ONCE):
            yield from self.of(keys[start : start + _OBJECTS_AT_ONCE])

    def of(self, keys: Sequence[str]) -> list[tuple[str, StoredOutput]]:
        """Outputs of some keys, in their order."""
        rows = [self._rows[key] for key in keys]
        bodies = decode_all([self._body(row) for row in rows])
        return [
            (key, StoredOutput(self._places[row], self._numbers[row], data, units, bool(self._failed[row])))
            for key, row, (data, units) in zip(keys, rows, bodies, strict=True)
        ]

    def keys(self) -> list[str]:
        """All keys."""
        return list(self._rows)

    def keys_in_order(self) -> list[str]:
        """Keys of those that have data, in corpus order of their first rows."""
        keys = [key for key, row in self._rows.items() if not self._bodies.startswith(_NOTHING, self._ends[row])]
        return sorted(keys, key=lambda key: (self._places[row := self._rows[key]], self._numbers[row], key))

    def _body(self, row: int) -> bytes:
        return bytes(self._bodies[self._ends[row] : self._ends[row + 1]])


@dataclass(frozen=True, slots=True)
class OutputChanges:
    """Outputs of a step that differ, as changes."""

    made: PackedOutputs  # Those that are new or others than before
    before: dict[str, StoredOutput] = field(default_factory=dict)  # What was there before, or is gone

    def __iter__(self) -> Iterator[OutputChange]:
        for key, output in self.made.items():
            yield OutputChange(key, self.before.get(key), output)
        yield from (OutputChange(key, output, None) for key, output in self.before.items() if key not in self.made)

    def items(self) -> tuple[Sequence[Item], Collection[str]]:
        """Return the outputs as items of the next step, and the keys of all that differ."""
        return MadeItems(self.made), {**dict.fromkeys(self.made.keys()), **self.before}


class MadeItems(Sequence[Item]):
    """Outputs with data as items, in corpus order."""

    def __init__(self, outputs: PackedOutputs) -> None:
        self._outputs, self._keys = outputs, outputs.keys_in_order()

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, place: Any) -> Any:
        part = place if isinstance(place, slice) else slice(place, place + 1 or None)
        items = [Item(key, o.place, o.number, o.data) for key, o in self._outputs.of(self._keys[part])]
        return items if isinstance(place, slice) else items[0]


@dataclass(slots=True)
class Table:
    """Rows and outputs of a step; what differs from the store is kept in memory until the commit."""

    name: str  # Key of the table in the store
    store: StepTables  # What is stored
    is_new: bool  # Whether nothing is stored, so that nothing has to be read
    names: Table | None = None  # What keys were resolved to, where the step does that
    resolved: Mapping[str, str] = field(default_factory=dict)
    resolved_before: Mapping[str, str] = field(default_factory=dict)
    remembered: Mapping[str, Sequence[Entry]] = field(
        default_factory=dict
    )  # Rows that the next change reads again, by key
    _gone: set[str] = field(default_factory=set)
    _rows: PackedRows = field(default_factory=lambda: PackedRows.of(()))
    made: PackedOutputs = field(default_factory=PackedOutputs)  # Outputs that are new, or others than before
    _dropped: dict[str, None] = field(default_factory=dict)

    @property
    def merged(self) -> Mapping[str, str]:
        """Resolved name of every key that does not stand for itself."""
        return self.names.resolved if self.names else {}

    @property
    def merged_before(self) -> Mapping[str, str]:
        """Resolved names before the change."""
        return self.names.resolved_before if self.names else {}

    def resolve(self, names: Mapping[str, str]) -> None:
        """Make this a table of names: what each was resolved to."""
        if not self.is_new:
            self.resolved_before = {key: decode(body)[0] for key, *_, body in self.store.all_outputs(self.name)}
        self.resolved = names
        for name, resolved in names.items():
            if self.resolved_before.get(name) != resolved:
                self.put_output(name, StoredOutput(0, 0, resolved))
        for name in self.resolved_before:
            if name not in names:
                self.drop_output(name)

    def parts(self) -> list[Table]:
        """The table, and that of its names."""
        return [self, self.names] if self.names else [self]

    def replace_items(self, items: Collection[str], rows: PackedRows, *, several: bool = False) -> Collection[str]:
        """Give items other rows."""
        if self.is_new:
            self._rows = rows
            return rows.keys.keys()
        before = _by_item_and_key(self.store.rows_of_items(self.name, list(items)), several)
        after = _by_item_and_key(rows.stored(), several)
        differing = {pair for pair in {*before, *after} if before.get(pair) != after.get(pair)}
        changed = {item for item, _ in differing}
        self._gone |= changed
        self._rows = rows.chosen(rows.of_items(changed))
        return {key for _, key in differing}

    def packed(self, keys: Collection[str]) -> PackedRows:
        """Rows of some keys, and perhaps of others."""
        if self.is_new:
            return self._rows
        rows = (row for row in self.store.rows_of_keys(self.name, list(keys)) if row[3] not in self._gone)
        joined = JoinedRows()
        joined.add(PackedRows.of(rows))
        joined.add(self._rows)
        return joined.finish()

    def entries(self, keys: Collection[str]) -> dict[str, list[Entry]]:
        """Rows by their own key, in corpus order; keys without rows are left out."""
        remembered: Mapping[str, list[Entry]] = {} if self.is_new else self.store.remembered.get(self.name) or {}
        by_key = {key: remembered[key] for key in keys if remembered.get(key)}
        unread = [] if self.is_new else [key for key in keys if key not in remembered]
        for entry in _entries(self.store.rows_of_keys(self.name, unread) if unread else ()):
            by_key.setdefault(entry.key, []).append(entry)
        touched = {key for key, entries in by_key.items() for entry in entries if entry.item in self._gone}
        remaining = {key: [entry for entry in by_key[key] if entry.item not in self._gone] for key in touched}
        for entry in self._rows.entries(self._rows.of_keys(keys)):
            remaining.setdefault(entry.key, [*by_key.get(entry.key, ())]).append(entry)
        by_key |= {key: sorted(entries, key=itemgetter(0, 1, 2)) for key, entries in remaining.items()}
        return {key: entries for key, entries in by_key.items() if entries}

    def entries_of(self, items: Collection[str]) -> list[Entry]:
        """Rows of items."""
        wanted = set(items)
        stored = () if self.is_new else self.store.rows_of_items(self.name, sorted(wanted - self._gone))
        return [*self._rows.entries(self._rows.of_items(wanted)), *_entries(stored)]

    def all_entries(self) -> Iterable[Entry]:
        """Every row of the table, in no particular order."""
        if not self.is_new:
            for key, place, number, item, body in self.store.all_rows(self.name):
                if item not in self._gone:
                    yield Entry(place, number, item, key, decode(body))
        yield from self._rows.entries()

    def sizes(self, keys: Collection[str]) -> dict[str, int]:
        """Number of rows by key; keys without rows are left out."""
        counts = {} if self.is_new else self.store.sizes(self.name, list(keys), self._gone)
        for key, count in self._rows.sizes(keys).items():
            counts[key] = counts.get(key, 0) + count
        return counts

    def sizes_before(self, keys: Collection[str]) -> dict[str, int]:
        """Sizes before the change."""
        return {} if self.is_new else self.store.sizes(self.name, list(keys), ())

    def keys_above(self, rows: int) -> list[str]:
        """Keys that had more rows than a number before the change."""
        return [] if self.is_new else self.store.keys_above(self.name, rows)

    def put_output(self, key: str, output: StoredOutput) -> None:
        """Set the output of a key."""
        self._dropped.pop(key, None)
        self.made.put(key, output)

    def drop_output(self, key: str) -> None:
        """Leave a key without output."""
        self.made.drop(key)
        self._dropped[key] = None

    def stored_outputs(self, keys: Collection[str]) -> dict[str, StoredOutput]:
        """Outputs before the change, by key."""
        if self.is_new:
            return {}
        return {key: _output(row) for key, *row in self.store.outputs(self.name, list(keys))}

    def data(self, keys: Collection[str]) -> dict[str, Any]:
        """Data of the outputs of some keys after the change; keys without output are left out."""
        by_key = {key: self.made.data(key) for key in keys if key in self.made}
        if not self.is_new:
            others = [key for key in keys if key not in by_key and key not in self._dropped]
            by_key.update((key, _output(row).data) for key, *row in self.store.outputs(self.name, others))
        return by_key

    def all_outputs(self) -> dict[str, StoredOutput]:
        """Outputs after the change by key, in corpus order of their first rows."""
        outputs = dict(self.made.items())
        if not self.is_new:
            rows = [r for r in self.store.all_outputs(self.name) if r[0] not in outputs and r[0] not in self._dropped]
            bodies = decode_all([row[4] for row in rows])
            for (key, place, number, failed, _), (data, units) in zip(rows, bodies, strict=True):
                outputs[key] = StoredOutput(place, number, data, units, bool(failed))
        return dict(sorted(outputs.items(), key=lambda pair: (pair[1].place, pair[1].number, pair[0])))

    def failed(self) -> list[str]:
        """Keys that failed before the change."""
        return [] if self.is_new else self.store.failed(self.name)

    def change(self) -> TableChange:
        """Return the rows and outputs that have to be written."""
        return TableChange(
            drop_items=tuple(sorted(self._gone)),
            put_rows=self._rows,
            drop_outputs=tuple(self._dropped),
            put_outputs=self.made,
            remembered=self.remembered,
        )


def _entries(stored: Iterable[StoredRow]) -> list[Entry]:
    """Rows as objects; their bodies are decoded together."""
    rows = list(stored)
    bodies = decode_all([row[4] for row in rows])
    return [Entry(row[1], row[2], row[3], row[0], body) for row, body in zip(rows, bodies, strict=True)]


def _output(row: Sequence[Any]) -> StoredOutput:
    place, number, failed, body = row
    data, units = decode(body)
    return StoredOutput(place, number, data, units, bool(failed))


def _by_item_and_key(rows: Iterable[StoredRow], numbered: bool) -> dict[tuple[str, str], list[tuple[int, int, bytes]]]:
    rows_of: dict[tuple[str, str], list[tuple[int, int, bytes]]] = {}
    for key, place, number, item, body in rows:
        rows_of.setdefault((item, key), []).append((place, number if numbered else 0, body))
    return rows_of
