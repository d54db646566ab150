"""`index.sqlite`: documents, chunks, units, edges, vectors. The pool changes in one transaction per build."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sire_core.corpus.changes import StoredDocument
from sire_core.graph.columns import EdgeColumns
from sire_core.storage.checked import (
    SUMS_SCHEMA,
    CheckedTable,
    CheckedWrites,
    check_table,
    damage,
    require_complete,
    verified,
)
from sire_core.storage.commit import Commit
from sire_core.storage.database import Database, FileStamp
from sire_core.storage.outbox import OUTBOX_SCHEMA, OUTBOX_TABLES, Outbox, note_changes
from sire_core.storage.step_tables import STEP_SCHEMA, STEP_TABLES, StepTables, drop_tables, write_table
from sire_core.types import Chunk, Edge, Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import Delta

__all__ = ["CORPUS", "NOTES", "Store", "Verified"]

CORPUS = "corpus"
"""Owner of the chunk units; every recipe's pool holds them."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (
    key TEXT PRIMARY KEY, checksum INTEGER NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, checksum INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL, title TEXT NOT NULL,
    metadata TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
    id TEXT PRIMARY KEY, checksum INTEGER NOT NULL, doc_id TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL,
    title TEXT, metadata TEXT, source_id TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunks_of_document ON chunks (doc_id);
