"""The tables of `index.sqlite`, what one change writes to them, and the conversion of their rows."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from sire_core.documents.stored_corpus import StoredDocument
from sire_core.protocols import Delta, FloatArray, TableChange
from sire_core.storage.checksums import (
    SUMS_SCHEMA,
    CheckedTable,
    CheckedWrites,
    damage,
    stored_json,
    stored_texts,
)
from sire_core.storage.outbox import OUTBOX_SCHEMA, OUTBOX_TABLES
from sire_core.storage.step_tables import (
    ROWS_OF_ITEM,
    STEP_OUTPUTS,
    STEP_ROWS,
    STEP_SCHEMA,
    STEP_TABLES,
    STEPS,
)
from sire_core.types import Chunk, Unit, UnitKind


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything that one build, add, update or delete changes."""

    put_documents: Sequence[StoredDocument] = ()  # New or changed documents
    drop_documents: Sequence[str] = ()  # Ids of documents that are gone
    put_chunks: Sequence[Chunk] = ()  # New chunks
    drop_chunks: Sequence[str] = ()  # Ids of chunks that are gone
    deltas: Mapping[str, Delta] = field(default_factory=dict)  # Changes by owner (organizer fingerprints and `CORPUS`)
    vectors: Mapping[str, FloatArray] = field(default_factory=dict)  # Vectors of all put units, by unit id
    # New vectors of units that stay, after the embedder was refitted
    revectors: Mapping[str, FloatArray] = field(default_factory=dict)
    drop_owners: Sequence[str] = ()  # Owners whose units, edges and state go altogether
    manifest: Mapping[str, Any] = field(default_factory=dict)  # The manifest after the change


SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS meta (
    key TEXT PRIMARY KEY, checksum INTEGER NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, checksum INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL, title TEXT NOT NULL,
    metadata TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
    id TEXT PRIMARY KEY, checksum INTEGER NOT NULL, doc_id TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL,
    title TEXT, metadata TEXT, source_id TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS chunks_of_document ON chunks (doc_id);
CREATE TABLE IF NOT EXISTS layouts (
    id TEXT PRIMARY KEY, checksum INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
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
    + STEP_SCHEMA
    + OUTBOX_SCHEMA
    + SUMS_SCHEMA
)

META = CheckedTable("meta", ("key", "value"), "tt")
DOCUMENTS = CheckedTable("documents", ("id", "sequence", "hash", "title", "metadata"), "tittt")
CHUNKS = CheckedTable("chunks", ("id", "doc_id", "position", "text", "title", "metadata", "source_id"), "ttitTTt")
LAYOUTS = CheckedTable("layouts", ("id", "body"), "tt")
"""Blocks of passages by the id of the chunk; without a row they are read from the text."""
UNITS = CheckedTable(
    "units",
    (
        *("id", "owner", "kind", "text", "level", "tree", "chunk_ids", "entity_keys", "title", "metadata"),
        "source_ids",
    ),
    "ttttitttttt",
    "owner",
    ("vector",),
    {"text": "(SELECT c.text FROM chunks c WHERE c.id=units.id)"},
)
"""The text of a passage stands in `chunks`; of passages alike in all, the unit has the id of the first."""
EDGES = CheckedTable("edges", ("owner", "kind", "source", "target", "weight", "metadata"), "ttttrt", "owner")
STATES = CheckedTable("states", ("owner", "body"), "tt")
NOTES = CheckedTable("notes", ("owner", "key", "body"), "ttb", "owner")
TABLES = (META, DOCUMENTS, CHUNKS, LAYOUTS, UNITS, EDGES, STATES, NOTES, *STEP_TABLES, *OUTBOX_TABLES)
# `json.dumps` makes an encoder for every call that has options of its own.
_as_given = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_sorted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
VECTOR_CHECKSUM = 4  # Bytes behind every vector


def write_table(db: sqlite3.Connection, writes: CheckedWrites, owner: str, name: str, change: TableChange) -> None:
    """Write a change of a table, in the transaction of a commit."""
    stored_step = db.execute("SELECT id FROM steps WHERE owner=? AND name=?", (owner, name)).fetchone()
    step = stored_step[0] if stored_step else db.execute("SELECT coalesce(max(id), 0) + 1 FROM steps").fetchone()[0]
    if not stored_step:
        writes.insert(STEPS, [(step, owner, name)])
    writes.delete(STEP_ROWS, ["step", "item"], [(step, item) for item in change.drop_items], ROWS_OF_ITEM)
    by_key = (rows for _, rows in groupby(change.put_rows, key=itemgetter(0)))
    writes.insert(STEP_ROWS, (row for rows in by_key for row in {row[:4]: (step, *row) for row in rows}.values()))
    writes.delete(STEP_OUTPUTS, ["step", "key"], [(step, key) for key in change.drop_outputs])
    outputs = (
        (step, key, position, number, int(failed), body) for key, position, number, failed, body in change.put_outputs
    )
    if stored_step:
        writes.replace(STEP_OUTPUTS, ["step", "key"], outputs)
    else:
        writes.insert(STEP_OUTPUTS, outputs)


def drop_tables(db: sqlite3.Connection, writes: CheckedWrites, owner: str) -> None:
    """Delete all tables of an organizer."""
    for (step,) in db.execute("SELECT id FROM steps WHERE owner=?", (owner,)).fetchall():
        for table in (STEP_ROWS, STEP_OUTPUTS):
            writes.delete(table, ["step"], [(step,)])
    writes.delete(STEPS, ["owner"], [(owner,)])


def write_delta(
    db: sqlite3.Connection,
    writes: CheckedWrites,
    owner: str,
    delta: Delta,
    vectors: Mapping[str, FloatArray],
    *,
    passages: bool = False,
) -> None:
    """Write the changes of an organizer, or the passages, whose texts are written already."""
    writes.delete(UNITS, ["id", "owner"], [(unit, owner) for unit in delta.drop_units])
    edge = ("owner", "kind", "source", "target")
    gone = [(owner, e.kind, e.source, e.target) for e in delta.drop_edges]
    writes.delete(EDGES, edge, gone)
    units = (_unit_row(unit, owner, vectors[unit.id]) for unit in delta.put_units)
    writes.replace(UNITS, ["id"], units, elsewhere=passages)
    edges = ((owner, e.kind, e.source, e.target, float(e.weight), to_json(e.metadata)) for e in delta.put_edges)
    writes.replace(EDGES, edge, edges)
    for name, change in delta.tables.items():
        write_table(db, writes, owner, name, change)
    if delta.state is not None:
        writes.replace(STATES, ["owner"], [(owner, to_json(delta.state))])
    writes.delete(NOTES, ["owner", "key"], [(owner, key) for key, body in delta.notes.items() if body is None])
    notes = ((owner, key, bytes(body)) for key, body in delta.notes.items() if body is not None)
    writes.replace(NOTES, ["owner", "key"], notes)


def metadata_json(metadata: Mapping[str, Any]) -> str:
    """Return metadata as JSON, with keys in the user's order; what compares documents sorts them."""
    return _as_given(metadata)


def to_json(value: object) -> str:
    """Return JSON that is the same for equal values."""
    return _sorted(value)


def chunk_rows(commit: Commit) -> Iterator[tuple[object, ...]]:
    """Yield the rows of chunks; title and metadata are NULL if they are the document's."""
    documents = {document.id: document for document in commit.put_documents}
    for chunk in commit.put_chunks:
        document = documents[chunk.doc_id]
        title = None if chunk.title == document.title else chunk.title
        # As JSON: 1 and True are equal, and no filter may take one for the other.
        differs = chunk.metadata is not document.metadata
        text = metadata_json(chunk.metadata) if differs else ""
        metadata = text if differs and text != metadata_json(document.metadata) else None
        yield (chunk.id, chunk.doc_id, chunk.position, chunk.text, title, metadata, chunk.source_id)


def chunk_of(row: tuple[Any, ...], document: StoredDocument) -> Chunk:
    """Return a chunk from its verified row, its layout behind the checksum, and its document."""
    title = document.title if row[4] is None else str(row[4])
    metadata = document.metadata if row[5] is None else stored_json(row[5], dict, row[0])
    return Chunk(str(row[0]), document.id, int(row[2]), title, str(row[3]), metadata, str(row[6]), row[8] or "")


def unit_of(row: tuple[Any, ...]) -> Unit:
    """Return a unit from its verified row, its layout behind the checksum."""
    unit, _, kind, text, level, tree, chunk_ids, entity_keys, title, metadata, source_ids, _, layout = row
    return Unit(
        id=unit,
        kind=UnitKind.define(kind),
        text=text,
        chunk_ids=stored_texts(chunk_ids, unit),
        level=level,
        tree=tree,
        entity_keys=stored_texts(entity_keys, unit) if entity_keys != "[]" else (),
        title=title,
        metadata=stored_json(metadata, dict, unit) if metadata != "{}" else {},
        source_ids=stored_texts(source_ids, unit) if source_ids != "[]" else (),
        layout=layout or "",
    )


def _unit_row(unit: Unit, owner: str, vector: FloatArray) -> tuple[object, ...]:
    return (
        unit.id,
        owner,
        unit.kind.value,
        unit.text,
        unit.level,
        unit.tree,
        to_json(unit.chunk_ids),
        to_json(unit.entity_keys),
        unit.title,
        metadata_json(unit.metadata),
        to_json(unit.source_ids),
        vector_blob(vector),
    )


def vector_blob(vector: FloatArray) -> bytes:
    """Return the bytes of a vector, with a checksum."""
    content = np.ascontiguousarray(vector, dtype=np.float32).tobytes()
    return content + zlib.crc32(content).to_bytes(VECTOR_CHECKSUM, "little")


def vector_of(unit: object, blob: bytes) -> FloatArray:
    """Return a vector from its bytes; `unit` is its id for errors."""
    if not is_right_vector(blob):
        raise damage(f"the vector of {unit!r}")
    return np.frombuffer(blob[:-VECTOR_CHECKSUM], dtype=np.float32)


def is_right_vector(blob: object) -> bool:
    """True if bytes are a vector with the right checksum."""
    if not isinstance(blob, bytes) or len(blob) % 4:
        return False
    return zlib.crc32(blob[:-VECTOR_CHECKSUM]).to_bytes(VECTOR_CHECKSUM, "little") == blob[-VECTOR_CHECKSUM:]
