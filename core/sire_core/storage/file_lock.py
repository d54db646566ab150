"""`file_lock`: a lock of a folder between threads and processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sire_core.errors import IndexLockedError, StorageError
from sire_core.storage.plain_files import DATABASE_ENDS, require_plain, system_limit

__all__ = ["file_lock"]


@contextmanager
def file_lock(folder: Path, name: str, timeout: float = 0.0) -> Iterator[None]:
    """Hold the lock of a name in a folder. The operating system releases it when the process dies."""
    for end in DATABASE_ENDS:
        require_plain(folder / f"{name}{end}")
    while True:
        before = _identity(folder / name)
        try:
            connection = sqlite3.connect(str(folder / name), timeout=timeout, isolation_level=None)
        except sqlite3.Error as error:
            raise _failed(folder, error) from error
        with closing(connection):
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                if before == _identity(folder / name):
                    raise _failed(folder, error) from error
                continue
            if before is not None and before == _identity(folder / name):
                yield
                return
        # The file is new, or another folder has taken the place of this one: what is held may be the lock of that.


def _identity(file: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = file.stat()
        return status.st_dev, status.st_ino
    return None


def _failed(folder: Path, error: sqlite3.Error) -> StorageError:
    if advice := system_limit(error, folder):
        return StorageError(f"{folder} {advice} (SQLite says: {error})")
    if "locked" in str(error):
        return IndexLockedError(
            f"Another process is writing to {folder}. Readers may go on; wait for it to finish and run it again."
        )
    return StorageError(
        f"Cannot write to {folder} ({error}). Make the folder writable or free some space, or copy it to a place that "
        "is."
    )
