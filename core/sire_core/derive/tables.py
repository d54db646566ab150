"""`Table`: rows and outputs of one step, as stored and as a change leaves them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sire_core.derive.packed_rows import PackedGroups, PackedOutputs, PackedRows
from sire_core.derive.rows import Entry, StoredOutput, decode
from sire_core.protocols import TableChange

if TYPE_CHECKING:
    from sire_core.protocols import StoredRow, TableStore
    from sire_core.protocols.building import OutputRow


@dataclass(slots=True)
class Table:
    """Rows and outputs of a step; what differs from the store is kept in memory until the commit."""

    name: str  # Key of the table in the store
    store: TableStore  # What is stored
    is_new: bool  # Whether nothing is stored, so that nothing has to be read
    names: Table | None = None  # What keys were resolved to, where the step does that
    # Rows by key that a change has brought, where something was stored
    came: dict[str, list[Entry]] = field(default_factory=dict)
    # Rows by key that it has taken away; their numbers are not kept
    went: dict[str, list[Entry]] = field(default_factory=dict)
    resolved: Mapping[str, str] = field(default_factory=dict)
    resolved_before: Mapping[str, str] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _rows: PackedRows = field(default_factory=lambda: PackedRows.of(()))
    made: PackedOutputs = field(default_factory=PackedOutputs)  # Outputs that are new, or others than before
    _dropped: dict[str, None] = field(default_factory=dict)
    _known: Any = None

    @property
    def merged(self) -> Mapping[str, str]:
        """What every key was resolved to that does not stand for itself."""
        return self.names.resolved if self.names else {}

    @property
    def merged_before(self) -> Mapping[str, str]:
        """The same before the change."""
        return self.names.resolved_before if self.names else {}

    def resolve(self, names: Mapping[str, str]) -> None:
        """Make this a table of names: what each was resolved to."""
        if not self.is_new:
            self.resolved_before = {key: decode(body)[0] for key, *_, body in self.store.all_outputs(self.name)}
        self.resolved = names
        for name, found in names.items():
            if self.resolved_before.get(name) != found:
                self.put_output(name, StoredOutput(0, 0, found))
        for name in self.resolved_before:
            if name not in names:
                self.drop_output(name)

    def known(self) -> Any:
        """What was kept of the table as it was before the change, if this process made the one that led there."""
        return None if self.is_new else self.store.known(self.name)

    def keep(self, known: Any) -> None:
        """Have something at hand for the next change, in memory, that spares it from reading the table again."""
        self._known = known

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
        for entry in self._rows.entries():
            if (entry.item, entry.key) in differing:
                self.came.setdefault(entry.key, []).append(entry)
        for item, key in differing.intersection(before):
            gone = (Entry(place, 0, item, key, decode(body)) for place, _, body in before[item, key])
            self.went.setdefault(key, []).extend(gone)
        return {key for _, key in differing}

    def packed(self, keys: Collection[str]) -> PackedRows:
        """Rows of some keys, and perhaps of others."""
        if self.is_new:
            return self._rows
        rows = (row for row in self.store.rows_of_keys(self.name, list(keys)) if row[3] not in self._gone)
        return PackedRows.joined([PackedRows.of_stored(rows), self._rows])

    def entries(self, keys: Collection[str]) -> dict[str, list[Entry]]:
        """Rows by their own key, in corpus order; keys without rows are left out."""
        found: dict[str, list[Entry]] = {}
        rows = self.packed(keys)
        for entry in rows.entries(rows.of_keys(keys)):
            found.setdefault(entry.key, []).append(entry)
        for entries in found.values():
            entries.sort(key=_place)
        return found

    def entries_of(self, items: Collection[str]) -> list[Entry]:
        """Rows of items."""
        wanted = set(items)
        parts = [self._rows.chosen(self._rows.of_items(wanted))]
        if not self.is_new:
            parts.append(PackedRows.of_stored(self.store.rows_of_items(self.name, sorted(wanted - self._gone))))
        return [entry for part in parts for entry in part.entries()]

    def all_entries(self) -> Iterable[Entry]:
        """Every row of the table, in no particular order."""
        if not self.is_new:
            for row in self.store.all_rows(self.name):
                if row[3] not in self._gone:
                    yield _entry(row)
        yield from self._rows.entries()

    def sizes(self, keys: Collection[str]) -> dict[str, int]:
        """Number of rows by key; keys without rows are left out."""
        found = {} if self.is_new else self.store.sizes(self.name, list(keys), self._gone)
        for key, count in self._rows.sizes(keys).items():
            found[key] = found.get(key, 0) + count
        return found

    def sizes_before(self, keys: Collection[str]) -> dict[str, int]:
        """The same before the change."""
        return {} if self.is_new else self.store.sizes(self.name, list(keys), ())

    def keys_above(self, items: int) -> list[str]:
        """Keys that had rows of more items than a number before the change."""
        return [] if self.is_new else self.store.keys_above(self.name, items)

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
        found = {key: self.made.data(key) for key in keys if key in self.made}
        if not self.is_new:
            others = [key for key in keys if key not in found and key not in self._dropped]
            found.update((key, _output(row).data) for key, *row in self.store.outputs(self.name, others))
        return found

    def all_outputs(self) -> dict[str, StoredOutput]:
        """Outputs after the change by key, in corpus order of their first rows."""
        found = dict(self.made.items())
        if not self.is_new:
            for key, *row in self.store.all_outputs(self.name):
                if key not in found and key not in self._dropped:
                    found[key] = _output(row)
        return dict(sorted(found.items(), key=lambda pair: (pair[1].place, pair[1].number, pair[0])))

    def failed(self) -> list[str]:
        """Keys that failed before the change."""
        return [] if self.is_new else self.store.failed(self.name)

    def change(self) -> TableChange:
        """What has to be written."""
        return TableChange(
            drop_items=tuple(sorted(self._gone)),
            put_rows=_Rows(self._rows),
            drop_outputs=tuple(self._dropped),
            put_outputs=_Outputs(self.made),
            known=self._known,
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows as they are written, key by key; made one by one."""

    rows: PackedRows

    def __iter__(self) -> Iterator[StoredRow]:
        return self.rows.stored(self.rows.by_key())


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Outputs as they are written, made one by one."""

    outputs: PackedOutputs

    def __iter__(self) -> Iterator[OutputRow]:
        return self.outputs.stored()


def group(table: Table, keys: Iterable[str], raw_keys: Mapping[str, Sequence[str]]) -> PackedGroups:
    """Groups that have rows, in corpus order of their first rows."""
    wanted = {key: raw_keys.get(key, (key,)) for key in keys}
    return PackedGroups.of(table.packed({raw for found in wanted.values() for raw in found}), wanted)


def _place(entry: Entry) -> tuple[int, int, str]:
    return entry[:3]


def _output(row: Sequence[Any]) -> StoredOutput:
    place, number, failed, body = row
    data, units = decode(body)
    return StoredOutput(place, number, data, units, bool(failed))


def _by_item_and_key(rows: Iterable[StoredRow], numbered: bool) -> dict[tuple[str, str], list[tuple[int, int, bytes]]]:
    found: dict[tuple[str, str], list[tuple[int, int, bytes]]] = {}
    for key, place, number, item, body in rows:
        found.setdefault((item, key), []).append((place, number if numbered else 0, body))
    return found


def _entry(row: StoredRow) -> Entry:
    key, place, number, item, body = row
    return Entry(place, number, item, key, decode(body))
