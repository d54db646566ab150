"""`Database`: a SQLite file with a write-ahead log, one connection and lock, and errors that say what to do."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sire_core.errors import IndexLockedError, NoSpaceError, SnapshotExpiredError, StorageError
from sire_core.fork_handlers import keep_for_parent, register_after_fork
from sire_core.storage.plain_files import DATABASE_ENDS, require_plain, system_limit, write_error

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of SQLite; messages that quote damaged names may not be decodable."""

_LOCK_TRIES = 5
_UNWRITABLE = ("readonly", "unable to open", "full", "disk I/O")
_DAMAGE = ("not a database", "malformed", "file format", "no such", "decode", "UNIQUE", "too big")
_DAMAGED_CALLS = (
    "is damaged or not one of our files. Restore it from a backup. Without one, move it away and keep it: what models "
    "answered is in there, and is asked for and paid for again."
)
_ADVICE = {
    ("full",): "has no space left. What was committed before is safe: free some space and run it again.",
    ("locked", "busy"): "is locked by another process. Wait until it has finished, then run it again.",
    _DAMAGE: "is damaged or not one of our files. Restore it from a backup, or delete this file and build again.",
    ("disk I/O",): "cannot be read or written: the disk may be full or failing. What was committed before is safe: "
    "make room and run it again.",
    ("readonly",): "cannot be written. Make the folder writable or free some space, or copy it to a place that is.",
    (
        "closed database",
    ): "was closed by another thread while it was in use. Ask again, or open the index again if it was closed.",
    ("unable to open",): "cannot be opened. Check that the folder exists and that you may read and write in it.",
}


def open_database(path: Path | None, mode: str, schema: str) -> tuple[sqlite3.Connection, bool]:
    """Return a connection to a file of ours, with its tables; read-only if the file cannot be written."""
    if path is None:
        return _prepared(_connect(":memory:"), mode, schema, path), False
    for end in DATABASE_ENDS:
        require_plain(_beside(path, end))
    try:
        return _prepared(_connect(str(path)), mode, schema, path), False
    except sqlite3.OperationalError as error:
        if not path.exists() or not any(word in str(error) for word in _UNWRITABLE):
            raise
        unwritable = error
    # A read-only folder, or a full disk. A log that a killed process left behind still counts; without one, SQLite has
    # to know that it needs no files of its own.
    for _ in range(_LOCK_TRIES):
        fixed = not _has_log(path)
        try:
            return _reading(path, schema, unwritable, fixed=fixed), fixed
        except sqlite3.OperationalError as error:
            if fixed is _has_log(path):  # a writer has begun or finished
                continue
            shared = _beside(path, "-shm")
            if fixed or "unable to open" not in str(error) or shared.exists():
                raise
            raise StorageError(
                f"{path} has a log, {_beside(path, '-wal').name}, that cannot be read without {shared.name}, which is "
                "missing and cannot be made here. Make the folder writable, or copy that file too; a copy that "
                "`sire backup` writes needs neither."
            ) from error
    raise StorageError(f"{path} is opened and closed by writers all the time. Ask again.")


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _has_log(path: Path) -> bool:
    with suppress(OSError):
        return _beside(path, "-wal").stat().st_size > 0
    return False


def _reading(path: Path, schema: str, unwritable: sqlite3.Error, *, fixed: bool) -> sqlite3.Connection:
    """Return a connection that only reads; raise why nothing can be written if the file was never finished."""
    connection = _connect(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if fixed else ''}", uri=True)
    try:
        _check_tables(connection, schema, path)
        tables, ours = _tables(connection, schema)
        if not ours <= tables:
            raise explained(unwritable, path) from unwritable  # noqa: TRY301
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False, uri=uri)


def _prepared(connection: sqlite3.Connection, mode: str, schema: str, path: Path | None) -> sqlite3.Connection:
    try:
        _check_tables(connection, schema, path)
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.executescript(mode)  # writes, even where the file has this mode
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # what was acknowledged survives a power cut
        connection.executescript(schema)
    except BaseException:
        connection.close()
        raise
    return connection


def _tables(connection: sqlite3.Connection, schema: str) -> tuple[set[str], set[str]]:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    return tables, set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", schema))


def _check_tables(connection: sqlite3.Connection, schema: str, path: Path | None) -> None:
    """Raise if the file is the database of another program."""
    tables, ours = _tables(connection, schema)
    if tables and not tables & ours:
        raise StorageError(f"{path} is the database of another program. Name a new folder.")


def explained(error: Exception, path: Path | None) -> StorageError:
    """Return an error with SQLite's message and what to do."""
    name = str(path) if path else "The in-memory index"
    if advice := system_limit(error, path.parent if path else None):
        return StorageError(f"{name} {advice} (SQLite says: {error})")
    if "readonly" in str(error) and path is not None and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        # Opened to be read, as nothing could be written.
        return NoSpaceError(f"{name} has no space left to be changed: free some space and run it again.")
    for words, advice in _ADVICE.items():
        if any(word in str(error) for word in words):
            if words is _DAMAGE and name.endswith("calls.sqlite"):
                return StorageError(f"{name} {_DAMAGED_CALLS} (SQLite says: {error})")
            return write_error(error)(f"{name} {advice} (SQLite says: {error})")
    return StorageError(f"{name} failed: {error}. What was committed before is safe; run it again.")


