"""Rows of `calls.sqlite`: its tables, and the checksum behind every row."""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from sire_core.storage.checksums import row_checksum

__all__ = ["COLUMNS", "SCHEMA", "add_checksums", "checked", "packed", "sound", "unpacked", "unpacked_text"]

SCHEMA = """
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
CREATE TABLE IF NOT EXISTS fitted (name TEXT PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER) WITHOUT ROWID;
"""

COLUMNS = {
    "records": "fingerprint, hash, status, body",
    "answers": "key, body, stage, input_tokens, output_tokens",
    "answer_sources": "hash, key",
    "vectors": "fingerprint, hash, vector",
    "fitted": "name, body",
}
"""What a checksum covers, by table."""


_logger = logging.getLogger(__name__)


def packed(record: str) -> bytes:
    """A record as it is stored: less than half as long."""
    return zlib.compress(record.encode(), 1)


def unpacked(body: str | bytes) -> bytes:
    """A stored record as UTF-8; before it was packed it was stored as text."""
    return body.encode() if isinstance(body, str) else zlib.decompress(body)


def unpacked_text(body: str | bytes) -> str:
    """A stored record as JSON."""
    return unpacked(body).decode()


def checked(*row: object) -> tuple[object, ...]:
    """A row with its checksum."""
    return (*row, row_checksum(row))


def sound(table: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows that are what was written, without the checksum that is their last column."""
    wrong = 0
    for row in rows:
        found = row[:-1]
        if row[-1] == row_checksum(found):
            yield found
        else:
            wrong += 1
    if wrong:
        _logger.warning(
            "calls.sqlite: %d damaged rows of %r are left out; what is needed of them is asked for again.", wrong, table
        )


def add_checksums(connection: sqlite3.Connection) -> None:
    """Rows of earlier versions have none."""
    for table, columns in COLUMNS.items():
        if any(row[1] == "checksum" for row in connection.execute(f"PRAGMA table_info({table})")):
            continue
        names = columns.split(", ")
        keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
        where = " AND ".join(f"{key}=?" for key in keys)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER")
        rows = connection.execute(f"SELECT {columns} FROM {table}").fetchall()
        connection.executemany(
            f"UPDATE {table} SET checksum=? WHERE {where}",
            ((row_checksum(row), *(row[names.index(key)] for key in keys)) for row in rows),
        )
        connection.execute("COMMIT")
