"""Rows and outputs of derivation steps in `index.sqlite`."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sire_core.storage.checksums import CheckedTable, verified

if TYPE_CHECKING:
    from sire_core.protocols import TableChange
    from sire_core.storage.checksums import CheckedWrites
    from sire_core.storage.database import Database

STEP_SCHEMA = """
CREATE TABLE IF NOT EXISTS steps (
    id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (owner, name));
CREATE TABLE IF NOT EXISTS step_rows (
    step INTEGER NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL, item TEXT NOT NULL,
    checksum INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (step, key, place, number, item)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS step_rows_of_item ON step_rows (step, item);
CREATE TABLE IF NOT EXISTS step_outputs (
    step INTEGER NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL,
    checksum INTEGER NOT NULL, failed INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (step, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS step_outputs_failed ON step_outputs (step, key) WHERE failed;
"""

_STEPS = CheckedTable("steps", ("id", "owner", "name"), "itt")
_ROWS = CheckedTable("step_rows", ("step", "key", "place", "number", "item", "body"), "itiitb", "step")
_OUTPUTS = CheckedTable("step_outputs", ("step", "key", "place", "number", "failed", "body"), "itiiib", "step")
_OF_ITEM = "step_rows_of_item"
STEP_TABLES = (_STEPS, _ROWS, _OUTPUTS)


class StepTables:
    """Reads the tables of one organizer; see `sire_core.protocols.TableStore`."""

    def __init__(self, database: Database, owner: str, known: Mapping[str, Any]) -> None:
        self._db = database
        self._known = known
        rows = database.read(f"SELECT {_STEPS.selected} FROM steps WHERE owner=?", [owner])
        self._ids: dict[str, int] = {row[2]: row[0] for row in rows if verified(row, _STEPS)}

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def known(self, name: str) -> Any:
        """Return what an organizer keeps about a table; None for nothing."""
        return self._known.get(name)

    def rows_of_items(self, name: str, items: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return rows of items (key, place, number, item, body), by key and item."""
        table = f"{_ROWS.selected} FROM step_rows INDEXED BY {_OF_ITEM}"
        sql = f"SELECT {table} WHERE step=? AND item IN ({{marks}})"
        return iter(sorted(_inner(self._db.read_in(sql, items, [self._ids[name]]), _ROWS), key=_place))

    def rows_of_keys(self, name: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return rows of keys, in corpus order within each."""
        order = "ORDER BY key, place, number, item"
        sql = f"SELECT {_ROWS.selected} FROM step_rows WHERE step=? AND key IN ({{marks}}) {order}"
        return _inner(self._db.read_in(sql, keys, [self._ids[name]]), _ROWS)

    def all_rows(self, name: str) -> Iterator[tuple[Any, ...]]:
        """Yield all rows."""
        return _inner(
            self._db.iterate(f"SELECT {_ROWS.selected} FROM step_rows WHERE step=?", [self._ids[name]]), _ROWS
        )

    def sizes(self, name: str, keys: Sequence[str], without: Collection[str]) -> dict[str, int]:
        """Return the number of rows by key, without those of some items."""
        counts: dict[str, int] = {}
        if without:
            sql = "SELECT key, item FROM step_rows WHERE step=? AND key IN ({marks})"
            for key, item in self._db.read_in(sql, keys, [self._ids[name]]):
                if item not in without:
                    counts[key] = counts.get(key, 0) + 1
            return counts
        sql = "SELECT key, count(*) FROM step_rows WHERE step=? AND key IN ({marks}) GROUP BY key"
        return {str(key): int(count) for key, count in self._db.read_in(sql, keys, [self._ids[name]])}

    def keys_above(self, name: str, items: int) -> list[str]:
        """Return keys with rows of more than so many items."""
        sql = "SELECT key FROM step_rows WHERE step=? GROUP BY key HAVING count(DISTINCT item) > ?"
        return [str(key) for (key,) in self._db.read(sql, [self._ids[name], items])]

    def outputs(self, name: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return outputs of keys: key, place, number, failed, body."""
        sql = f"SELECT {_OUTPUTS.selected} FROM step_outputs WHERE step=? AND key IN ({{marks}})"
        return _inner(self._db.read_in(sql, keys, [self._ids[name]]), _OUTPUTS)

    def all_outputs(self, name: str) -> Iterator[tuple[Any, ...]]:
        """Yield all outputs in corpus order."""
        sql = f"SELECT {_OUTPUTS.selected} FROM step_outputs WHERE step=? ORDER BY place, number, key"
        return _inner(self._db.iterate(sql, [self._ids[name]]), _OUTPUTS)

    def failed(self, name: str) -> list[str]:
        """Return keys whose outputs failed."""
        sql = "SELECT key FROM step_outputs WHERE step=? AND failed"
        return [str(key) for (key,) in self._db.read(sql, [self._ids[name]])]


def write_table(db: sqlite3.Connection, writes: CheckedWrites, owner: str, name: str, change: TableChange) -> None:
    """Write a change of a table, in the transaction of a commit."""
    known = db.execute("SELECT id FROM steps WHERE owner=? AND name=?", (owner, name)).fetchone()
    step = known[0] if known else db.execute("SELECT coalesce(max(id), 0) + 1 FROM steps").fetchone()[0]
    if not known:
        writes.insert(_STEPS, [(step, owner, name)])
    writes.delete(_ROWS, ["step", "item"], [(step, item) for item in change.drop_items], _OF_ITEM)
    by_key = (rows for _, rows in groupby(change.put_rows, key=itemgetter(0)))
    writes.insert(_ROWS, (row for rows in by_key for row in {row[:4]: (step, *row) for row in rows}.values()))
    writes.delete(_OUTPUTS, ["step", "key"], [(step, key) for key in change.drop_outputs])
    outputs = ((step, key, place, number, int(failed), body) for key, place, number, failed, body in change.put_outputs)
    if known:
        writes.replace(_OUTPUTS, ["step", "key"], outputs)
    else:
        writes.insert(_OUTPUTS, outputs)


def drop_tables(db: sqlite3.Connection, writes: CheckedWrites, owner: str) -> None:
    """Delete all tables of an organizer."""
    for (step,) in db.execute("SELECT id FROM steps WHERE owner=?", (owner,)).fetchall():
        for table in (_ROWS, _OUTPUTS):
            writes.delete(table, ["step"], [(step,)])
    writes.delete(_STEPS, ["owner"], [(owner,)])


def _inner(rows: Iterable[tuple[Any, ...]], table: CheckedTable) -> Iterator[tuple[Any, ...]]:
    """Yield verified rows without step and checksum, their first and last column."""
    return (row[1:-1] for row in rows if verified(row, table))


def _place(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[:4]
