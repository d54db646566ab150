"""`index.sqlite`: documents, chunks, units, edges, vectors. The pool changes in one transaction per build."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sire_core.corpus.changes import StoredDocument
from sire_core.errors import StorageError
from sire_core.graph.columns import EdgeColumns
from sire_core.storage.commit import Commit
from sire_core.storage.database import Database
from sire_core.storage.outbox import OUTBOX_SCHEMA, Outbox, note_changes
from sire_core.storage.step_tables import STEP_SCHEMA, StepTables, drop_tables, write_table
from sire_core.types import Chunk, Edge, Unit, UnitKind

__all__ = ["CORPUS", "Store"]

CORPUS = "corpus"
"""Owner of the chunk units; every recipe's pool holds them."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, hash TEXT NOT NULL, title TEXT NOT NULL, metadata TEXT NOT NULL,
    checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
    id TEXT PRIMARY KEY, doc_id TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL,
    title TEXT, metadata TEXT, source_id TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunks_of_document ON chunks (doc_id);
CREATE TABLE IF NOT EXISTS units (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, level INTEGER NOT NULL,
    tree TEXT NOT NULL, chunk_ids TEXT NOT NULL, entity_keys TEXT NOT NULL, title TEXT NOT NULL, metadata TEXT NOT NULL,
    source_ids TEXT NOT NULL, checksum INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS units_of_owner ON units (owner, kind);
CREATE TABLE IF NOT EXISTS edges (
    owner TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
    weight REAL NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (owner, kind, source, target)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS states (owner TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (
    owner TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (owner, key)) WITHOUT ROWID;
"""

_DOCUMENT_COLUMNS = "id, sequence, hash, title, metadata, checksum"
_CHUNK_COLUMNS = "c.id, c.doc_id, c.position, c.text, c.title, c.metadata, c.source_id, c.checksum"
_UNIT_COLUMNS = "id, kind, text, level, tree, chunk_ids, entity_keys, title, metadata, source_ids, checksum"
_CHECKSUM = 4
"""Bytes behind every vector."""
_MANY = 1000
"""So many vectors are found by reading all; fewer are looked up one by one."""


class Store:
    """Reads and writes `index.sqlite`. Thread-safe.

    Args:
        path: The file; None keeps everything in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._db = Database(path, _SCHEMA + STEP_SCHEMA + OUTBOX_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def copy_to(self, path: Path) -> None:
        """Write a copy of the file."""
        self._db.copy_to(path)

    def snapshot(self) -> AbstractContextManager[None]:
        """All reads inside the block see one generation, whatever anybody commits meanwhile."""
        return self._db.snapshot()

    def manifest(self) -> dict[str, Any]:
        """The manifest as of the last commit; empty before the first."""
        rows = self._db.read("SELECT value FROM meta WHERE key='manifest'")
        return dict(json.loads(str(rows[0][0]))) if rows else {}

    def hold(self) -> str:
        """Let this connection go on seeing the last commit, until it is closed; name of that commit."""
        self._db.read("BEGIN")
        return self.commits()[0]

    def commits(self) -> tuple[str, str]:
        """Random names of the last commit and of the one before it; empty where there was none."""
        found = {str(key): str(value) for key, value in self._db.read("SELECT key, value FROM meta")}
        return found.get("commit", ""), found.get("commit before", "")

    def check(self) -> list[str]:
        """Read everything; what is wrong, in words. Empty when nothing is."""
        found = self._db.check()
        try:
            self.chunks(self.documents())
            for _ in self.units_with_vectors(self.owners()):
                pass
        except StorageError as error:
            found.append(str(error))
        return found

    def documents(self) -> dict[str, StoredDocument]:
        """All documents by id, in corpus order."""
        rows = self._db.iterate(f"SELECT {_DOCUMENT_COLUMNS} FROM documents ORDER BY sequence, id")
        found = map(_verified, rows)
        return {r[0]: StoredDocument(r[0], r[1], r[2], r[3], json.loads(r[4]) if r[4] != "{}" else {}) for r in found}

    def chunks(self, documents: Mapping[str, StoredDocument] | None = None) -> list[Chunk]:
        """All chunks, ordered by (document sequence, position, id).

        Args:
            documents: What `documents` returned; None reads them.
        """
        documents = self.documents() if documents is None else documents
        rows = self._db.iterate(
            f"SELECT {_CHUNK_COLUMNS} FROM chunks c JOIN documents d ON d.id=c.doc_id "
            "ORDER BY d.sequence, c.position, c.id"
        )
        return [_chunk(row, documents[str(row[1])]) for row in rows]

    def units(self, owner: str) -> list[Unit]:
        """Units of one owner, by id."""
        return [unit for unit, _ in self.units_with_vectors([owner], vectors=False)]

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

    def units_with_vectors(
        self, owners: Sequence[str], *, vectors: bool = True
    ) -> Iterator[tuple[Unit, NDArray[np.float32]]]:
        """Units of some owners in order of id, with their vectors (empty arrays when `vectors` is off)."""
        column, nothing = "vector" if vectors else "x''", np.empty(0, dtype=np.float32)
        marks = ",".join("?" * len(owners))
        sql = f"SELECT {_UNIT_COLUMNS}, {column} FROM units WHERE owner IN ({marks}) ORDER BY id"
        for row in self._db.iterate(sql, list(owners)):
            yield _unit(row[:-1]), _vector(row[0], row[-1]) if vectors else nothing

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
        sql = f"SELECT kind, source, target, weight, metadata FROM edges WHERE owner IN ({marks}) ORDER BY 1, 2, 3"
        rows = self._db.iterate(sql, list(owners))
        found = [Edge(str(r[0]), str(r[1]), str(r[2]), float(r[3]), json.loads(str(r[4]))) for r in rows]
        blocks = self._db.read(f"SELECT key, body FROM notes WHERE owner IN ({marks}) AND key LIKE '%/%'", list(owners))
        for key, body in blocks:
            found += EdgeColumns.from_bytes(body).edges(str(key).split("/", 1)[0])
        return sorted(found, key=lambda edge: (edge.kind, edge.source, edge.target))

    def state(self, owner: str) -> dict[str, Any]:
        """What an organizer stored for itself."""
        rows = self._db.read("SELECT body FROM states WHERE owner=?", [owner])
        return dict(json.loads(str(rows[0][0]))) if rows else {}

    def notes(self, owner: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Notes of an organizer by key; unknown keys are left out."""
        sql = "SELECT key, body FROM notes WHERE owner=? AND key IN ({marks})"
        return {str(key): bytes(body) for key, body in self._db.read_in(sql, keys, [owner])}

    def notes_with(self, owner: str, prefix: str) -> dict[str, bytes]:
        """Notes of an organizer whose keys begin with a text."""
        sql = "SELECT key, body FROM notes WHERE owner=? AND key>=? AND key<?"
        rows = self._db.read(sql, [owner, prefix, prefix + "\U0010ffff"])
        return {str(key): bytes(body) for key, body in rows}

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
            note_changes(db, commit)
            db.executemany("DELETE FROM chunks WHERE id=?", [(chunk,) for chunk in commit.drop_chunks])
            db.executemany("DELETE FROM documents WHERE id=?", [(doc,) for doc in commit.drop_documents])
            db.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?,?,?,?,?,?)",
                [_checked((d.id, d.sequence, d.hash, d.title, _json(d.metadata))) for d in commit.put_documents],
            )
            db.executemany("INSERT OR REPLACE INTO chunks VALUES (?,?,?,?,?,?,?,?)", _chunk_rows(commit))
            for table in ("units", "edges", "states", "notes"):
                db.executemany(f"DELETE FROM {table} WHERE owner=?", [(owner,) for owner in commit.drop_owners])
            for owner in commit.drop_owners:
                drop_tables(db, owner)
            db.executemany(
                "UPDATE units SET vector=? WHERE id=?", ((_blob(v), unit) for unit, v in commit.revectors.items())
            )
            for owner, delta in commit.deltas.items():
                db.executemany("DELETE FROM units WHERE id=? AND owner=?", [(unit, owner) for unit in delta.drop_units])
                db.executemany(
                    "DELETE FROM edges WHERE owner=? AND kind=? AND source=? AND target=?",
                    [(owner, e.kind, e.source, e.target) for e in delta.drop_edges if e.kind not in delta.in_blocks],
                )
                db.executemany(
                    "INSERT OR REPLACE INTO units VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    (_unit_row(unit, owner, commit.vectors[unit.id]) for unit in delta.put_units),
                )
                db.executemany(
                    "INSERT OR REPLACE INTO edges VALUES (?,?,?,?,?,?)",
                    (
                        (owner, e.kind, e.source, e.target, e.weight, _json(e.metadata))
                        for e in delta.put_edges
                        if e.kind not in delta.in_blocks
                    ),
                )
                for name, change in delta.tables.items():
                    write_table(db, owner, name, change)
                if delta.state is not None:
                    db.execute("INSERT OR REPLACE INTO states VALUES (?,?)", (owner, _json(delta.state)))
                gone = [(owner, key) for key, body in delta.notes.items() if body is None]
                db.executemany("DELETE FROM notes WHERE owner=? AND key=?", gone)
                kept = ((owner, key, body) for key, body in delta.notes.items() if body is not None)
                db.executemany("INSERT OR REPLACE INTO notes VALUES (?,?,?)", kept)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('manifest',?)", (_json(commit.manifest),))
            db.execute("INSERT OR REPLACE INTO meta SELECT 'commit before', value FROM meta WHERE key='commit'")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('commit', lower(hex(randomblob(8))))")

    def compact(self) -> None:
        """Overwrite what was deleted and give the space back."""
        self._db.compact()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _chunk_rows(commit: Commit) -> Iterator[tuple[object, ...]]:
    """Rows of the chunks; title and metadata are NULL where they are the document's."""
    documents = {document.id: document for document in commit.put_documents}
    for chunk in commit.put_chunks:
        document = documents[chunk.doc_id]
        title = None if chunk.title == document.title else chunk.title
        metadata = None if chunk.metadata == document.metadata else _json(chunk.metadata)
        yield _checked((chunk.id, chunk.doc_id, chunk.position, chunk.text, title, metadata, chunk.source_id))


def _chunk(row: tuple[Any, ...], document: StoredDocument) -> Chunk:
    _verified(row)
    title = document.title if row[4] is None else str(row[4])
    metadata = document.metadata if row[5] is None else json.loads(row[5])
    return Chunk(str(row[0]), document.id, int(row[2]), title, str(row[3]), metadata, str(row[6]))


def _unit(row: tuple[Any, ...]) -> Unit:
    _verified(row)
    return Unit(
        id=row[0],
        kind=UnitKind(row[1]),
        text=row[2],
        chunk_ids=tuple(json.loads(row[5])),
        level=row[3],
        tree=row[4],
        entity_keys=tuple(json.loads(row[6])) if row[6] != "[]" else (),
        title=row[7],
        metadata=json.loads(row[8]) if row[8] != "{}" else {},
        source_ids=tuple(json.loads(row[9])) if row[9] != "[]" else (),
    )


def _unit_row(unit: Unit, owner: str, vector: NDArray[np.float32]) -> tuple[object, ...]:
    row = (
        unit.id,
        unit.kind.value,
        unit.text,
        unit.level,
        unit.tree,
        _json(unit.chunk_ids),
        _json(unit.entity_keys),
        unit.title,
        _json(unit.metadata),
        _json(unit.source_ids),
    )
    found, *rest = _checked(row)
    return (found, owner, *rest, _blob(vector))


# --- checksums: SQLite has none of its own, and a changed byte of a text would be believed ----------------------------


def _row_checksum(row: Sequence[object]) -> int:
    return zlib.crc32("\0".join(map(str, row)).encode("utf-8", "surrogatepass"))


def _checked(row: tuple[object, ...]) -> tuple[object, ...]:
    return (*row, _row_checksum(row))


def _verified(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row whose last column is the checksum of the others."""
    if row[-1] != _row_checksum(row[:-1]):
        raise _damage(row[0])
    return row


def _blob(vector: NDArray[np.float32]) -> bytes:
    content = np.ascontiguousarray(vector, dtype=np.float32).tobytes()
    return content + zlib.crc32(content).to_bytes(_CHECKSUM, "little")


def _vector(found: object, blob: bytes) -> NDArray[np.float32]:
    content = blob[:-_CHECKSUM]
    if zlib.crc32(content).to_bytes(_CHECKSUM, "little") != blob[-_CHECKSUM:]:
        raise _damage(found)
    return np.frombuffer(content, dtype=np.float32)


def _damage(found: object) -> StorageError:
    return StorageError(
        f"index.sqlite is damaged: {found!r} is not what was written. Restore the file from a backup, or delete it and "
        "build again; what was extracted and answered is kept in calls.sqlite and not paid for twice."
    )