_ROWS_PER_FETCH = 2000  # fetched at once
_VARIABLES = 900  # SQLite's smallest compiled-in limit on bound variables is 999
_WAIT = 30_000  # milliseconds for another process's lock
_LOG, _LOG_SHARE = 1 << 18, 8  # bytes of a log that is short; and of which part of its file one is

_CACHE = 2000 << 10  # bytes of pages that SQLite holds, if it is not told otherwise
_CACHE_OF_ROW, _LARGEST_CACHE = 640, 64 << 20  # and for a transaction that writes many rows

FileStamp = tuple[int, ...]  # Inode, size and time of a file, and of its log if it is not empty


def file_stamp(path: Path) -> FileStamp:
    """Inode, size and time of a database file, and of its log; empty if there is none."""
    with suppress(OSError):
        status = path.stat()
        state: FileStamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        log = path.with_name(path.name + "-wal")
        with suppress(FileNotFoundError):
            status = log.stat()
            state += (status.st_ino, status.st_size, status.st_mtime_ns) if status.st_size else ()
        return state
    return ()


class Database:
    """A SQLite database shared by the threads of a process. A file that cannot be written can still be read."""

    def __init__(self, path: Path | None, schema: str, *, shrinks: bool = False, page_size: int = 4096) -> None:
        self.path = path
        # Counts for a file without tables only, and before anything is written into it.
        self._mode = f"PRAGMA page_size={page_size}; PRAGMA auto_vacuum={'INCREMENTAL' if shrinks else 'NONE'}"
        self._schema = schema
        self._lock = threading.RLock()
        self._forked = False
        self._trusted_stamp: FileStamp = ()
        self._fixed = False
        self._file: FileStamp = ()
        self._opened = self._open()
        # Python warns of connections that are not closed; an `Index` does not have to be.
        self._finalizer = weakref.finalize(self, self._opened.close)
        register_after_fork(self)

    def _open(self) -> sqlite3.Connection:
        try:
            while True:
                before = self._place()
                connection, self._fixed = open_database(self.path, self._mode, self._schema)
                self._file = self._place()
                if not before or before[: len(self._file)] == self._file:  # else another took its place meanwhile
                    return connection
                connection.close()
        except SQLITE_ERRORS as error:
            raise explained(error, self.path) from error

    def _place(self) -> FileStamp:
        """Return which file is at the path; for an immutable one, also its state."""
        if self.path is not None:
            with suppress(OSError):
                status = self.path.lstat()
                return (status.st_dev, status.st_ino, *(self.stamp() if self._fixed else ()))
        return ()

    def replaced(self) -> bool:
        """True if another file has taken the place of the open one, so that it has to be opened again."""
        if self.path is None or self._place() == self._file:
            return False
        with suppress(OSError):
            return self.path.stat().st_size > 0  # else somebody begins to copy one here
        return False

    def reading(self) -> bool:
        """True if this thread is inside a `snapshot`; waits for other threads that are."""
        with self._lock:
            return self._in_transaction()

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._forked:  # SQLite's connections do not survive a fork: this process opens one of its own
            self._opened = self._open()
            self._finalizer = weakref.finalize(self, self._opened.close)
            self._forked = False
        return self._opened

    def after_fork(self) -> None:
        """In a forked process: forget the parent's connection without closing it."""
        self._lock = threading.RLock()
        self._trusted_stamp = ()
        if self.path is not None and self._finalizer.detach():
            keep_for_parent(self._opened)
            self._forked = True

    def close(self) -> FileStamp:
        """Close the connection. Idempotent."""
        with self._lock:
            is_trusted = self._finalizer.alive and self.trusted()
            self._finalizer()
            self._trusted_stamp = ()
            return self.stamp() if is_trusted else ()

    def stamp(self) -> FileStamp:
        """Changes when the file or its log is written to; empty in memory."""
        return () if self.path is None else file_stamp(self.path)

    def trust(self, stamp: FileStamp) -> None:
        """Note that the content of the file at a stamp is verified, and so is what this connection adds."""
        with self._lock:
            self._trusted_stamp = stamp

    def trusted(self) -> bool:
        """True if only this connection has written to the file since `trust`."""
        with self._lock:
            return bool(self._trusted_stamp) and self._trusted_stamp == self.stamp()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside the block see one commit."""
        with self._lock:
            outermost = not self._in_transaction()
            if outermost:
                self.read("BEGIN")
            try:
                yield
            finally:
                if outermost and self._in_transaction():
                    self.read("COMMIT")

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a query and return all rows. SQLite does not know their types, so neither do we."""
        try:
            with self._lock:
                rows = self._connection.execute(sql, parameters).fetchall()
        except SQLITE_ERRORS as error:
            self._require_fixed()
            raise explained(error, self.path) from error
        self._require_fixed()
        return rows

    def _require_fixed(self) -> None:
        """Raise if an immutable file has changed since it was opened."""
        if self._fixed and self._place() != self._file:
            raise SnapshotExpiredError(f"{self.path} has changed since it was opened. Ask again: it is opened again.")

    def iterate(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Run a query and yield rows without loading all of them."""
        try:
            with self._lock:
                cursor = self._connection.cursor().execute(sql, parameters)
            while True:
                with self._lock:
                    rows = cursor.fetchmany(_ROWS_PER_FETCH)
                self._require_fixed()
                if not rows:
                    return
                yield from rows
        except SQLITE_ERRORS as error:
            self._require_fixed()
            raise explained(error, self.path) from error

    def read_in(self, sql: str, values: Sequence[object], fixed: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Run `sql`, which contains `{marks}` for an IN list, over any number of values."""
        for start in range(0, len(values), _VARIABLES):
            part = values[start : start + _VARIABLES]
            yield from self.read(sql.format(marks=",".join("?" * len(part))), [*fixed, *part])

    @contextmanager
    def transaction(self, rows: int = 0) -> Iterator[sqlite3.Connection]:
        """Commit at the end of the block; roll back on any exception."""
        cache = min(rows * _CACHE_OF_ROW, _LARGEST_CACHE)
        with self._lock:
            try:
                if cache > _CACHE:
                    self._hold_pages(cache)
                self._connection.execute("BEGIN IMMEDIATE")
                is_trusted = self.trusted()
                yield self._connection
                self._require_place()
                self._connection.execute("COMMIT")
                self._trusted_stamp = self.stamp() if is_trusted else ()
            except BaseException as error:
                if self._in_transaction():
                    self._connection.execute("ROLLBACK")
                if isinstance(error, SQLITE_ERRORS):
                    raise explained(error, self.path) from error
                raise
            finally:
                if cache > _CACHE:
                    with suppress(sqlite3.Error, StorageError):  # what was committed is; what failed has said so
                        self._hold_pages(_CACHE)

    def _hold_pages(self, size: int) -> None:
        """Limit SQLite's page cache to so many bytes."""
        self._connection.execute(f"PRAGMA cache_size=-{size // 1024}")

    def _require_place(self) -> None:
        if self._place() != self._file:
            raise StorageError(
                f"{self.path} was removed or replaced while it was being changed. Nothing was written; open the index "
                "again and repeat the change."
            )

    def _in_transaction(self) -> bool:
        return not self._forked and self._finalizer.alive and self._opened.in_transaction

    def copy_to(self, path: Path) -> None:
        """Write a copy of the database to a new file."""
        try:
            target = sqlite3.connect(str(path))
            try:
                with self._lock:
                    self._connection.backup(target)
            finally:
                target.close()
        except SQLITE_ERRORS as error:
            raise explained(error, path) from error

    def check(self) -> list[str]:
        """Return what SQLite finds wrong with the structure of the file; empty if nothing is."""
        try:
            return [str(row[0]) for row in self.read("PRAGMA integrity_check(10)") if row[0] != "ok"]
        except StorageError as error:
            return [str(error)]

    def discard(self, table: str) -> None:
        """Empty a table and give its space back, if the file was created with `shrinks`."""
        try:
            with self._lock:
                is_trusted = self.trusted()
                ask = self._connection.execute
                (overwrites,) = ask("PRAGMA secure_delete").fetchone()
                ask("PRAGMA secure_delete=FAST").fetchone()
                try:
                    with self.transaction() as connection:
                        connection.execute(f"DELETE FROM {table}")
                finally:
                    ask(f"PRAGMA secure_delete={overwrites}").fetchone()
                free, pages = (ask(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
                with suppress(sqlite3.OperationalError):  # a full disk, or somebody reads: the next time, then
                    self._connection.executescript("VACUUM" if 2 * free > pages else "PRAGMA incremental_vacuum")
                    if 2 * free > pages:
                        self._empty_log()  # until then the file is as long as before
                self._trusted_stamp = self.stamp() if is_trusted else ()
        except SQLITE_ERRORS as error:
            raise explained(error, self.path) from error

    def settle(self) -> None:
        """Checkpoint and truncate a long log, unless another process reads from it."""
        if self.path is None:
            return
        with self._lock, suppress(sqlite3.Error, OSError):
            log = self.path.with_name(self.path.name + "-wal").stat().st_size
            if log < max(_LOG, self.path.stat().st_size // _LOG_SHARE) or self._in_transaction():
                return
            is_trusted = self.trusted()
            try:
                self._empty_log()
            finally:
                self._trusted_stamp = self.stamp() if is_trusted else ()

    def _empty_log(self) -> None:
        try:
            self._connection.execute("PRAGMA busy_timeout=0")  # who reads is not waited for
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={_WAIT}")

    def compact(self) -> None:
        """Give freed pages back and overwrite deleted content."""
        try:
            with self._lock:
                self._connection.execute("VACUUM")
                busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except SQLITE_ERRORS as error:
            raise explained(error, self.path) from error
        if busy:
            raise IndexLockedError(
                f"Another process is reading {self.path}, so that what was deleted is not overwritten yet. "
                "Nothing is lost; purge again when it has finished."
            )