CREATE TABLE IF NOT EXISTS units (
    id TEXT PRIMARY KEY, checksum INTEGER NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    level INTEGER NOT NULL, tree TEXT NOT NULL, chunk_ids TEXT NOT NULL, entity_keys TEXT NOT NULL, title TEXT NOT NULL,
    metadata TEXT NOT NULL, source_ids TEXT NOT NULL, vector BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS units_of_owner ON units (owner, kind);
CREATE TABLE IF NOT EXISTS edges (
    owner TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
    checksum INTEGER NOT NULL, weight REAL NOT NULL, metadata TEXT NOT NULL,
    PRIMARY KEY (owner, kind, source, target)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS states (
    owner TEXT PRIMARY KEY, checksum INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (
    owner TEXT NOT NULL, key TEXT NOT NULL, checksum INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (owner, key)) WITHOUT ROWID;
"""

_META = CheckedTable("meta", ("key", "value"))
_DOCUMENTS = CheckedTable("documents", ("id", "sequence", "hash", "title", "metadata"))
_CHUNKS = CheckedTable("chunks", ("id", "doc_id", "position", "text", "title", "metadata", "source_id"))
_UNITS = CheckedTable(
    "units",
    (
        *("id", "owner", "kind", "text", "level", "tree", "chunk_ids", "entity_keys", "title", "metadata"),
        "source_ids",
    ),
    "owner",
    ("vector",),
)
_EDGES = CheckedTable("edges", ("owner", "kind", "source", "target", "weight", "metadata"), "owner")
_STATES = CheckedTable("states", ("owner", "body"))
NOTES = CheckedTable("notes", ("owner", "key", "body"), "owner")
_TABLES = (_META, _DOCUMENTS, _CHUNKS, _UNITS, _EDGES, _STATES, NOTES, *STEP_TABLES, *OUTBOX_TABLES)
_UNIT_COLUMNS = _UNITS.selected
_UNIT_WIDTH = len(_UNITS.columns)
_CHECKSUM = 4
"""Bytes behind every vector."""
_PAGE = 16384
"""Bytes of a page: units have vectors, of which a page of 4 kB would hold one and be half empty."""
_WEEK = 7 * 24 * 3600
_MANY = 1000
"""So many vectors are found by reading all; fewer are looked up one by one."""


@dataclass(frozen=True, slots=True)
class Verified:
    """All that the file held was right.

    Attributes:
        stamp: What the file looked like.
        at: When all of it was read last, in seconds.
    """

    stamp: FileStamp
    at: int


class Store:
    """Reads and writes `index.sqlite`. Thread-safe.

    Args:
        path: The file; None keeps everything in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._db = Database(path, _SCHEMA + STEP_SCHEMA + OUTBOX_SCHEMA + SUMS_SCHEMA, page_size=_PAGE)
        self._sound = False
        self._verified = 0

    def close(self) -> Verified | None:
        """Close the file; what is known of it, if all that it holds is known to be right."""
        stamp = self._db.close()
        return Verified(stamp, self._verified) if stamp and self._sound else None

    def copy_to(self, path: Path) -> None:
        """Write a copy of the file."""
        self._db.copy_to(path)

    def snapshot(self) -> AbstractContextManager[None]:
        """All reads inside the block see one generation, whatever anybody commits meanwhile."""
        return self._db.snapshot()

    def manifest(self) -> dict[str, Any]:
        """The manifest as of the last commit; empty before the first.

        Raises:
            StorageError: It is damaged.
        """
        # Formats before 4 have no checksum; they are refused, but for what they are.
        old = not self._db.read("SELECT 1 FROM pragma_table_info('meta') WHERE name='checksum'")
        columns = "key, value" if old else _META.selected
        rows = self._db.read(f"SELECT {columns} FROM meta WHERE key='manifest'")
        if not rows:
            return {}
        return dict(json.loads(str(rows[0][1] if old else verified(rows[0], len(_META.columns))[1])))

    def hold(self) -> str:
        """Let this connection go on seeing the last commit, until it is closed; name of that commit."""
        self._db.read("BEGIN")
        return self.commits()[0]

    def commits(self) -> tuple[str, str]:
        """Random names of the last commit and of the one before it; empty where there was none."""
        rows = self._db.read(f"SELECT {_META.selected} FROM meta WHERE key LIKE 'commit%'")
        found = {str(row[0]): str(row[1]) for row in rows if verified(row, len(_META.columns))}
        return found.get("commit", ""), found.get("commit before", "")

    def check(self) -> list[str]:
        """Read everything; what is wrong, in words. Empty when nothing is."""
        found = self._db.check()
        if found:
            return found
        with self.snapshot():
            for table in _TABLES:
                found += check_table(self._db, table)
            wrong = sum(not _right(blob) for (blob,) in self._db.iterate("SELECT vector FROM units"))
        if wrong:
            found.append(f"{wrong:,} vectors are not what was written")
        return found

    def require_sound(self, known: Verified | None = None) -> None:
        """Make sure of everything once before anything is derived from it and written.

        What was verified and not touched since is not read again, for a week: disks lose bits at rest, too.

        Args:
            known: What the process before this one knew of the file.

        Raises:
            StorageError: Something is not what was written.
        """
        if self._sound:
            return
        stamp, now = self._db.stamp(), int(time.time())
        if known is not None and known.stamp == stamp and 0 <= now - known.at < _WEEK:
            self._verified = known.at
        elif found := self.check():
            raise damage(f"({found[0]}) it")
        else:
            self._verified = now
        self._db.trust(stamp)
        self._sound = True

    def require_complete(self, owners: Sequence[str]) -> None:
        """Raise when documents, chunks or units are missing; call it in a `snapshot`.

        Raises:
            StorageError: The index is damaged.
        """
        require_complete(self._db, _DOCUMENTS)
        require_complete(self._db, _CHUNKS)
        require_complete(self._db, _UNITS, owners)

    def documents(self) -> dict[str, StoredDocument]:
        """All documents by id, in corpus order."""
        rows = self._db.iterate(f"SELECT {_DOCUMENTS.selected} FROM documents ORDER BY sequence, id")
        found = (verified(row, len(_DOCUMENTS.columns)) for row in rows)
        return {r[0]: StoredDocument(r[0], r[1], r[2], r[3], json.loads(r[4]) if r[4] != "{}" else {}) for r in found}

    def chunks(self, documents: Mapping[str, StoredDocument] | None = None) -> list[Chunk]:
        """All chunks, ordered by (document sequence, position, id).

        Args:
            documents: What `documents` returned; None reads them.
        """
        documents = self.documents() if documents is None else documents
        columns = ", ".join(f"c.{name}" for name in (*_CHUNKS.columns, "checksum"))
        rows = self._db.iterate(
            f"SELECT {columns} FROM chunks c JOIN documents d ON d.id=c.doc_id ORDER BY d.sequence, c.position, c.id"
        )
        return [_chunk(row, documents[str(row[1])]) for row in rows]

    def units(self, owner: str) -> list[Unit]:
        """Units of one owner, by id."""
        return list(self.each_unit(owner))

    def each_unit(self, owner: str) -> Iterator[Unit]:
        """Units of one owner, by id, one after the other."""
        for row in self._db.iterate(f"SELECT {_UNIT_COLUMNS} FROM units WHERE owner=? ORDER BY id", [owner]):
            yield _unit(row)

    def each_vector(self, owners: Sequence[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Ids of the units of some owners, with their vectors."""
        marks = ",".join("?" * len(owners))
        for found, blob in self._db.iterate(f"SELECT id, vector FROM units WHERE owner IN ({marks})", list(owners)):
            yield str(found), _vector(found, blob)

    def units_by_id(self, ids: Sequence[str]) -> dict[str, Unit]:
        """Units of whomever by id; unknown ids are left out."""
        rows = self._db.read_in(f"SELECT {_UNIT_COLUMNS} FROM units WHERE id IN ({{marks}})", ids)
        return {str(row[0]): _unit(row) for row in rows}

    def units_of(self, ids: Sequence[str], owners: Sequence[str]) -> Iterator[tuple[Unit, NDArray[np.float32]]]:
        """Units by id with their vectors; those of other owners and unknown ids are left out."""
        marks = ",".join("?" * len(owners))
        sql = f"SELECT {_UNIT_COLUMNS}, vector FROM units WHERE owner IN ({marks}) AND id IN ({{marks}})"
        for row in self._db.read_in(sql, ids, list(owners)):
            yield _unit(row[:-1]), _vector(row[0], row[-1])

    def outbox(self, mirror: str) -> Outbox:
        """Changes that a user's vector store has still to get."""
        return Outbox(self._db, mirror)

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Vectors of units by id; unknown ids are left out."""
        if len(ids) < _MANY:
            rows = self._db.read_in("SELECT id, vector FROM units WHERE id IN ({marks})", ids)
            return {str(found): _vector(found, blob) for found, blob in rows}
        wanted = set(ids)
        every = self._db.iterate("SELECT id, vector FROM units")
        return {str(found): _vector(found, blob) for found, blob in every if found in wanted}

    def dimension(self) -> int:
        """Length of the vectors; 0 when there are none."""
        rows = self._db.read("SELECT length(vector) FROM units LIMIT 1")
        return (int(rows[0][0]) - _CHECKSUM) // 4 if rows else 0

    def edges(self, owners: Sequence[str]) -> list[Edge]:
        """Edges of some owners, ordered by kind, source, target."""
        marks = ",".join("?" * len(owners))
        found = []
        with self.snapshot():
            require_complete(self._db, _EDGES, owners)
            for row in self._db.iterate(f"SELECT {_EDGES.selected} FROM edges WHERE owner IN ({marks})", list(owners)):
                _, kind, source, target, weight, metadata, _ = verified(row, len(_EDGES.columns))
                found.append(Edge(kind, source, target, weight, json.loads(metadata)))
            sql = f"SELECT {NOTES.selected} FROM notes WHERE owner IN ({marks}) AND key LIKE '%/%'"
            blocks = self._noted(lambda: self._db.read(sql, list(owners)), owners)
        for key, body in blocks:
            found += EdgeColumns.from_bytes(body).edges(str(key).split("/", 1)[0])
        return sorted(found, key=lambda edge: (edge.kind, edge.source, edge.target))

    def state(self, owner: str) -> dict[str, Any]:
        """What an organizer stored for itself."""
        with self.snapshot():
            rows = self._db.read(f"SELECT {_STATES.selected} FROM states WHERE owner=?", [owner])
            if not rows:
                require_complete(self._db, _STATES)
                return {}
        return dict(json.loads(verified(rows[0], len(_STATES.columns))[1]))

    def notes(self, owner: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Notes of an organizer by key; unknown keys are left out."""
        sql = f"SELECT {NOTES.selected} FROM notes WHERE owner=? AND key IN ({{marks}})"
        return dict(self._noted(lambda: self._db.read_in(sql, keys, [owner]), [owner]))

    def notes_with(self, owner: str, prefix: str) -> dict[str, bytes]:
        """Notes of an organizer whose keys begin with a text."""
        sql = f"SELECT {NOTES.selected} FROM notes WHERE owner=? AND key>=? AND key<?"
        return dict(self._noted(lambda: self._db.read(sql, [owner, prefix, prefix + "\U0010ffff"]), [owner]))

    def _noted(self, read: Callable[[], Iterable[tuple[Any, ...]]], owners: Sequence[str]) -> list[tuple[str, bytes]]:
        with self.snapshot():
            require_complete(self._db, NOTES, owners)
            return [(row[1], row[2]) for row in read() if verified(row, len(NOTES.columns))]

    def tables(self, owner: str) -> StepTables:
        """Rows and outputs of an organizer's steps."""
        return StepTables(self._db, owner)

    def owners(self) -> list[str]:
        """Everyone who has units."""
        return [str(row[0]) for row in self._db.read("SELECT DISTINCT owner FROM units ORDER BY owner")]

    def counts(self, owners: Sequence[str]) -> dict[str, int]:
        """Number of units by kind."""
        marks = ",".join("?" * len(owners))
        rows = self._db.read(f"SELECT kind, count(*) FROM units WHERE owner IN ({marks}) GROUP BY kind", list(owners))
        return {str(kind): int(count) for kind, count in sorted(rows)}

    def commit(self, commit: Commit) -> None:
        """Apply everything in one transaction: the index is before or after, never between."""
        with self._db.transaction() as db:
            writes = CheckedWrites(db)
            note_changes(db, writes, commit)
            writes.delete(_CHUNKS, ["id"], [(chunk,) for chunk in commit.drop_chunks])
            writes.delete(_DOCUMENTS, ["id"], [(doc,) for doc in commit.drop_documents])
            documents = ((d.id, d.sequence, d.hash, d.title, _json(d.metadata)) for d in commit.put_documents)
            writes.replace(_DOCUMENTS, ["id"], documents)
            writes.replace(_CHUNKS, ["id"], _chunk_rows(commit))
            for owner in commit.drop_owners:
                for table in (_UNITS, _EDGES, _STATES, NOTES):
                    writes.delete(table, ["owner"], [(owner,)])
                drop_tables(db, writes, owner)
            db.executemany(
                "UPDATE units SET vector=? WHERE id=?", ((_blob(v), unit) for unit, v in commit.revectors.items())
            )
            for owner, delta in commit.deltas.items():
                _write_delta(db, writes, owner, delta, commit.vectors)
            meta = [("manifest", _json(commit.manifest)), ("commit", secrets.token_hex(8))]
            before = db.execute("SELECT value FROM meta WHERE key='commit'").fetchone()
            writes.replace(_META, ["key"], [*meta, *([("commit before", before[0])] if before else [])])
            writes.finish()

    def compact(self) -> None:
        """Overwrite what was deleted and give the space back."""
        self._db.compact()


def _write_delta(
    db: sqlite3.Connection, writes: CheckedWrites, owner: str, delta: Delta, vectors: Mapping[str, NDArray[np.float32]]
) -> None:
    """Write what an organizer changes."""
    writes.delete(_UNITS, ["id", "owner"], [(unit, owner) for unit in delta.drop_units])
    edge = ("owner", "kind", "source", "target")
    gone = [(owner, e.kind, e.source, e.target) for e in delta.drop_edges if e.kind not in delta.in_blocks]
    writes.delete(_EDGES, edge, gone)
    writes.replace(_UNITS, ["id"], (_unit_row(unit, owner, vectors[unit.id]) for unit in delta.put_units))
    edges = (
        (owner, e.kind, e.source, e.target, float(e.weight), _json(e.metadata))
        for e in delta.put_edges
        if e.kind not in delta.in_blocks
    )
    writes.replace(_EDGES, edge, edges)
    for name, change in delta.tables.items():
        write_table(db, writes, owner, name, change)
    if delta.state is not None:
        writes.replace(_STATES, ["owner"], [(owner, _json(delta.state))])
    writes.delete(NOTES, ["owner", "key"], [(owner, key) for key, body in delta.notes.items() if body is None])
    kept = ((owner, key, bytes(body)) for key, body in delta.notes.items() if body is not None)
    writes.replace(NOTES, ["owner", "key"], kept)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _chunk_rows(commit: Commit) -> Iterator[tuple[object, ...]]:
    """Rows of the chunks; title and metadata are NULL where they are the document's."""
    documents = {document.id: document for document in commit.put_documents}
    for chunk in commit.put_chunks:
        document = documents[chunk.doc_id]
        title = None if chunk.title == document.title else chunk.title
        metadata = None if chunk.metadata == document.metadata else _json(chunk.metadata)
        yield (chunk.id, chunk.doc_id, chunk.position, chunk.text, title, metadata, chunk.source_id)


def _chunk(row: tuple[Any, ...], document: StoredDocument) -> Chunk:
    verified(row, len(_CHUNKS.columns))
    title = document.title if row[4] is None else str(row[4])
    metadata = document.metadata if row[5] is None else json.loads(row[5])
    return Chunk(str(row[0]), document.id, int(row[2]), title, str(row[3]), metadata, str(row[6]))


def _unit(row: tuple[Any, ...]) -> Unit:
    found, _, kind, text, level, tree, chunk_ids, entity_keys, title, metadata, source_ids, _ = row
    verified(row, _UNIT_WIDTH)
    return Unit(
        id=found,
        kind=UnitKind.define(kind),
        text=text,
        chunk_ids=tuple(json.loads(chunk_ids)),
        level=level,
        tree=tree,
        entity_keys=tuple(json.loads(entity_keys)) if entity_keys != "[]" else (),
        title=title,
        metadata=json.loads(metadata) if metadata != "{}" else {},
        source_ids=tuple(json.loads(source_ids)) if source_ids != "[]" else (),
    )


def _unit_row(unit: Unit, owner: str, vector: NDArray[np.float32]) -> tuple[object, ...]:
    return (
        unit.id,
        owner,
        unit.kind.value,
        unit.text,
        unit.level,
        unit.tree,
        _json(unit.chunk_ids),
        _json(unit.entity_keys),
        unit.title,
        _json(unit.metadata),
        _json(unit.source_ids),
        _blob(vector),
    )


def _blob(vector: NDArray[np.float32]) -> bytes:
    content = np.ascontiguousarray(vector, dtype=np.float32).tobytes()
    return content + zlib.crc32(content).to_bytes(_CHECKSUM, "little")


def _vector(found: object, blob: bytes) -> NDArray[np.float32]:
    if not _right(blob):
        raise damage(f"the vector of {found!r}")
    return np.frombuffer(blob[:-_CHECKSUM], dtype=np.float32)


def _right(blob: object) -> bool:
    if not isinstance(blob, bytes) or len(blob) % 4:
        return False
    return zlib.crc32(blob[:-_CHECKSUM]).to_bytes(_CHECKSUM, "little") == blob[-_CHECKSUM:]
