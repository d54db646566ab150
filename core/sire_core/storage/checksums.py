"""Checksums of rows, which SQLite does not have.

Every row has the CRC-32 of its columns. The table `sums` has the number of rows and the sum of their checksums for
every part of a table (the units of an owner, the rows of a step), so that missing rows are noticed, too.

"""

from __future__ import annotations

import json
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import SireError, StorageError

if TYPE_CHECKING:
    from sire_core.storage.database import Database

SUMS_SCHEMA = """
CREATE TABLE IF NOT EXISTS sums (
    name TEXT NOT NULL, part TEXT NOT NULL, rows INTEGER NOT NULL, total INTEGER NOT NULL,
    PRIMARY KEY (name, part)) WITHOUT ROWID;
"""

SqlRow = Sequence[Any]

_BATCH = 2000  # Maximum number of rows in memory
_MAX_VARIABLES = 900  # Maximum number of bound variables; SQLite allows at least 999


_VALUE_TYPES: dict[str, type] = {"t": str, "i": int, "r": float, "b": bytes}


@dataclass(frozen=True)
class CheckedTable:
    """A table whose rows have checksums."""

    name: str  # In the database
    # What a checksum covers, and `kinds` their types: a letter each, `t` text, `i` integer, `r` real, `b` bytes, in
    # upper case with NULL. The column `checksum` stands before long ones in the schema, so that adding up checksums
    # does not read them.
    columns: tuple[str, ...]
    kinds: str
    part: str = ""  # The column whose values divide the rows into parts; empty for one part
    beside: tuple[str, ...] = ()  # Columns that the checksum does not cover
    # Columns that are empty in a row where an SQL expression gives their value, which the checksum covers
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def types(self) -> frozenset[tuple[type, ...]]:
        """Types that the values of a row may have together."""
        choices = [(_VALUE_TYPES[kind.lower()], *([type(None)] if kind.isupper() else [])) for kind in self.kinds]
        return frozenset(product(*choices))

    @property
    def selected(self) -> str:
        """Columns of a query whose rows `verified` takes."""
        columns = (
            f"CASE {name} WHEN '' THEN coalesce({self.elsewhere[name]}, '') ELSE {name} END"
            if name in self.elsewhere
            else name
            for name in self.columns
        )
        return ", ".join((*columns, "checksum"))


def row_checksum(row: SqlRow) -> int:
    """Return the CRC-32 of the values of a row: against accidents, not against forgery."""
    last = row[-1]
    if type(last) is bytes:
        return zlib.crc32(last, zlib.crc32("\0".join(map(str, row[:-1])).encode("utf-8", "surrogatepass")))
    return zlib.crc32("\0".join(map(str, row)).encode("utf-8", "surrogatepass"))


def is_intact(row: SqlRow, table: CheckedTable) -> bool:
    """True if a row's columns, its checksum behind them, are what was written, and of the types that are written."""
    content = row[: len(table.columns)]
    return row[len(content)] == row_checksum(content) and tuple(map(type, content)) in table.types


def verified(row: SqlRow, table: CheckedTable) -> SqlRow:
    """Return a row of a table, its checksum behind its columns; raise if it is not what was written."""
    if not is_intact(row, table):
        raise damage(repr(row[0]))
    return row


FormT = TypeVar("FormT")


