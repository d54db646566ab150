"""`index.sqlite`: documents, chunks, units, edges, vectors. The pool changes in one transaction per build."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sire_core.corpus.changes import StoredDocument
from sire_core.storage.commit import Commit
from sire_core.storage.database import Database
from sire_core.storage.outbox import OUTBOX_SCHEMA, Outbox, note_changes
from sire_core.types import Chunk, Edge, Unit, UnitKind

__all__ = ["CORPUS", "Store"]

CORPUS = "corpus"
"""Owner of the chunk units; every recipe's pool holds them."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, hash TEXT NOT NULL, title TEXT NOT NULL, metadata TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
    id TEXT PRIMARY KEY, doc_id TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunks_of_document ON chunks (doc_id);
CREATE TABLE IF NOT EXISTS units (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, level INTEGER NOT NULL,
    tree TEXT NOT NULL, chunk_ids TEXT NOT NULL, entity_keys TEXT NOT NULL, title TEXT NOT NULL, metadata TEXT NOT NULL,
    vector BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS units_of_owner ON units (owner, kind);
CREATE TABLE IF NOT EXISTS edges (
    owner TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
    weight REAL NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (owner, kind, source, target)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS states (owner TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (
    owner TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (owner, key)) WITHOUT ROWID;
"""

_UNIT_COLUMNS = "id, kind, text, level, tree, chunk_ids, entity_keys, title, metadata"


class Store:
    """Reads and writes `index.sqlite`. Thread-safe.

    Args:
        path: The file; None keeps everything in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._db = Database(path, _SCHEMA + OUTBOX_SCHEMA)

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

    def documents(self) -> dict[str, StoredDocument]:
        """All documents by id, in corpus order."""
        rows = self._db.iterate("SELECT id, sequence, hash, title, metadata FROM documents ORDER BY sequence, id")
        return {r[0]: StoredDocument(r[0], r[1], r[2], r[3], json.loads(r[4]) if r[4] != "{}" else {}) for r in rows}

    def chunks(self, documents: Mapping[str, StoredDocument] | None = None) -> list[Chunk]:
        """All chunks, ordered by (document sequence, position, id).

        Args:
            documents: What `documents` returned; None reads them.
        """
        documents = self.documents() if documents is None else documents
        rows = self._db.iterate(
            "SELECT c.id, c.doc_id, c.position, c.text FROM chunks c JOIN documents d ON d.id=c.doc_id "
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
            yield _unit(row), np.frombuffer(row[9], dtype=np.float32)

    def documents_of_chunks(self) -> dict[str, str]:
        """Document id by chunk id."""
        return {str(chunk): str(doc) for chunk, doc in self._db.read("SELECT id, doc_id FROM chunks")}

    def outbox(self, mirror: str) -> Outbox:
        """What a user's vector store has still to be told."""
        return Outbox(self._db, mirror)

    def units_with_vectors(
        self, owners: Sequence[str], *, vectors: bool = True
    ) -> Iterator[tuple[Unit, NDArray[np.float32]]]:
        """Units of some owners in order of id, with their vectors (empty arrays when `vectors` is off)."""
        column = "vector" if vectors else "x''"
        marks = ",".join("?" * len(owners))
        sql = f"SELECT {_UNIT_COLUMNS}, {column} FROM units WHERE owner IN ({marks}) ORDER BY id"
        for row in self._db.iterate(sql, list(owners)):
            yield _unit(row), np.frombuffer(row[9], dtype=np.float32)

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Vectors of units by id; unknown ids are left out."""
        rows = self._db.read_in("SELECT id, vector FROM units WHERE id IN ({marks})", ids)
        return {str(found): np.frombuffer(blob, dtype=np.float32) for found, blob in rows}

    def dimension(self) -> int:
        """Length of the vectors; 0 when there are none."""
        rows = self._db.read("SELECT length(vector) FROM units LIMIT 1")
        return int(rows[0][0]) // 4 if rows else 0

    def edges(self, owners: Sequence[str]) -> list[Edge]:
        """Edges of some owners, ordered by kind, source, target."""
        marks = ",".join("?" * len(owners))
        sql = f"SELECT kind, source, target, weight, metadata FROM edges WHERE owner IN ({marks}) ORDER BY 1, 2, 3"
        rows = self._db.iterate(sql, list(owners))
        return [Edge(str(r[0]), str(r[1]), str(r[2]), float(r[3]), json.loads(str(r[4]))) for r in rows]

    def state(self, owner: str) -> dict[str, Any]:
        """What an organizer stored for itself."""
        rows = self._db.read("SELECT body FROM states WHERE owner=?", [owner])
        return dict(json.loads(str(rows[0][0]))) if rows else {}

    def notes(self, owner: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Notes of an organizer by key; unknown keys are left out."""
        sql = "SELECT key, body FROM notes WHERE owner=? AND key IN ({marks})"
        return {str(key): bytes(body) for key, body in self._db.read_in(sql, keys, [owner])}

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
                "INSERT OR REPLACE INTO documents VALUES (?,?,?,?,?)",
                [(d.id, d.sequence, d.hash, d.title, _json(d.metadata)) for d in commit.put_documents],
            )
            db.executemany(
                "INSERT OR REPLACE INTO chunks VALUES (?,?,?,?)",
                [(c.id, c.doc_id, c.position, c.text) for c in commit.put_chunks],
            )
            for table in ("units", "edges", "states", "notes"):
                db.executemany(f"DELETE FROM {table} WHERE owner=?", [(owner,) for owner in commit.drop_owners])
            db.executemany(
                "UPDATE units SET vector=? WHERE id=?", ((v.tobytes(), unit) for unit, v in commit.revectors.items())
            )
            for owner, delta in commit.deltas.items():
                db.executemany("DELETE FROM units WHERE id=? AND owner=?", [(unit, owner) for unit in delta.drop_units])
                db.executemany(
                    "DELETE FROM edges WHERE owner=? AND kind=? AND source=? AND target=?",
                    [(owner, e.kind, e.source, e.target) for e in delta.drop_edges],
                )
                db.executemany(
                    "INSERT OR REPLACE INTO units VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                    (_unit_row(unit, owner, commit.vectors[unit.id]) for unit in delta.put_units),
                )
                db.executemany(
                    "INSERT OR REPLACE INTO edges VALUES (?,?,?,?,?,?)",
                    ((owner, e.kind, e.source, e.target, e.weight, _json(e.metadata)) for e in delta.put_edges),
                )
                if delta.state is not None:
                    db.execute("INSERT OR REPLACE INTO states VALUES (?,?)", (owner, _json(delta.state)))
                gone = [(owner, key) for key, body in delta.notes.items() if body is None]
                db.executemany("DELETE FROM notes WHERE owner=? AND key=?", gone)
                kept = ((owner, key, body) for key, body in delta.notes.items() if body is not None)
                db.executemany("INSERT OR REPLACE INTO notes VALUES (?,?,?)", kept)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('manifest',?)", (_json(commit.manifest),))

    def compact(self) -> None:
        """Overwrite what was deleted and give the space back."""
        self._db.compact()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _chunk(row: tuple[Any, ...], document: StoredDocument) -> Chunk:
    return Chunk(str(row[0]), document.id, int(row[2]), document.title, str(row[3]), document.metadata)


def _unit(row: tuple[Any, ...]) -> Unit:
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
        np.ascontiguousarray(vector, dtype=np.float32).tobytes(),
    )
