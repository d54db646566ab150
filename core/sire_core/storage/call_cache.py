"""Cache of model answers, extraction records and vectors in `calls.sqlite`; every write is committed at once.

Every row has a checksum. A damaged row counts as absent and is computed again; nothing else depends on it. The table of
documents that wait to be indexed is here, too, since it may be written while a build writes the index.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sire_core.errors import StorageError
from sire_core.storage.array_file import pack_arrays, unpack_arrays
from sire_core.storage.checksums import CheckedTable, is_intact, row_checksum
from sire_core.storage.database import Database

if TYPE_CHECKING:
    from sire_core.extraction.record import StoredRecord
    from sire_core.types import ExtractionRecord

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    fingerprint TEXT NOT NULL, hash TEXT NOT NULL, status TEXT NOT NULL, body BLOB NOT NULL, checksum INTEGER,
    PRIMARY KEY (fingerprint, hash));
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, body TEXT NOT NULL, stage TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, checksum INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answer_sources (
    hash TEXT NOT NULL, key TEXT NOT NULL, checksum INTEGER, PRIMARY KEY (hash, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (
    fingerprint TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL, checksum INTEGER,
    PRIMARY KEY (fingerprint, hash)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pending (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, body TEXT NOT NULL, checksum INTEGER);
CREATE TABLE IF NOT EXISTS fitted (name TEXT PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER) WITHOUT ROWID;
"""

_RECORDS = CheckedTable("records", ("fingerprint", "hash", "status", "body"), "tttb")
_ANSWERS = CheckedTable("answers", ("key", "body", "stage", "input_tokens", "output_tokens"), "tttii")
_SOURCES = CheckedTable("answer_sources", ("hash", "key"), "tt")
_VECTORS = CheckedTable("vectors", ("fingerprint", "hash", "vector"), "ttb")
_FITTED = CheckedTable("fitted", ("name", "body"), "tb")
_PENDING = CheckedTable("pending", ("id", "body"), "tt")

_logger = logging.getLogger(__name__)


def _with_checksum(*row: object) -> tuple[object, ...]:
    return (*row, row_checksum(row))