def stored_json(text: str, form: type[FormT], what: object) -> FormT:
    """Return stored JSON; raise if it is none, or of another type. `what` names it in the error."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damage(repr(what)) from error
    if not isinstance(value, form):
        raise damage(repr(what))
    return value


def stored_texts(text: str, what: object) -> tuple[str, ...]:
    """Return a stored list of texts."""
    values = stored_json(text, list, what)
    if not set(map(type, values)) <= {str}:
        raise damage(repr(what))
    return tuple(values)


REBUILD_ADVICE = (
    "Restore index.sqlite from a backup, or delete it and build again; what was extracted and answered is kept in "
    "calls.sqlite and not paid for twice."
)


def damage(what: str) -> StorageError:
    """Return the error about damaged content."""
    return StorageError(f"index.sqlite is damaged: {what} is not what was written. {REBUILD_ADVICE}")


@contextmanager
def stored_values(what: str) -> Iterator[None]:
    """Raise `StorageError` where stored values have another form than the code that reads them expects."""
    try:
        yield
    except SireError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError, EOFError) as error:
        raise _unusable(what, error) from error
    except (zipfile.BadZipFile, zlib.error, struct.error, RecursionError, NotImplementedError, MemoryError) as error:
        raise _unusable(what, error) from error


def _unusable(what: str, error: Exception) -> StorageError:
    short = ", or memory ran out" if isinstance(error, MemoryError) else ""
    return StorageError(
        f"{what} cannot use what index.sqlite holds ({type(error).__name__}: {error}). Either the file is damaged or "
        f"forged, or {what} has a fault{short}. {REBUILD_ADVICE}"
    )


class CheckedWrites:
    """Changes tables inside one transaction and keeps their sums; `finish` writes the sums."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._changes: dict[tuple[str, str], list[int]] = {}

    def insert(self, table: CheckedTable, rows: Iterable[SqlRow], *, elsewhere: bool = False) -> None:
        """Insert new rows, given without checksums, in batches; without values that stand elsewhere."""
        columns = (*table.columns, "checksum", *table.beside)
        left_out = table.elsewhere if elsewhere else ()
        marks = ",".join("substr(?,1,0)" if name in left_out else "?" for name in columns)
        self._db.executemany(
            f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})", self._counted(table, rows)
        )

    def _counted(self, table: CheckedTable, rows: Iterable[SqlRow]) -> Iterator[SqlRow]:
        """Yield rows with their checksums, and add these to the sums."""
        width = len(table.columns)
        part_column = table.columns.index(table.part) if table.part else -1
        part, change = None, self._change(table, "")
        for row in rows:
            checksum = row_checksum(row[:width])
            if table.part and row[part_column] != part:
                part, change = row[part_column], self._change(table, str(row[part_column]))
            change[0] += 1
            change[1] += checksum
            yield (*row[:width], checksum, *row[width:])

    def delete(self, table: CheckedTable, columns: Sequence[str], keys: Iterable[SqlRow], index: str = "") -> None:
        """Delete the rows that have certain values in some columns, one tuple per key."""
        part = table.part or "''"
        source = f"{table.name} INDEXED BY {index}" if index else table.name
        names = ", ".join(f"given{number}" for number in range(len(columns)))
        same = " AND ".join(f"{column}=given{number}" for number, column in enumerate(columns))
        condition = " AND ".join(f"{column}=?" for column in columns)
        marks = f"({','.join('?' * len(columns))})"
        wanted = iter(keys)
        while some := list(islice(wanted, _MAX_VARIABLES // len(columns))):
            # One query per row takes ten times as long. CROSS JOIN keeps the order of the join.
            sql = (
                f"WITH given({names}) AS (VALUES {','.join([marks] * len(some))}) "
                f"SELECT {part}, count(*), sum(checksum) FROM given CROSS JOIN {source} ON {same} GROUP BY 1"
            )
            sums = self._db.execute(sql, list(chain.from_iterable(some))).fetchall()
            for part_value, rows, total in sums:
                change = self._change(table, str(part_value))
                change[0] -= rows
                change[1] -= total
            if sums:
                self._db.executemany(f"DELETE FROM {table.name} WHERE {condition}", some)

    def replace(
        self, table: CheckedTable, columns: Sequence[str], rows: Iterable[SqlRow], *, elsewhere: bool = False
    ) -> None:
        """Write rows, replacing those with the same values in some columns; of equal rows the last stays."""
        positions = [table.columns.index(column) for column in columns]
        remaining = iter(rows)
        while batch := {tuple(row[position] for position in positions): row for row in islice(remaining, _BATCH)}:
            self.delete(table, columns, batch)
            self.insert(table, batch.values(), elsewhere=elsewhere)

    def finish(self) -> None:
        """Write the sums of all changes."""
        self._db.executemany(
            "INSERT INTO sums VALUES (?,?,?,?) ON CONFLICT (name, part) "
            "DO UPDATE SET rows=rows+excluded.rows, total=total+excluded.total",
            [(name, part, rows, total) for (name, part), (rows, total) in self._changes.items()],
        )
        self._db.execute("DELETE FROM sums WHERE rows=0 AND total=0")
        self._changes.clear()

    def _change(self, table: CheckedTable, part: str) -> list[int]:
        return self._changes.setdefault((table.name, part), [0, 0])


def complete(database: Database, table: CheckedTable, sql: str, part: str = "") -> Iterator[tuple[Any, ...]]:
    """Yield all rows of a table, or of one part of it, verified; at the end, compare their number with the sums."""
    width = len(table.columns)
    rows = total = 0
    for row in database.iterate(sql, [part] if table.part else []):
        verified(row, table)
        yield row
        rows += 1
        total += row[width]
    if (rows, total) != _sums(database, table, part):
        raise damage(f"the number of its rows in {table.name!r}")


def _sums(database: Database, table: CheckedTable, part: str) -> tuple[int, int]:
    """Return the stored number of rows of a part and the sum of their checksums."""
    stored_sums = database.read("SELECT rows, total FROM sums WHERE name=? AND part=?", [table.name, part])
    return (stored_sums[0][0], stored_sums[0][1]) if stored_sums else (0, 0)


def require_complete(database: Database, table: CheckedTable, parts: Iterable[object] = ("",)) -> None:
    """Raise if the number of rows of a table is wrong; `verified` checks their content."""
    condition = f"WHERE {table.part}=?" if table.part else ""
    sql = f"SELECT count(*), coalesce(sum(checksum), 0) FROM {table.name} {condition}"
    for part in parts:
        (actual,) = database.read(sql, [part] if table.part else [])
        if actual != _sums(database, table, str(part)):
            raise damage(f"the number of its rows in {table.name!r}")


def check_table(database: Database, table: CheckedTable) -> Iterator[str]:
    """Read all rows of a table; yield what is wrong."""
    width = len(table.columns)
    part_column = table.columns.index(table.part) if table.part else -1
    sums: dict[str, list[int]] = {}
    wrong = 0
    for row in database.iterate(f"SELECT {table.selected} FROM {table.name} NOT INDEXED"):
        checksum = row[width]
        if not is_intact(row, table):
            wrong += 1
            continue
        part_sums = sums.setdefault(str(row[part_column]) if table.part else "", [0, 0])
        part_sums[0] += 1
        part_sums[1] += checksum
    if wrong:
        yield f"{wrong:,} rows of the table {table.name!r} are not what was written"
        return
    stored_sums = database.read("SELECT part, rows, total FROM sums WHERE name=?", [table.name])
    if sums != {str(part): [rows, total] for part, rows, total in stored_sums}:
        yield f"rows of the table {table.name!r} are missing, or there are too many"
