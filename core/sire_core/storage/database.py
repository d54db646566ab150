"""One way to open a SQLite file: write-ahead log, one connection, one lock, clear errors."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sire_core.errors import StorageError

__all__ = ["Database"]

_VARIABLES = 900  # SQLite's smallest compiled-in limit on bound variables is 999


class Database:
    """A SQLite database shared by the threads of a process.

    Args:
        path: The file; None keeps everything in memory.
        schema: `CREATE TABLE IF NOT EXISTS` statements.

    Raises:
        StorageError: The file cannot be opened or is no database.
    """

    def __init__(self, path: Path | None, schema: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(
                str(path) if path else ":memory:", timeout=30.0, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(schema)
        except sqlite3.Error as error:
            raise _explain(error, path) from error

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self._lock:
            self._connection.close()

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a query and return all rows. SQLite does not know their types, so neither do we."""
        try:
            with self._lock:
                return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise _explain(error, self.path) from error

    def iterate(self, sql: str, parameters: Sequence[object] = (), batch: int = 2000) -> Iterator[tuple[Any, ...]]:
        """Run a query and yield rows without holding all of them."""
        try:
            with self._lock:
                cursor = self._connection.cursor().execute(sql, parameters)
            while True:
                with self._lock:
                    rows = cursor.fetchmany(batch)
                if not rows:
                    return
                yield from rows
        except sqlite3.Error as error:
            raise _explain(error, self.path) from error

    def read_in(self, sql: str, values: Sequence[object], fixed: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Run `sql`, which holds `{marks}` for an IN list, over any number of values.

        Args:
            sql: Query with one `{marks}`; its own parameters come before it.
            values: Values of the IN list.
            fixed: Values of the parameters before it.
        """
        for start in range(0, len(values), _VARIABLES):
            part = values[start : start + _VARIABLES]
            yield from self.read(sql.format(marks=",".join("?" * len(part))), [*fixed, *part])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing: commits at the end of the block, rolls back on any exception."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise _explain(error, self.path) from error
                raise

    def copy_to(self, path: Path) -> None:
        """Write a copy of the whole database to a new file."""
        try:
            target = sqlite3.connect(str(path))
            try:
                with self._lock:
                    self._connection.backup(target)
            finally:
                target.close()
        except sqlite3.Error as error:
            raise _explain(error, path) from error

    def compact(self) -> None:
        """Give freed pages back and overwrite what was deleted."""
        try:
            with self._lock:
                self._connection.execute("VACUUM")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise _explain(error, self.path) from error


def _explain(error: sqlite3.Error, path: Path | None) -> StorageError:
    place = str(path) if path else "the in-memory index"
    text = str(error)
    if "full" in text:
        return StorageError(f"No space left while writing {place}. Nothing was lost; free some space and run it again.")
    if "locked" in text or "busy" in text:
        return StorageError(f"{place} is locked by another process. Wait until it has finished, then run it again.")
    if "not a database" in text or "malformed" in text:
        return StorageError(
            f"{place} is damaged or not one of our files. Restore it, or delete the folder and rebuild."
        )
    if "readonly" in text:
        return StorageError(f"{place} is read-only. Make the folder writable, or copy it to a place that is.")
    if "unable to open" in text:
        return StorageError(f"Cannot open {place}. Check that the folder exists and that you may write to it.")
    return StorageError(f"Storage failed at {place}: {text}")