def _intact_rows(table: CheckedTable, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows whose checksum (their last column) is right, without it."""
    wrong = 0
    for row in rows:
        if is_intact(row, table):
            yield row[:-1]
        else:
            wrong += 1
    if wrong:
        _logger.warning(
            "calls.sqlite: %d damaged rows of %r are left out; what is needed of them is asked for again.",
            wrong,
            table.name,
        )


_MANY = 1000


class CallStore(Database):
    """Results that must not be computed or paid for twice. Thread-safe; every put commits at once."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path, _SCHEMA, shrinks=True)
        self._fitted: dict[str, Mapping[str, NDArray[Any]]] = {}
        self._good_hashes: dict[str, set[str]] = {}  # hashes of intact records, by fingerprint

    def check(self) -> list[str]:
        """Read everything; return what is wrong. Empty if nothing is."""
        problems = super().check()
        if problems:
            return problems
        for table in (_RECORDS, _ANSWERS, _SOURCES, _VECTORS, _FITTED, _PENDING):
            rows = self.iterate(f"SELECT {table.selected} FROM {table.name}")
            wrong = sum(not is_intact(row, table) for row in rows)
            if wrong:
                problems.append(f"{wrong:,} rows of the table {table.name!r} are not what was written")
        return problems

    def _read(
        self, table: CheckedTable, condition: str, parameters: Sequence[object], values: Sequence[object] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the intact rows of a table, with all columns."""
        sql = f"SELECT {table.selected} FROM {table.name} WHERE {condition}"
        return _intact_rows(
            table, self.iterate(sql, parameters) if values is None else self.read_in(sql, values, parameters)
        )

    # --- extraction records -----------------------------------------------------------------------------------------

    def records(self, fingerprint: str, hashes: Sequence[str]) -> dict[str, ExtractionRecord]:
        """Return stored records by chunk hash, without failed ones."""
        from sire_core.extraction.record import read_records

        return read_records(self.bodies(fingerprint, hashes))

    def bodies(self, fingerprint: str, hashes: Sequence[str] | None = None) -> dict[str, bytes]:
        """Return records, some or all, as they are stored (see `stored_json`), by chunk hash, without failed ones."""
        return {row[1]: row[3] for row in self._good(fingerprint, hashes)}

    def known(self, fingerprint: str, hashes: Collection[str]) -> set[str]:
        """Return which of the hashes have a record that did not fail."""
        # Intact records are not read again, unless another process has written to the file.
        if not self.trusted():
            self._good_hashes.clear()
        stamp, right = self.stamp(), self._good_hashes.setdefault(fingerprint, set())
        new = set(hashes) - right
        # A scan is faster than many look-ups.
        right.update([row[1] for row in self._good(fingerprint, None if len(new) > _MANY else sorted(new))])
        self.trust(stamp)
        return right.intersection(hashes)

    def _good(self, fingerprint: str, hashes: Sequence[str] | None) -> Iterator[tuple[Any, ...]]:
        """Yield rows of records that did not fail."""
        condition = "fingerprint=? AND status!='failed'"
        if hashes is None:
            return self._read(_RECORDS, condition, [fingerprint])
        return self._read(_RECORDS, f"{condition} AND hash IN ({{marks}})", [fingerprint], list(dict.fromkeys(hashes)))

    def put_records(self, fingerprint: str, records: Sequence[StoredRecord]) -> None:
        """Store records. A failed one never replaces a good one, and is tried again by the next build."""
        keep = "WHERE excluded.status!='failed' OR records.status='failed'"
        with self.transaction() as connection:
            connection.executemany(
                "INSERT INTO records VALUES (?,?,?,?,?) ON CONFLICT (fingerprint, hash) "
                f"DO UPDATE SET status=excluded.status, body=excluded.body, checksum=excluded.checksum {keep}",
                [_with_checksum(fingerprint, record.hash, record.status, record.body) for record in records],
            )

    def failures(self, fingerprint: str) -> list[tuple[str, str]]:
        """Return (chunk hash, reason) of failed records."""
        from sire_core.extraction.record import read_records

        rows = self._read(_RECORDS, "fingerprint=? AND status='failed' ORDER BY hash", [fingerprint])
        return [(name, record.reason) for name, record in read_records({row[1]: row[3] for row in rows}).items()]

    # --- model answers ----------------------------------------------------------------------------------------------

    def answer(self, key: str) -> tuple[str, int, int] | None:
        """Return a validated answer and the tokens of its prompt and its own, or None."""
        return next(((row[1], row[3], row[4]) for row in self._read(_ANSWERS, "key=?", [key])), None)

    def put_answer(
        self,
        key: str,
        answer: str,
        *,
        sources: Sequence[str] = (),
        stage: str = "",
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        """Store a validated answer."""
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?,?,?,?,?,?)",
                _with_checksum(key, answer, stage, input_tokens, output_tokens),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO answer_sources VALUES (?,?,?)",
                [_with_checksum(source, key) for source in dict.fromkeys(sources)],
            )

    def spent(self) -> list[tuple[str, int, int, int]]:
        """Return stage, number of answers, input and output tokens of the stored answers."""
        sums: dict[str, list[int]] = {}
        for _, _, stage, read, written in self._read(_ANSWERS, "1", []):
            total = sums.setdefault(stage, [0, 0, 0])
            for position, number in enumerate((1, read, written)):
                total[position] += number
        return [(stage, answers, read, written) for stage, (answers, read, written) in sorted(sums.items())]

    # --- vectors on their way into the index ------------------------------------------------------------------------

    def vectors(self, fingerprint: str, hashes: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return stored vectors by text hash."""
        condition, unique = "fingerprint=? AND hash IN ({marks})", list(dict.fromkeys(hashes))
        rows = self._read(_VECTORS, condition, [fingerprint], unique)
        return {hash_: np.frombuffer(blob, dtype=np.float32) for _, hash_, blob in rows if len(blob) % 4 == 0}

    def put_vectors(self, fingerprint: str, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Store vectors, `[len(hashes), dimension]`, until the index holds them."""
        rows = [
            _with_checksum(fingerprint, text, vector.tobytes()) for text, vector in zip(hashes, vectors, strict=True)
        ]
        with self.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?,?,?,?)", rows)

    def clear_vectors(self) -> None:
        """Delete the vectors, once the index has them."""
        if self.read("SELECT 1 FROM vectors LIMIT 1"):
            self.discard("vectors")

    # --- what embedders and extractors learned ----------------------------------------------------------------------

    def fitted(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        """Return arrays stored under a name, or None."""
        if name not in self._fitted:  # a name tells what stands under it: nothing ever takes its place
            rows = list(self._read(_FITTED, "name=?", [name]))
            if not rows:
                return None
            try:
                self._fitted[name] = unpack_arrays(rows[0][1])
            except Exception:  # noqa: BLE001 - what was forged may raise anything: as if it were not there
                return None
        return self._fitted[name]

    def put_fitted(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Store arrays under a name."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO fitted VALUES (?,?,?)", _with_checksum(name, pack_arrays(state)))

    def keep_fitted(self, names: Sequence[str]) -> None:
        """Delete all fitted arrays with other names."""
        marks = ",".join("?" * len(names))
        with self.transaction() as connection:
            connection.execute(f"DELETE FROM fitted WHERE name NOT IN ({marks})", list(names))
        self._fitted = {name: state for name, state in self._fitted.items() if name in names}

    def superseded(self, fingerprint: str, hashes: Collection[str]) -> dict[str, int]:
        """Return how many passages have a model's record with another fingerprint only, by that fingerprint."""
        rows = self.iterate("SELECT fingerprint, hash FROM records WHERE status!='failed' ORDER BY 1, 2")
        texts_of: dict[str, set[str]] = {}
        for other, text in rows:
            if "|" in other and text in hashes:  # a model, then its prompt
                texts_of.setdefault(str(other), set()).add(str(text))
        current = texts_of.pop(fingerprint, set())
        return {other: len(texts - current) for other, texts in texts_of.items() if texts - current}

    # --- documents that wait -----------------------------------------------------------------------------------------

    def has_pending(self) -> bool:
        """True if a change of a document waits to be indexed."""
        return bool(self.read("SELECT 1 FROM pending LIMIT 1"))

    def pending(self) -> list[tuple[str, str, int]]:
        """Return id of the document, content and number of the changes that wait, the oldest first."""
        rows = self.read(f"SELECT {_PENDING.selected}, number FROM pending ORDER BY number")
        for row in rows:
            if not is_intact(row, _PENDING):
                raise StorageError(
                    f"{self.path} is damaged: a change of the document {row[0]!r} that no search has seen yet is not "
                    "what was written. Restore the file from a backup; or delete it, which makes models answer again, "
                    "and hand in again the documents that were changed last (index() with force_update=True)."
                )
        return [(name, body, number) for name, body, _, number in rows]

    def put_pending(self, changes: Mapping[str, str]) -> None:
        """Store changes by id of the document; each replaces an earlier one and is the last now."""
        with self.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO pending (id, body, checksum) VALUES (?,?,?)",
                [_with_checksum(name, body) for name, body in changes.items()],
            )

    def drop_pending(self, last: int) -> None:
        """Delete the changes up to a number."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM pending WHERE number<=?", [last])

    # --- forgetting -------------------------------------------------------------------------------------------------

    def forget(self, hashes: Collection[str]) -> None:
        """Delete the records of some passages, and all answers that were made from them among others."""
        with self.transaction() as connection:
            connection.execute("CREATE TEMP TABLE gone (hash TEXT PRIMARY KEY) WITHOUT ROWID")
            connection.executemany("INSERT OR IGNORE INTO gone VALUES (?)", ((name,) for name in hashes))
            connection.execute("DELETE FROM records WHERE hash IN (SELECT hash FROM gone)")
            connection.execute(
                "DELETE FROM answers WHERE key IN "
                "(SELECT key FROM answer_sources WHERE hash IN (SELECT hash FROM gone))"
            )
            connection.execute("DELETE FROM answer_sources WHERE key NOT IN (SELECT key FROM answers)")
            connection.execute("DROP TABLE gone")
        self._good_hashes.clear()

    def keep_only(self, hashes: Collection[str]) -> None:
        """Delete what was made from other passages, overwrite it and give the space back."""
        (noted,) = self.read("SELECT count(*) FROM answer_sources")[0]
        counted = sum(1 for _ in self._read(_SOURCES, "1", []))
        with self.transaction() as connection:
            if counted < noted:
                connection.execute("DELETE FROM answer_sources")
            connection.execute("CREATE TEMP TABLE kept (hash TEXT PRIMARY KEY) WITHOUT ROWID")
            connection.executemany("INSERT OR IGNORE INTO kept VALUES (?)", ((name,) for name in hashes))
            connection.execute("DELETE FROM records WHERE hash NOT IN (SELECT hash FROM kept)")
            connection.execute(
                "DELETE FROM answers WHERE key NOT IN (SELECT key FROM answer_sources) "
                "OR key IN (SELECT key FROM answer_sources WHERE hash NOT IN (SELECT hash FROM kept))"
            )
            connection.execute("DELETE FROM answer_sources WHERE key NOT IN (SELECT key FROM answers)")
            connection.execute("DELETE FROM vectors")
            connection.execute("DROP TABLE kept")
        self.compact()
