"""`Outbox`: which units a user's own vector store has not heard of yet; replayed until it has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sire_core.types import UnitKind

if TYPE_CHECKING:
    import sqlite3

    from sire_core.storage.commit import Commit
    from sire_core.storage.database import Database

__all__ = ["OUTBOX_SCHEMA", "Outbox", "note_changes"]

OUTBOX_SCHEMA = """
CREATE TABLE IF NOT EXISTS mirrors (name TEXT PRIMARY KEY, owners TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (
    mirror TEXT NOT NULL, unit TEXT NOT NULL, PRIMARY KEY (mirror, unit)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mirrored (
    mirror TEXT NOT NULL, unit TEXT NOT NULL, PRIMARY KEY (mirror, unit)) WITHOUT ROWID;
"""
"""Stores that follow, units that each has still to get or drop, and units that each may hold."""

_ENTER = "INSERT OR IGNORE INTO outbox SELECT name, ? FROM mirrors"


def note_changes(db: sqlite3.Connection, commit: Commit) -> None:
    """Write down, in the transaction of a commit and before it changes anything, which units it touches.

    A unit is touched when it is put, dropped or embedded again, when its owner goes, and when a document it stands on
    is put again: its metadata may be other.
    """
    if not db.execute("SELECT 1 FROM mirrors LIMIT 1").fetchone():
        return
    touched: dict[str, None] = dict.fromkeys(commit.revectors)
    for delta in commit.deltas.values():
        touched.update(dict.fromkeys((*(unit.id for unit in delta.put_units), *delta.drop_units)))
    for owner in commit.drop_owners:
        touched.update((str(row[0]), None) for row in db.execute("SELECT id FROM units WHERE owner=?", (owner,)))
    replaced = {document.id for document in commit.put_documents}
    chunks = {str(chunk) for chunk, doc in db.execute("SELECT id, doc_id FROM chunks") if doc in replaced}
    if chunks:
        for unit, found in db.execute("SELECT id, chunk_ids FROM units"):
            if not chunks.isdisjoint(json.loads(found)):
                touched[str(unit)] = None
    db.executemany(_ENTER, ((unit,) for unit in touched))


class Outbox:
    """Changes that one vector store has still to get.

    Args:
        db: `index.sqlite`.
        mirror: Name of the store.
    """

    def __init__(self, db: Database, mirror: str) -> None:
        self._db = db
        self._mirror = mirror

    def follows(self, owners: Sequence[str]) -> bool:
        """Whether the store follows just these owners."""
        known = self._db.read("SELECT owners FROM mirrors WHERE name=?", [self._mirror])
        return bool(known) and known[0][0] == json.dumps(list(owners))

    def restart(self, owners: Sequence[str]) -> None:
        """Follow these owners from now on: everything in their pool, and all that is held, has to be sent.

        Args:
            owners: Owners of a recipe's pool.
        """
        marks = ",".join("?" * len(owners))
        with self._db.transaction() as db:
            db.execute("INSERT OR REPLACE INTO mirrors VALUES (?,?)", (self._mirror, json.dumps(list(owners))))
            db.execute("INSERT OR IGNORE INTO outbox SELECT mirror, unit FROM mirrored WHERE mirror=?", (self._mirror,))
            db.execute(
                f"INSERT OR IGNORE INTO outbox SELECT ?, id FROM units WHERE owner IN ({marks})",
                (self._mirror, *owners),
            )

    def pending(self) -> list[str]:
        """Ids of the units that have to be sent: passages first, then by level, then those that are gone."""
        rows = self._db.read(
            "SELECT o.unit FROM outbox o LEFT JOIN units u ON u.id=o.unit WHERE o.mirror=? "
            "ORDER BY u.id IS NULL, u.kind<>?, u.level, o.unit",
            [self._mirror, UnitKind.CHUNK.value],
        )
        return [str(row[0]) for row in rows]

    def sent(self) -> list[str]:
        """Id of one unit that was sent and that has not changed since; empty when there is none."""
        rows = self._db.read(
            "SELECT unit FROM mirrored m WHERE mirror=? AND NOT EXISTS "
            "(SELECT 1 FROM outbox o WHERE o.mirror=m.mirror AND o.unit=m.unit) LIMIT 1",
            [self._mirror],
        )
        return [str(row[0]) for row in rows]

    def held(self, units: Sequence[str]) -> list[str]:
        """Which of these the store may hold."""
        sql = "SELECT unit FROM mirrored WHERE mirror=? AND unit IN ({marks})"
        return sorted(str(row[0]) for row in self._db.read_in(sql, units, [self._mirror]))

    def begin(self, units: Iterable[str]) -> None:
        """Write down, before they are sent, that the store may hold these."""
        with self._db.transaction() as db:
            db.executemany("INSERT OR IGNORE INTO mirrored VALUES (?,?)", [(self._mirror, unit) for unit in units])

    def done(self, put: Iterable[str], dropped: Iterable[str]) -> None:
        """The store has these changes."""
        gone = list(dropped)
        with self._db.transaction() as db:
            db.executemany("DELETE FROM mirrored WHERE mirror=? AND unit=?", [(self._mirror, unit) for unit in gone])
            done = [(self._mirror, unit) for unit in (*put, *gone)]
            db.executemany("DELETE FROM outbox WHERE mirror=? AND unit=?", done)
