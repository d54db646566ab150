"""What disks and programs do to index folders by accident, and folders in which something was never written."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sire_core.storage.checksums import CheckedWrites
from sire_core.storage.index_tables import CHUNKS, DOCUMENTS, EDGES, META, NOTES, STATES, STEP_TABLES, UNITS

__all__ = [
    "DAMAGES",
    "ENTRIES",
    "PAGES",
    "damage",
    "damage_page",
    "foreign_values",
    "forge_body",
    "put_foreign_value",
    "replace_entry",
]

DAMAGES = ("flip", "zero tail", "cut", "swap", "edit", "empty", "gone")
"""A changed bit, zeros from some place on, a file cut off, another file's content, four other bytes, no content."""


def damage(file: Path, how: str, rng: random.Random, others: Sequence[Path]) -> None:
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


PAGES = ("zeros", "noise", "copied", "swapped", "head", "cells", "first page", "cut", "longer", "older")
"""A page of zeros or noise, one in the place of another, two swapped, its header or the places of its cells changed,
the header of the file, pages cut off or added, a page of an earlier version of the file."""


def damage_page(file: Path, how: str, rng: random.Random, earlier: bytes) -> None:
    whole = bytearray(file.read_bytes())
    size = int.from_bytes(whole[16:18], "big") if whole.startswith(b"SQLite") else 4096
    size = 65536 if size == 1 else size
    starts = range(0, max(1, len(whole)), size)
    at, other = rng.choice(starts), rng.choice(starts)
    page, second = bytes(whole[at : at + size]), bytes(whole[other : other + size])
    noise = bytes(rng.randrange(256) for _ in range(8))
    places = {"head": at + rng.randrange(12), "cells": at + 8 + rng.randrange(200), "first page": rng.randrange(100)}
    if how in places:
        whole[places[how] : places[how] + 2] = noise[:2]
    elif how == "cut":
        del whole[at:]
    elif how == "longer":
        whole += page
    else:
        new = {"zeros": bytes(len(page)), "noise": (noise * (size // 8))[: len(page)], "older": earlier[at : at + size]}
        whole[at : at + size] = new.get(how, second)
        if how == "swapped":
            whole[other : other + size] = page
    file.write_bytes(bytes(whole))


ENTRIES = ("folder", "file", "empty", "nowhere", "itself", "pipe", "other type")
"""A link to a folder, a file, an empty file, to nothing, to itself; a pipe; a folder for a file or the reverse."""


def replace_entry(entry: Path, outside: Path, how: str) -> None:
    """Put a link, a pipe or something of another type in the place of a file or folder."""
    was_folder = entry.is_dir() and not entry.is_symlink()
    if was_folder:
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)
    if how == "pipe":
        os.mkfifo(entry)
    elif how == "other type":
        entry.write_text("x") if was_folder else entry.mkdir()
    else:
        entry.symlink_to(entry.name if how == "itself" else outside / how)


def foreign_values() -> list[object]:
    """Values of other types than a column or a key of JSON has, and ones that hardly anything has."""
    return [
        None,
        "",
        "x",
        -1,
        2**62,
        1e308,
        float("nan"),
        b"\xff\xfe\x00",
        "\x00",
        "[]",
        "{}",
        "null",
        '{"a": [[]]}',
        "9" * 400,
    ]


def forge_body(path: Path, rng: random.Random) -> None:
    """Change a value that a derivation stored for itself, anywhere inside it, and make sums and checksums fit."""
    with closing(sqlite3.connect(path / "index.sqlite", isolation_level=None)) as db:
        tables = [table for table in (STATES, NOTES, *STEP_TABLES) if "body" in table.columns]
        table = rng.choice([t for t in tables if db.execute(f"SELECT count(*) FROM {t.name}").fetchone()[0]])
        columns = (*table.columns, *table.beside)
        row = list(rng.choice(db.execute(f"SELECT {', '.join(columns)} FROM {table.name}").fetchall()))
        place = columns.index("body")
        keys = [name for name in table.columns if name != "body"]
        db.execute("BEGIN IMMEDIATE")
        writes = CheckedWrites(db)
        writes.delete(table, keys, [[row[columns.index(key)] for key in keys]])
        row[place] = _forged(row[place], rng)
        writes.insert(table, [row])
        writes.finish()
        db.execute("COMMIT")


def _forged(body: str | bytes, rng: random.Random) -> str | bytes:
    """A body with one value in its JSON replaced or removed; bytes that are none are cut, zeroed or changed."""
    text = body if isinstance(body, str) else body.decode("utf-8", "replace")
    try:
        whole = {"": json.loads(text)}
    except ValueError:
        changed = bytearray(body if isinstance(body, bytes) else body.encode())
        for _ in range(3):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return rng.choice((bytes(changed), bytes(len(body)), bytes(changed[: rng.randrange(len(changed))])))
    places: list[tuple[dict | list, str | int]] = [(whole, "")]
    for parent, key in places:
        value = parent[key]
        inner = value if isinstance(value, dict) else range(min(len(value), 20)) if isinstance(value, list) else ()
        places += [(value, name) for name in inner]
    parent, key = rng.choice(places)
    if key != "" and rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = rng.choice((None, "", "x", -1, True, 2**62, 2**70, 1e308, [], {}, [[]], {"a": [[]]}))
    forged = json.dumps(whole[""])
    return forged if isinstance(body, str) else forged.encode()


def put_foreign_value(path: Path, rng: random.Random, *, honest: bool) -> None:
    """Put a value of another type into a row of `index.sqlite`.

    With `honest` the sums and the checksum fit, and what only a derivation reads (`body`) stays as it is.
    """
    tables = (META, DOCUMENTS, CHUNKS, UNITS, EDGES, STATES, NOTES, *STEP_TABLES)
    with closing(sqlite3.connect(path / "index.sqlite", isolation_level=None)) as db:
        table = rng.choice([t for t in tables if db.execute(f"SELECT count(*) FROM {t.name}").fetchone()[0]])
        row = list(
            rng.choice(db.execute(f"SELECT {', '.join((*table.columns, *table.beside))} FROM {table.name}").fetchall())
        )
        place = rng.choice([n for n, name in enumerate(table.columns) if not (honest and name == "body")])
        changed = list(row)
        changed[place] = rng.choice(foreign_values())
        keys = [name for name, value in zip(table.columns, row, strict=False) if value is not None]
        values = [row[table.columns.index(key)] for key in keys]
        db.execute("BEGIN IMMEDIATE")
        if honest:
            writes = CheckedWrites(db)
            writes.delete(table, keys, [values])
            writes.insert(table, [changed])
            writes.finish()
        else:
            where = " AND ".join(f"{key}=?" for key in keys)
            db.execute(f"UPDATE {table.name} SET {table.columns[place]}=? WHERE {where}", [changed[place], *values])
        db.execute("COMMIT")
