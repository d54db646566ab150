"""Tables of the steps of organizers: rows by item and key, and outputs by key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sire_core.storage.checksums import CheckedTable, verified

if TYPE_CHECKING:
    from sire_core.storage.database import Database

StoredRow = tuple[str, int, int, str, bytes]  # Key, place, number, item and body of a row of a step, as it is stored

OutputRow = tuple[str, int, int, bool, bytes]
"""Key, place, number, whether it failed, and body of an output of a step, as it is stored."""

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

STEPS = CheckedTable("steps", ("id", "owner", "name"), "itt")
STEP_ROWS = CheckedTable("step_rows", ("step", "key", "place", "number", "item", "body"), "itiitb", "step")
STEP_OUTPUTS = CheckedTable("step_outputs", ("step", "key", "place", "number", "failed", "body"), "itiiib", "step")
ROWS_OF_ITEM, FAILED_OUTPUTS = "step_rows_of_item", "step_outputs_failed"
STEP_TABLES = (STEPS, STEP_ROWS, STEP_OUTPUTS)


class StepTables:
    """Tables of the steps of one organizer, as of the last commit. Names are those of steps."""

    def __init__(self, database: Database, owner: str, remembered: Mapping[str, Any]) -> None:
        self._db = database
        self.remembered = remembered  # By name, what the last commit remembered of a table, if this process made it
        rows = database.read(f"SELECT {STEPS.selected} FROM steps WHERE owner=?", [owner])
        self._ids: dict[str, int] = {row[2]: row[0] for row in rows if verified(row, STEPS)}

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def rows_of_items(self, name: str, items: Sequence[str]) -> Iterator[StoredRow]:
        """Return rows of items, by key, then in the order of the item."""
        table = f"{STEP_ROWS.selected} FROM step_rows INDEXED BY {ROWS_OF_ITEM}"
        sql = f"SELECT {table} WHERE step=? AND item IN ({{marks}})"
        return iter(sorted(_inner(self._db.read_in(sql, items, [self._ids[name]]), STEP_ROWS), key=lambda row: row[:4]))

    def rows_of_keys(self, name: str, keys: Sequence[str]) -> Iterator[StoredRow]:
        """Return rows of keys, in corpus order within each."""
        order = "ORDER BY key, place, number, item"
        sql = f"SELECT {STEP_ROWS.selected} FROM step_rows WHERE step=? AND key IN ({{marks}}) {order}"
        return _inner(self._db.read_in(sql, keys, [self._ids[name]]), STEP_ROWS)

    def all_rows(self, name: str) -> Iterator[StoredRow]:
        """Yield all rows."""
        return _inner(
            self._db.iterate(f"SELECT {STEP_ROWS.selected} FROM step_rows WHERE step=?", [self._ids[name]]), STEP_ROWS
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

    def keys_above(self, name: str, rows: int) -> list[str]:
        """Return keys with more than so many rows: all with rows of more items are among them."""
        sql = "SELECT key FROM step_rows WHERE step=? GROUP BY key HAVING count(*) > ?"
        return [str(key) for (key,) in self._db.read(sql, [self._ids[name], rows])]

    def outputs(self, name: str, keys: Sequence[str]) -> Iterator[OutputRow]:
        """Return outputs of keys: key, place, number, failed, body."""
        sql = f"SELECT {STEP_OUTPUTS.selected} FROM step_outputs WHERE step=? AND key IN ({{marks}})"
        return _inner(self._db.read_in(sql, keys, [self._ids[name]]), STEP_OUTPUTS)

    def all_outputs(self, name: str) -> Iterator[OutputRow]:
        """Yield all outputs in corpus order."""
        sql = f"SELECT {STEP_OUTPUTS.selected} FROM step_outputs WHERE step=? ORDER BY place, number, key"
        return _inner(self._db.iterate(sql, [self._ids[name]]), STEP_OUTPUTS)

    def failed(self, name: str) -> list[str]:
        """Return keys whose outputs failed."""
        sql = f"SELECT key FROM step_outputs INDEXED BY {FAILED_OUTPUTS} WHERE step=? AND failed"
        return [str(key) for (key,) in self._db.read(sql, [self._ids[name]])]


def _inner(rows: Iterable[tuple[Any, ...]], table: CheckedTable) -> Iterator[Any]:
    """Yield verified rows without step and checksum, their first and last column."""
    return (row[1:-1] for row in rows if verified(row, table))
