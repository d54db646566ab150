"""What disks and programs do to index folders by accident, and folders in which something was never written."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sire_core.storage.checksums import CheckedWrites
from sire_core.storage.rows import NOTES
from sire_core.storage.step_tables import STEP_TABLES

__all__ = ["DAMAGES", "damage", "forget_notes", "forget_steps"]

DAMAGES = ("flip", "zero tail", "cut", "swap", "edit", "empty", "gone")
"""A changed bit, zeros from some place on, a file cut off, another file's content, four other bytes, no content."""


def damage(file: Path, how: str, rng: random.Random, others: Sequence[Path]) -> None:
    """Damage a file.

    Args:
        file: The file.
        how: One of `DAMAGES`.
        rng: Chooses the place and the bytes.
        others: Whose content it may get.
    """
    whole = file.read_bytes()
    place = rng.randrange(max(1, len(whole)))
    if how == "gone":
        file.unlink()
        return
    file.write_bytes(
        {
            "flip": whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :]
            if whole
            else b"x",
            "zero tail": whole[:place] + bytes(len(whole) - place),
            "cut": whole[:place],
            "swap": rng.choice(others).read_bytes(),
            "edit": whole[:place] + bytes(rng.randrange(256) for _ in range(4)) + whole[place + 4 :],
            "empty": b"",
        }[how]
    )


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
