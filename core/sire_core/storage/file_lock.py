"""`file_lock`: one at a time over a folder, between threads and processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sire_core.errors import IndexLockedError, StorageError

__all__ = ["file_lock"]


@contextmanager
def file_lock(folder: Path, name: str, timeout: float = 0.0) -> Iterator[None]:
    """Hold the lock of this name in a folder. The operating system frees it when the process dies.

    Args:
        folder: Where the file of the lock is, which stays.
        name: Of the file.
        timeout: Seconds to wait for it.

    Raises:
        IndexLockedError: Somebody else holds it.
        StorageError: The folder cannot be written.
    """
    try:
        connection = sqlite3.connect(str(folder / name), timeout=timeout, isolation_level=None)
    except sqlite3.Error as error:
        raise _failed(folder, error) from error
    with closing(connection):
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise _failed(folder, error) from error
        yield


def _failed(folder: Path, error: sqlite3.Error) -> StorageError:
    if "locked" in str(error):
        return IndexLockedError(
            f"Another process is writing to {folder}. Readers may go on; wait for it to finish and run it again."
        )
    return StorageError(
        f"Cannot write to {folder} ({error}). Make the folder writable or free some space, or copy it to a place that "
        "is."
    )
