"""Rows and outputs of derivation steps in `index.sqlite`."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.protocols import TableChange
    from sire_core.storage.database import Database

__all__ = ["STEP_SCHEMA", "StepTables", "drop_tables", "write_table"]

STEP_SCHEMA = """
CREATE TABLE IF NOT EXISTS steps (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (owner, name));
CREATE TABLE IF NOT EXISTS step_rows (
    step INTEGER NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL, item TEXT NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (step, key, place, number, item)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS step_rows_of_item ON step_rows (step, item);
CREATE TABLE IF NOT EXISTS step_outputs (
    step INTEGER NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL,
    failed INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (step, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS step_outputs_failed ON step_outputs (step, key) WHERE failed;
"""

_ROW = "key, place, number, item, body"
_OUTPUT = "key, place, number, failed, body"


class StepTables:
    """Reads the tables of one organizer; see `sire_core.protocols.TableStore`.

    Args:
        database: The open file.
        owner: Build fingerprint of the organizer.
    """

    def __init__(self, database: Database, owner: str) -> None:
        self._db = database
        found = database.read("SELECT name, id FROM steps WHERE owner=?", [owner])
        self._ids: dict[str, int] = {str(name): int(number) for name, number in found}

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def rows_of_items(self, name: str, items: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Rows of items: key, place, number, item, body; by key, then in the order of the item."""
        sql = f"SELECT {_ROW} FROM step_rows INDEXED BY step_rows_of_item WHERE step=? AND item IN ({{marks}})"
        return iter(sorted(self._db.read_in(sql, items, [self._ids[name]]), key=_place))

    def rows_of_keys(self, name: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Rows of keys, in corpus order within each."""
        sql = f"SELECT {_ROW} FROM step_rows WHERE step=? AND key IN ({{marks}}) ORDER BY key, place, number, item"
        return self._db.read_in(sql, keys, [self._ids[name]])

    def all_rows(self, name: str) -> Iterator[tuple[Any, ...]]:
        """All rows."""
        return self._db.iterate(f"SELECT {_ROW} FROM step_rows WHERE step=?", [self._ids[name]])

    def sizes(self, name: str, keys: Sequence[str], without: Collection[str]) -> dict[str, int]:
        """Number of rows by key, those of some items left out."""
        found: dict[str, int] = {}
        if without:
            sql = "SELECT key, item FROM step_rows WHERE step=? AND key IN ({marks})"
            for key, item in self._db.read_in(sql, keys, [self._ids[name]]):
                if item not in without:
                    found[key] = found.get(key, 0) + 1
            return found
        sql = "SELECT key, count(*) FROM step_rows WHERE step=? AND key IN ({marks}) GROUP BY key"
        return {str(key): int(count) for key, count in self._db.read_in(sql, keys, [self._ids[name]])}

    def keys_above(self, name: str, items: int) -> list[str]:
        """Keys with rows of more items."""
        sql = "SELECT key FROM step_rows WHERE step=? GROUP BY key HAVING count(DISTINCT item) > ?"
        return [str(key) for (key,) in self._db.read(sql, [self._ids[name], items])]

    def outputs(self, name: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Outputs of keys: key, place, number, failed, body."""
        sql = f"SELECT {_OUTPUT} FROM step_outputs WHERE step=? AND key IN ({{marks}})"
        return self._db.read_in(sql, keys, [self._ids[name]])

    def all_outputs(self, name: str) -> Iterator[tuple[Any, ...]]:
        """All outputs in corpus order."""
        sql = f"SELECT {_OUTPUT} FROM step_outputs WHERE step=? ORDER BY place, number, key"
        return self._db.iterate(sql, [self._ids[name]])

    def failed(self, name: str) -> list[str]:
        """Keys whose outputs failed."""
        sql = "SELECT key FROM step_outputs WHERE step=? AND failed"
        return [str(key) for (key,) in self._db.read(sql, [self._ids[name]])]


def write_table(db: sqlite3.Connection, owner: str, name: str, change: TableChange) -> None:
    """Write what a change does to a table; call it inside the transaction of a commit."""
    db.execute("INSERT OR IGNORE INTO steps (owner, name) VALUES (?,?)", (owner, name))
    step = db.execute("SELECT id FROM steps WHERE owner=? AND name=?", (owner, name)).fetchone()[0]
    db.executemany("DELETE FROM step_rows WHERE step=? AND item=?", [(step, item) for item in change.drop_items])
    db.executemany("INSERT OR REPLACE INTO step_rows VALUES (?,?,?,?,?,?)", ((step, *row) for row in change.put_rows))
    db.executemany("DELETE FROM step_outputs WHERE step=? AND key=?", [(step, key) for key in change.drop_outputs])
    db.executemany("INSERT OR REPLACE INTO step_outputs VALUES (?,?,?,?,?,?)", ((step, *o) for o in change.put_outputs))


def drop_tables(db: sqlite3.Connection, owner: str) -> None:
    """Delete all tables of an organizer."""
    for (step,) in db.execute("SELECT id FROM steps WHERE owner=?", (owner,)).fetchall():
        for table in ("step_rows", "step_outputs"):
            db.execute(f"DELETE FROM {table} WHERE step=?", (step,))
    db.execute("DELETE FROM steps WHERE owner=?", (owner,))


def _place(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[:4]
