"""`index.sqlite`: documents, chunks, units, edges, vectors. The pool changes in one transaction per build."""

from __future__ import annotations

import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import language_of, layout_of
from sire_core.documents.change_plan import CorpusChange
from sire_core.documents.stored_corpus import StoredCorpus, StoredDocument
from sire_core.errors import SnapshotExpiredError, StorageError
from sire_core.storage.checksums import (
    CheckedWrites,
    check_table,
    complete,
    damage,
    require_complete,
    stored_json,
    verified,
)
from sire_core.storage.database import Database, FileStamp
from sire_core.storage.edge_notes import EDGE_NOTES, edges_of_note
from sire_core.storage.index_tables import (
    CHUNKS,
    DOCUMENTS,
    EDGES,
    LAYOUTS,
    META,
    NOTES,
    SCHEMA,
    STATES,
    TABLES,
    UNITS,
    VECTOR_CHECKSUM,
    Commit,
    chunk_of,
    chunk_rows,
    drop_tables,
    is_right_vector,
    metadata_json,
    to_json,
    unit_of,
    vector_blob,
    vector_of,
    write_delta,
)
from sire_core.storage.outbox import Outbox, note_changes
from sire_core.storage.step_tables import StepTables
from sire_core.text.languages import UNDETERMINED, find_language
from sire_core.text.pluralize import count
from sire_core.types import Chunk, Edge, Unit

_logger = logging.getLogger(__name__)

CORPUS = "corpus"  # Owner of the chunk units; every recipe's pool holds them

_CHUNK = ", ".join(f"c.{name}" for name in (*CHUNKS.columns, "checksum"))
_LAYOUT = "(SELECT body FROM layouts WHERE layouts.id={table}.id)"
_UNIT = f"{UNITS.selected}, {_LAYOUT.format(table='units')}"
_PAGE = 16384  # Bytes of a page: units have vectors, of which a page of 4 kB would hold one and be half empty
_SCAN_FROM_VECTORS = 1000  # So many vectors are found by reading all; fewer are looked up one by one
_MAX_CACHED = 200_000  # Maximum number of passages in the cache, at 1.7 kB each
_MAX_FOLLOWED = 1000
"""Maximum number of documents of a commit that the cache follows; after larger ones the next change reads all."""
_WEEK = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Verified:
    """Stamp and time of a successful full verification."""

    stamp: FileStamp  # What the file looked like
    at: int  # When all of it was read last, in seconds


