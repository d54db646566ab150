"""How a SQLite file is opened, and what its errors mean for whoever reads them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Union

from sire_core.errors import StorageError
from sire_core.storage.plain_files import DATABASE_ENDS, require_plain

__all__ = ["SQLITE_ERRORS", "explained", "open_database"]

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; messages that quote damaged names cannot always be decoded."""

_TRIES = 5
_UNWRITABLE = ("readonly", "unable to open", "full", "disk I/O")
_ADVICE = {
    ("full",): "has no space left. What was committed before is safe: free some space and run it again.",
    ("locked", "busy"): "is locked by another process. Wait until it has finished, then run it again.",
    ("not a database", "malformed", "file format", "no such", "decode", "UNIQUE", "too big"): "is damaged or not one "
    "of our files. Restore it from a backup, or delete this file and build again.",
    ("disk I/O",): "cannot be read or written: the disk may be full or failing. What was committed before is safe: "
    "make room and run it again.",
    ("readonly",): "cannot be written. Make the folder writable or free some space, or copy it to a place that is.",
    ("closed database",): "was closed by another thread while it was in use. Ask again: it is opened again.",
    ("unable to open",): "cannot be opened. Check that the folder exists and that you may write to it.",
}

Upgrade = Union[Callable[[sqlite3.Connection], None], None]


def open_database(path: Path | None, mode: str, schema: str, upgrade: Upgrade) -> tuple[sqlite3.Connection, bool]:
    """A connection to a file that is ours, with its tables; one that only reads, where nothing can be written.

    Returns:
        The connection, and whether it takes the file for one that never changes and sees no change of it.

    Args:
        path: The file; None keeps everything in memory.
        mode: Pragmas of a file without tables.
        schema: `CREATE TABLE IF NOT EXISTS` statements.
        upgrade: Brings tables of earlier versions up to date.

    Raises:
        sqlite3.Error: It cannot be opened.
        StorageError: It is the database of another program, or a link.
    """
    if path is None:
        return _prepared(_connect(":memory:"), mode, schema, path, upgrade), False
    for end in DATABASE_ENDS:
        require_plain(_beside(path, end))
    try:
        return _prepared(_connect(str(path)), mode, schema, path, upgrade), False
    except sqlite3.OperationalError as error:
        if not path.exists() or not any(word in str(error) for word in _UNWRITABLE):
            raise
    # A read-only folder, or a full disk. A log that a killed process left behind still counts; without one, SQLite has
    # to know that it needs no files of its own.
    for _ in range(_TRIES):
        fixed = not _has_log(path)
        try:
            return _reading(path, schema, fixed=fixed), fixed
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


def _reading(path: Path, schema: str, *, fixed: bool) -> sqlite3.Connection:
    connection = _connect(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if fixed else ''}", uri=True)
    try:
        _check_tables(connection, schema, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(place: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(place, timeout=30.0, isolation_level=None, check_same_thread=False, uri=uri)


def _prepared(
    connection: sqlite3.Connection, mode: str, schema: str, path: Path | None, upgrade: Upgrade
) -> sqlite3.Connection:
    try:
        _check_tables(connection, schema, path)
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.executescript(mode)  # writes, even where the file has this mode
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # what was acknowledged survives a power cut
        connection.executescript(schema)
        if upgrade is not None:
            upgrade(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_tables(connection: sqlite3.Connection, schema: str, path: Path | None) -> None:
    """Leave the database of another program alone."""
    ours = set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", schema))
    found = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    if found and not found & ours:
        raise StorageError(f"{path} is the database of another program. Name a new folder.")


def explained(error: Exception, path: Path | None) -> StorageError:
    """What SQLite says, and what to do about it."""
    place = str(path) if path else "The in-memory index"
    for words, advice in _ADVICE.items():
        if any(word in str(error) for word in words):
            return StorageError(f"{place} {advice} (SQLite says: {error})")
    return StorageError(f"{place} failed: {error}. What was committed before is safe; run it again.")
