"""Index folders as if parts of what organizers keep for themselves had never been written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sire_core.storage.checked import CheckedWrites
from sire_core.storage.rows import NOTES
from sire_core.storage.step_tables import STEP_TABLES

__all__ = ["forget_notes", "forget_steps"]


def forget_notes(path: Path, *keys: str) -> int:
    """Delete notes by key, all without any; how many there were."""
    with closing(sqlite3.connect(path / "index.sqlite", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        writes = CheckedWrites(db)
        found = [key for (key,) in db.execute("SELECT key FROM notes") if not keys or key in keys]
        writes.delete(NOTES, ["key"], [(key,) for key in dict.fromkeys(found)])
        writes.finish()
        db.execute("COMMIT")
    return len(found)


def forget_steps(path: Path) -> None:
    """Delete the rows and outputs of all steps."""
    with closing(sqlite3.connect(path / "index.sqlite", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        writes = CheckedWrites(db)
        for table in STEP_TABLES:
            writes.delete(table, ["1"], [(1,)])
        writes.finish()
        db.execute("COMMIT")