class Store(Database):
    """Reads and writes `index.sqlite`. Thread-safe."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path, SCHEMA, page_size=_PAGE)
        self._sound = False
        self._verified = 0
        self._corpus = _CorpusCache()
        self._remembered: tuple[str, dict[str, dict[str, Any]]] = ("", {})  # Of a commit: by owner and table

    def close_verified(self) -> Verified | None:
        """Close the file; return its verification if all of it is verified."""
        stamp = self.close()
        return Verified(stamp, self._verified) if stamp and self._sound else None

    def manifest(self) -> dict[str, Any]:
        """Return the manifest of the last commit; empty before the first."""
        rows = self.read(f"SELECT {META.selected} FROM meta WHERE key='manifest'")
        if not rows:
            with self.snapshot():
                require_complete(self, META)
            return {}
        return stored_json(str(verified(rows[0], META)[1]), dict, "its manifest")

    def hold(self) -> str:
        """Keep this connection at the last commit until it is closed; return the name of that commit."""
        self.read("BEGIN")
        return self.commits()[0]

    def commits(self) -> tuple[str, str]:
        """Return random names of the last commit and of the one before; empty without one."""
        rows = self.read(f"SELECT {META.selected} FROM meta WHERE key LIKE 'commit%'")
        names = {str(row[0]): str(row[1]) for row in rows if verified(row, META)}
        return names.get("commit", ""), names.get("commit before", "")

    def check(self) -> list[str]:
        """Read everything; return what is wrong. Empty if nothing is."""
        problems = super().check()
        if problems:
            return problems
        with self.snapshot():
            for table in TABLES:
                if not (problems and table.elsewhere):  # damage of what it refers to is found already
                    problems += check_table(self, table)
            wrong = sum(not is_right_vector(blob) for (blob,) in self.iterate("SELECT vector FROM units"))
        if wrong:
            problems.append(f"{wrong:,} vectors are not what was written")
        return problems

    def require_sound(self, earlier: Verified | None = None) -> None:
        """Verify everything, once per process, before anything is derived from it and written."""
        if self._sound:
            return
        stamp, verified_at = self.stamp(), self.verified_at(earlier)
        if not verified_at and (problems := self.check()):
            raise damage(f"({problems[0]}) it")
        self._verified = verified_at or int(time.time())
        self.trust(stamp)
        self._sound = True

    def verified_at(self, earlier: Verified | None = None) -> int:
        """Time of the last verification of everything, in seconds; 0 if others have written since, or after a week."""
        if self._sound and self.trusted():
            return self._verified
        is_recent = earlier is not None and 0 <= int(time.time()) - earlier.at < _WEEK
        return earlier.at if earlier is not None and is_recent and earlier.stamp == self.stamp() else 0

    def require_complete(self, owners: Sequence[str]) -> None:
        """Raise if documents, chunks or units are missing; call it in a `snapshot`."""
        require_complete(self, DOCUMENTS)
        require_complete(self, CHUNKS)
        require_complete(self, UNITS, owners)

    def documents(self, only: Sequence[str] | None = None) -> dict[str, StoredDocument]:
        """Return documents by id, in corpus order."""
        sql, order = f"SELECT {DOCUMENTS.selected} FROM documents", "ORDER BY sequence, id"
        with self.snapshot():
            if only is None:
                sorted_rows = list(complete(self, DOCUMENTS, f"{sql} {order}"))
            else:
                rows = self.read_in(f"{sql} WHERE id IN ({{marks}})", only)
                sorted_rows = sorted((row for row in rows if verified(row, DOCUMENTS)), key=itemgetter(1, 0))
        return {
            r[0]: StoredDocument(r[0], r[1], r[2], r[3], stored_json(r[4], dict, r[0]) if r[4] != "{}" else {})
            for r in sorted_rows
        }

    def chunks(self, documents: Mapping[str, StoredDocument] | None = None, *, texts: bool = True) -> list[Chunk]:
        """Return all chunks, ordered by (document sequence, position, id); without their texts, which take memory."""
        with self.snapshot():
            documents = self.documents() if documents is None else documents
            # Not by an index of SQLite: it has no checksums, and one wrong bit hides a passage.
            layout = _LAYOUT.format(table="chunks")
            rows = complete(self, CHUNKS, f"SELECT {CHUNKS.selected}, {layout} FROM chunks NOT INDEXED")
            chunks: list[tuple[int, Chunk]] = []
            for row in rows:
                document = documents.get(str(row[1]))
                if document is None:
                    raise damage("a passage of a document that is gone")
                chunk = chunk_of(row, document)
                chunks.append((document.sequence, chunk if texts else replace(chunk, text="", layout="")))
        chunks.sort(key=lambda pair: (pair[0], pair[1].position, pair[1].id))
        return [chunk for _, chunk in chunks]

    def chunks_of(self, documents: Mapping[str, StoredDocument]) -> list[Chunk]:
        """Return chunks of some documents, in no particular order."""
        columns = f"{_CHUNK}, {_LAYOUT.format(table='c')}"
        rows = self.read_in(f"SELECT {columns} FROM chunks c WHERE doc_id IN ({{marks}})", list(documents))
        return [chunk_of(row, documents[str(row[1])]) for row in rows if verified(row, CHUNKS)]

    def metadata_values(self, keys: Sequence[str]) -> dict[str, list[Any]]:
        """Return the values of some metadata keys by document, in corpus order; None where a document has none."""
        columns = ", ".join(f"json_extract(metadata, '$.{key}')" for key in keys)
        rows = self.read(f"SELECT id, {columns} FROM documents ORDER BY sequence, id")
        return {str(name): values for name, *values in rows}

    def corpus(self) -> StoredCorpus:
        """Return documents and chunks for a change; cached for the next one."""
        return self._corpus.read(self)

    def units(self, owner: str) -> list[Unit]:
        """Return units of one owner, ordered by id."""
        with self.snapshot():
            return list(self.each_unit(owner))

    def each_unit(self, owner: str) -> Iterator[Unit]:
        """Yield units of one owner, ordered by id; call it in a `snapshot`."""
        for row in complete(self, UNITS, f"SELECT {_UNIT} FROM units WHERE owner=? ORDER BY id", owner):
            yield unit_of(row)

    def each_vector(self, owners: Sequence[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield ids and vectors of the units of some owners; call it in a `snapshot`."""
        marks, rows = ",".join("?" * len(owners)), 0
        for unit, blob in self.iterate(f"SELECT id, vector FROM units WHERE owner IN ({marks})", list(owners)):
            yield str(unit), vector_of(unit, blob)
            rows += 1
        if rows != self._units_of(owners)[0]:
            raise damage("the number of its vectors")

    def _units_of(self, owners: Sequence[str]) -> tuple[int, int]:
        """Return the number of units of some owners and the sum of their checksums, as stored."""
        marks = ",".join("?" * len(owners))
        sql = "SELECT coalesce(sum(rows), 0), coalesce(sum(total), 0) FROM sums WHERE name='units'"
        rows, total = self.read(f"{sql} AND part IN ({marks})", list(owners))[0]
        return int(rows), int(total)

    def units_by_id(self, ids: Sequence[str]) -> dict[str, Unit]:
        """Return units of any owner by id, without unknown ids."""
        rows = self.read_in(f"SELECT {_UNIT} FROM units WHERE id IN ({{marks}})", ids)
        return {str(row[0]): unit_of(row) for row in rows if verified(row, UNITS)}

    def units_of(self, ids: Sequence[str], owners: Sequence[str]) -> Iterator[tuple[Unit, NDArray[np.float32]]]:
        """Yield units by id with their vectors, without those of other owners and unknown ids."""
        marks = ",".join("?" * len(owners))
        sql = f"SELECT {_UNIT}, vector FROM units WHERE owner IN ({marks}) AND id IN ({{marks}})"
        for row in self.read_in(sql, ids, list(owners)):
            verified(row, UNITS)
            yield unit_of(row[:-1]), vector_of(row[0], row[-1])

    def outbox(self, mirror: str) -> Outbox:
        """Return the changes that are not yet sent to a user's vector store."""
        return Outbox(self, mirror)

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return vectors of units by id, without unknown ids."""
        if len(ids) < _SCAN_FROM_VECTORS:
            rows = self.read_in("SELECT id, vector FROM units WHERE id IN ({marks})", ids)
            return {str(unit): vector_of(unit, blob) for unit, blob in rows}
        wanted = set(ids)
        every = self.iterate("SELECT id, vector FROM units")
        return {str(unit): vector_of(unit, blob) for unit, blob in every if unit in wanted}

    def dimension(self) -> int:
        """Return the length of the vectors; 0 without any."""
        rows = self.read("SELECT length(vector) FROM units LIMIT 1")
        return (int(rows[0][0]) - VECTOR_CHECKSUM) // 4 if rows else 0

    def edges(self, owners: Sequence[str]) -> list[Edge]:
        """Return edges of some owners, ordered by kind, source, target."""
        marks = ",".join("?" * len(owners))
        edges = []
        with self.snapshot():
            require_complete(self, EDGES, owners)
            for row in self.iterate(f"SELECT {EDGES.selected} FROM edges WHERE owner IN ({marks})", list(owners)):
                _, kind, source, target, weight, metadata, _ = verified(row, EDGES)
                edges.append(Edge(kind, source, target, weight, stored_json(metadata, dict, source)))
            keys = " OR ".join(("0", *("key LIKE ?" for _ in EDGE_NOTES)))
            sql = f"SELECT {NOTES.selected} FROM notes WHERE owner IN ({marks}) AND ({keys})"
            notes = self._noted(lambda: self.read(sql, [*owners, *EDGE_NOTES]), owners)
        for key, body in notes:
            edges += edges_of_note(key, body)
        return sorted(edges, key=lambda edge: (edge.kind, edge.source, edge.target))

    def state(self, owner: str) -> dict[str, Any]:
        """Return the state that an organizer stored."""
        with self.snapshot():
            rows = self.read(f"SELECT {STATES.selected} FROM states WHERE owner=?", [owner])
            if not rows:
                require_complete(self, STATES)
                return {}
        return dict(stored_json(verified(rows[0], STATES)[1], dict, owner))

    def notes(self, owner: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return notes of an organizer by key, without unknown keys."""
        sql = f"SELECT {NOTES.selected} FROM notes WHERE owner=? AND key IN ({{marks}})"
        with self.snapshot():
            notes = {row[1]: row[2] for row in self.read_in(sql, keys, [owner]) if verified(row, NOTES)}
            if len(notes) < len(set(keys)):  # unknown or lost
                require_complete(self, NOTES, [owner])
        return notes

    def notes_with(self, owner: str, prefix: str) -> dict[str, bytes]:
        """Return notes of an organizer whose keys begin with a prefix."""
        sql = f"SELECT {NOTES.selected} FROM notes WHERE owner=? AND key>=? AND key<?"
        return dict(self._noted(lambda: self.read(sql, [owner, prefix, prefix + "\U0010ffff"]), [owner]))

    def _noted(self, read: Callable[[], Iterable[tuple[Any, ...]]], owners: Sequence[str]) -> list[tuple[str, bytes]]:
        with self.snapshot():
            require_complete(self, NOTES, owners)
            return [(row[1], row[2]) for row in read() if verified(row, NOTES)]

    def tables(self, owner: str) -> StepTables:
        """Return rows and outputs of an organizer's steps."""
        name, remembered = self._remembered
        return StepTables(self, owner, remembered.get(owner, {}) if name and name == self.commits()[0] else {})

    def owners(self) -> list[str]:
        """Return all owners of units."""
        return [str(row[0]) for row in self.read("SELECT DISTINCT owner FROM units ORDER BY owner")]

    def languages(self) -> dict[str, int]:
        """Return the number of documents by the code of their language, most first; `und` where none is stored."""
        language = "substr(l.body, 1, max(instr(l.body, '!'), 1) - 1)"
        sql = (
            f"SELECT {language}, count(DISTINCT c.doc_id) FROM chunks c JOIN layouts l ON l.id = c.id "
            "GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        return {str(code) or UNDETERMINED: int(count) for code, count in self.read(sql, [])}

    def counts(self, owners: Sequence[str]) -> dict[str, int]:
        """Return the number of units by kind."""
        marks = ",".join("?" * len(owners))
        with self.snapshot():  # SQLite's indexes have no checksums, rows have
            sql = (
                "SELECT kind, count(*), min(rowid), sum(checksum) FROM units NOT INDEXED "
                f"WHERE owner IN ({marks}) GROUP BY kind ORDER BY kind"
            )
            kinds = self.read(sql, list(owners))
            counts = {str(kind): int(count) for kind, count, *_ in kinds}
            sql = f"SELECT {_UNIT} FROM units WHERE rowid IN ({{marks}})"
            rows = self.read_in(sql, [row for *_, row, _ in kinds])
            if {unit_of(row).kind.value for row in rows if verified(row, UNITS)} != set(counts):
                raise damage("a kind of 'units'")
            if (sum(counts.values()), sum(total for *_, total in kinds)) != self._units_of(owners):
                raise damage("the number of its rows in 'units'")
        return counts

    def commit(self, commit: Commit) -> None:
        """Apply everything in one transaction."""
        with self.transaction(rows=sum(len(delta.put_units) for delta in commit.deltas.values())) as db:
            writes = CheckedWrites(db)
            note_changes(db, writes, commit)
            for table in (CHUNKS, LAYOUTS):
                writes.delete(table, ["id"], [(chunk,) for chunk in commit.drop_chunks])
            writes.delete(DOCUMENTS, ["id"], [(doc,) for doc in commit.drop_documents])
            documents = ((d.id, d.sequence, d.hash, d.title, metadata_json(d.metadata)) for d in commit.put_documents)
            writes.replace(DOCUMENTS, ["id"], documents)
            writes.replace(CHUNKS, ["id"], chunk_rows(commit))
            writes.replace(LAYOUTS, ["id"], ((chunk.id, chunk.layout) for chunk in commit.put_chunks))
            writes.finish()
            _read_anew(db, writes)
            for owner in commit.drop_owners:
                for table in (UNITS, EDGES, STATES, NOTES):
                    writes.delete(table, ["owner"], [(owner,)])
                drop_tables(db, writes, owner)
            db.executemany(
                "UPDATE units SET vector=? WHERE id=?", ((vector_blob(v), unit) for unit, v in commit.revectors.items())
            )
            for owner, delta in commit.deltas.items():
                write_delta(db, writes, owner, delta, commit.vectors, passages=owner == CORPUS)
            name = secrets.token_hex(8)
            meta = [("manifest", to_json(commit.manifest)), ("commit", name)]
            before = db.execute("SELECT value FROM meta WHERE key='commit'").fetchone()
            writes.replace(META, ["key"], [*meta, *([("commit before", before[0])] if before else [])])
            writes.finish()
        self._corpus.follow(self, commit)
        deltas = commit.deltas.items()
        remembered = {owner: {table: one.remembered for table, one in delta.tables.items()} for owner, delta in deltas}
        self._remembered = name, remembered


def _read_anew(db: sqlite3.Connection, writes: CheckedWrites) -> None:
    """Read the blocks and the language of passages that an older version stored without them."""
    counts = dict(db.execute("SELECT name, rows FROM sums WHERE name IN ('chunks', 'layouts')").fetchall())
    first = db.execute("SELECT body FROM layouts LIMIT 1").fetchone()
    if counts.get("chunks", 0) <= counts.get("layouts", 0) and (first is None or language_of(first[0])):
        return
    sql = "SELECT c.id, c.text, l.body FROM chunks c LEFT JOIN layouts l ON l.id = c.id"
    rows = [row for row in db.execute(sql).fetchall() if not language_of(row[2] or "")]
    _logger.warning("The structure of %s of an older version is read anew, this once.", count(len(rows), "passage"))
    bodies = ((name, text, layout_of(read_blocks(text)) if body is None else body) for name, text, body in rows)
    writes.replace(LAYOUTS, ["id"], ((name, f"{find_language(text)}!{body}") for name, text, body in bodies))


class _CorpusCache:
    """Documents and passages of a store, kept in memory for the next change, which mostly comes from this process."""

    def __init__(self) -> None:
        self._cached: tuple[str, StoredCorpus] | None = None

    def read(self, store: Store) -> StoredCorpus:
        """Return the corpus of the last commit by any process."""
        with store.snapshot():
            commit, cached = store.commits()[0], self._cached
            if cached is not None and cached[0] == commit:
                return cached[1]
            documents = store.documents()
            chunks = store.chunks(documents)
        corpus = StoredCorpus.of(documents, chunks)
        self._cache(commit, corpus)
        return corpus

    def follow(self, store: Store, commit: Commit) -> None:
        """Apply a commit that this process just made to the cached corpus."""
        cached, self._cached = self._cached, None
        if cached is None or len(commit.put_documents) > _MAX_FOLLOWED:
            return
        with suppress(StorageError), store.snapshot():  # it is committed; the next change reads all
            name, before = store.commits()
            if cached[0] == before:  # as stored: what the caller holds of its documents may change
                put = store.documents([document.id for document in commit.put_documents])
                change = CorpusChange(tuple(put.values()), tuple(store.chunks_of(put)), tuple(commit.drop_documents))
                self._cache(name, cached[1].updated(change).after)

    def _cache(self, commit: str, corpus: StoredCorpus) -> None:
        self._cached = (commit, corpus) if len(corpus.chunks) <= _MAX_CACHED else None


class LazyReader:
    """Reads edges and notes lazily from one generation."""

    def __init__(self, store: Store, commit: str, owners: Sequence[str]) -> None:
        self._store = store
        self._commit = commit
        self._owners = list(owners)

    def edges(self) -> list[Edge]:
        """Return the edges of the pool."""
        with self._store.snapshot():
            self._check()
            return self._store.edges(self._owners) if self._owners else []

    def notes(self, prefix: str) -> dict[str, bytes]:
        """Return notes of the pool whose keys begin with a prefix; of equal keys the first owner's."""
        notes: dict[str, bytes] = {}
        with self._store.snapshot():
            self._check()
            for owner in self._owners:
                notes = {**self._store.notes_with(owner, prefix), **notes}
        return dict(sorted(notes.items()))

    def _check(self) -> None:
        if self._store.commits()[0] != self._commit:
            raise SnapshotExpiredError(
                "The index has changed since this snapshot of it was taken. Take a new one: Index.snapshot()."
            )
