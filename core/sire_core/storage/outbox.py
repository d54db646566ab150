"""`Outbox`: units that are not yet written to one of the user's vector stores; sent again until they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.storage.checksums import (
    CheckedTable,
    CheckedWrites,
    require_complete,
    stored_json,
    stored_texts,
    verified,
)
from sire_core.types import UnitKind

if TYPE_CHECKING:
    import sqlite3

    from sire_core.storage.database import Database
    from sire_core.storage.index_tables import Commit

OUTBOX_SCHEMA = """
CREATE TABLE IF NOT EXISTS mirror_owners (
    name TEXT PRIMARY KEY, checksum INTEGER NOT NULL, owners TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mirror_waits (
    mirror TEXT NOT NULL, unit TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (mirror, unit)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mirror_holds (
    mirror TEXT NOT NULL, unit TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (mirror, unit)) WITHOUT ROWID;
"""
"""Stores that follow, units that each has still to get or drop, and units that each may hold."""

_OWNERS = CheckedTable("mirror_owners", ("name", "owners"), "tt")
_WAITS = CheckedTable("mirror_waits", ("mirror", "unit"), "tt", "mirror")
_HOLDS = CheckedTable("mirror_holds", ("mirror", "unit"), "tt", "mirror")
OUTBOX_TABLES = (_OWNERS, _WAITS, _HOLDS)


def note_changes(db: sqlite3.Connection, writes: CheckedWrites, commit: Commit) -> None:
    """Note which units a commit touches, in its transaction and before it changes anything."""
    mirrors = [str(name) for (name,) in db.execute("SELECT name FROM mirror_owners")]
    if not mirrors:
        return
    touched: dict[str, None] = dict.fromkeys(commit.revectors)
    for delta in commit.deltas.values():
        touched.update(dict.fromkeys((*(unit.id for unit in delta.put_units), *delta.drop_units)))
    for owner in commit.drop_owners:
        touched.update((str(row[0]), None) for row in db.execute("SELECT id FROM units WHERE owner=?", (owner,)))
    replaced = {document.id for document in commit.put_documents}
    chunks = {str(chunk) for chunk, doc in db.execute("SELECT id, doc_id FROM chunks") if doc in replaced}
    if chunks:
        for unit, sources in db.execute("SELECT id, chunk_ids FROM units"):
            if not chunks.isdisjoint(json.loads(sources)):
                touched[str(unit)] = None
    for mirror in mirrors:
        writes.replace(_WAITS, ["mirror", "unit"], ((mirror, unit) for unit in touched))


@dataclass(frozen=True, slots=True)
class Followed:
    """Units that a vector store receives."""

    owners: tuple[str, ...] = ()  # Whose units it gets: those of every recipe that was opened with it
    # What may stand in its table: an id of this index's own and the name of a push. Two while one is on.
    marks: tuple[str, ...] = ()


class Outbox:
    """Changes that are not yet sent to one vector store."""

    def __init__(self, db: Database, mirror: str) -> None:
        self._db = db
        self._mirror = mirror

    def followed(self) -> Followed:
        """Return what the store receives."""
        with self._db.snapshot():
            require_complete(self._db, _OWNERS)
            rows = self._db.read(f"SELECT {_OWNERS.selected} FROM mirror_owners WHERE name=?", [self._mirror])
        if not rows:
            return Followed((), ())
        content = stored_json(verified(rows[0], _OWNERS)[1], dict, self._mirror)
        owners, marks = (json.dumps(content.get(name)) for name in ("owners", "marks"))
        return Followed(stored_texts(owners, self._mirror), stored_texts(marks, self._mirror))

    def follow(self, wanted: Followed, *, again: bool = False) -> None:
        """Set whose units the store receives; all units of new owners have to be sent."""
        new = [owner for owner in wanted.owners if again or owner not in self.followed().owners]
        with self._writing() as writes:
            units = self._db.read(f"SELECT id FROM units WHERE owner IN ({','.join('?' * len(new))})", new)
            if again:
                units += self._db.read("SELECT unit FROM mirror_holds WHERE mirror=?", [self._mirror])
            content = json.dumps({"owners": wanted.owners, "marks": wanted.marks})
            writes.replace(_OWNERS, ["name"], [(self._mirror, content)])
            writes.replace(_WAITS, ["mirror", "unit"], ((self._mirror, unit) for (unit,) in units))

    def pending_of(self, owners: Sequence[str]) -> list[str]:
        """Return ids of units of some owners that the store has not got yet in their present form."""
        with self._db.snapshot():
            new = set(owners).difference(self.followed().owners)
            require_complete(self._db, _WAITS, [self._mirror])
            waits, follows = ",".join("?" * len(owners)), ",".join("?" * len(new))
            rows = self._db.read(
                f"SELECT id FROM units WHERE owner IN ({follows}) UNION SELECT u.id FROM mirror_waits o "
                f"JOIN units u ON u.id=o.unit WHERE o.mirror=? AND u.owner IN ({waits})",
                [*new, self._mirror, *owners],
            )
        return [str(unit) for (unit,) in rows]

    def state(self) -> tuple[object, ...]:
        """Changes whenever owners or pending units change; fast."""
        sums = "SELECT rows, total FROM sums WHERE name='mirror_waits' AND part=?"
        with self._db.snapshot():
            return (self.followed(), *self._db.read(sums, [self._mirror]))

    def pending(self) -> list[str]:
        """Return ids of the units to send: passages first, then by level, then deleted units."""
        with self._db.snapshot():
            require_complete(self._db, _WAITS, [self._mirror])
            rows = self._db.read(
                "SELECT o.mirror, o.unit, o.checksum FROM mirror_waits o LEFT JOIN units u ON u.id=o.unit "
                "WHERE o.mirror=? ORDER BY u.id IS NULL, u.kind<>?, u.level, o.unit",
                [self._mirror, UnitKind.CHUNK.value],
            )
        return [str(verified(row, _WAITS)[1]) for row in rows]

    def sent(self) -> list[str]:
        """Return the id of one unit that was sent and has not changed since; empty if there is none."""
        rows = self._db.read(
            f"SELECT {_HOLDS.selected} FROM mirror_holds m WHERE mirror=? AND NOT EXISTS "
            "(SELECT 1 FROM mirror_waits o WHERE o.mirror=m.mirror AND o.unit=m.unit) LIMIT 1",
            [self._mirror],
        )
        return [str(verified(row, _HOLDS)[1]) for row in rows]

    def held(self, units: Sequence[str]) -> list[str]:
        """Return which of these units the store may have."""
        sql = f"SELECT {_HOLDS.selected} FROM mirror_holds WHERE mirror=? AND unit IN ({{marks}})"
        with self._db.snapshot():
            require_complete(self._db, _HOLDS, [self._mirror])
            return sorted(str(verified(row, _HOLDS)[1]) for row in self._db.read_in(sql, units, [self._mirror]))

    def begin(self, units: Iterable[str]) -> None:
        """Note, before they are sent, that the store may have these units."""
        with self._writing() as writes:
            writes.replace(_HOLDS, ["mirror", "unit"], [(self._mirror, unit) for unit in units])

    def done(self, put: Iterable[str], dropped: Iterable[str]) -> None:
        """Note that the store has these changes."""
        gone = [(self._mirror, unit) for unit in dropped]
        with self._writing() as writes:
            writes.delete(_HOLDS, ["mirror", "unit"], gone)
            writes.delete(_WAITS, ["mirror", "unit"], [*((self._mirror, unit) for unit in put), *gone])

    @contextmanager
    def _writing(self) -> Iterator[CheckedWrites]:
        with self._db.transaction() as db:
            writes = CheckedWrites(db)
            yield writes
            writes.finish()
