"""`PostgresStore`: PostgreSQL with pgvector holds the units and finds what is nearest."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError, StorageError
from sire_core.stores.client_calls import valid_text
from sire_core.stores.facts import Has, Joined, Number, facts_of, narrow, numbers_of

if TYPE_CHECKING:
    import psycopg
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, MirroredUnit
    from sire_core.stores.facts import Test

__all__ = ["PostgresStore"]

T = TypeVar("T")

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_WIDEST = 2000
"""Longest vectors that pgvector's HNSW takes."""
_MOST_LISTED = 1000
"""Most candidates that its HNSW keeps."""
_SIGNS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


class PostgresStore:
    """A table of units with an HNSW index, made when the first units come; `Index(store=PostgresStore(place))`.

    What the index finds too few of, for example because a filter lets little through, is found by comparing all that
    the filter lets through. Thread-safe.

    Args:
        place: `postgresql://user:password@host:port/database`, whose server has the extension pgvector.
        table: Its name; one table for each index.
        width: Candidates that the HNSW keeps at least while it searches (`hnsw.ef_search`).

    Raises:
        ConfigurationError: psycopg is not installed, or the name is none.
    """

    def __init__(self, place: str, table: str = "sire_units", *, width: int = 400) -> None:
        if not _NAME.fullmatch(table):
            raise ConfigurationError(f"The name of a table has small letters, digits and underscores, not {table!r}.")
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise ConfigurationError('PostgreSQL needs a driver: pip install "sire-rag[postgres]".') from error
        self._place = place
        self._table = table
        self._width = width
        self._free: list[psycopg.Connection[Any]] = []

    @property
    def name(self) -> str:
        """Tells the stores of one index apart."""
        return f"postgres {self._table}"

    @property
    def description(self) -> str:
        """What `Index.stats` says of it."""
        return f"PostgreSQL, table {self._table}"

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units, replacing what is there under their ids."""
        await self._run(lambda db: self._put(db, units))

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units."""
        await self._run(lambda db: self._there(db) and db.execute(f"DELETE FROM {self._table} WHERE id=ANY(%s)", [ids]))

    async def holds(self, unit: str, vector: NDArray[Any]) -> bool:  # noqa: ARG002 - the store is asked for the id
        """Whether a unit is there."""
        sql = f"SELECT 1 FROM {self._table} WHERE id=%s"
        return await self._run(lambda db: self._there(db) and bool(db.execute(sql, [unit]).fetchall()))

    async def top(self, query: str, vector: FloatArray, n: int, where: Filter | None = None) -> Sequence[str]:  # noqa: ARG002 - the vector says it
        """Ids of the `n` nearest units; see `VectorIndex`."""
        return await self._run(lambda db: self._top(db, vector, n, where))

    def close(self) -> None:
        """Close the connections."""
        while self._free:
            self._free.pop().close()

    def _there(self, db: psycopg.Connection[Any]) -> bool:
        row = db.execute("SELECT to_regclass(%s)", [self._table]).fetchone()
        return row is not None and row[0] is not None

    def _put(self, db: psycopg.Connection[Any], units: Sequence[MirroredUnit]) -> None:
        table = self._table
        if units and not self._there(db):
            self._create(db, len(units[0].vector))
        columns = ("id", "kind", "title", "body", "doc_ids", "facts", "numbers", "vector")
        changed = ", ".join(f"{name}=excluded.{name}" for name in columns[1:])
        with db.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))}) "
                f"ON CONFLICT (id) DO UPDATE SET {changed}",
                [_row(found) for found in units],
            )

    def _create(self, db: psycopg.Connection[Any], width: int) -> None:
        table = self._table
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        db.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (id text PRIMARY KEY, kind text NOT NULL, title text NOT NULL, "
            "body text NOT NULL, doc_ids text[] NOT NULL, facts text[] NOT NULL, numbers jsonb NOT NULL, "
            f"vector vector({width}) NOT NULL)"
        )
        db.execute(f"CREATE INDEX IF NOT EXISTS {table}_facts ON {table} USING gin (facts)")
        if width <= _WIDEST:
            db.execute(f"CREATE INDEX IF NOT EXISTS {table}_hnsw ON {table} USING hnsw (vector vector_ip_ops)")

    def _top(self, db: psycopg.Connection[Any], vector: FloatArray, n: int, where: Filter | None) -> list[str]:
        if not self._there(db):
            return []
        values: list[Any] = []
        test = narrow(where)
        passes = f"WHERE {_sql(test, values)} " if test is not None else ""
        sql = f"SELECT id FROM {self._table} {passes}ORDER BY vector <#> %s::vector LIMIT %s"
        values += [_text(vector), n]
        if n <= _MOST_LISTED:
            db.execute(f"SET LOCAL hnsw.ef_search={min(_MOST_LISTED, max(self._width, 2 * n))}")
            rows = db.execute(sql, values).fetchall()
            if len(rows) >= n:
                return [str(row[0]) for row in rows]
        db.execute("SET LOCAL enable_indexscan=off")  # the facts' index is read by another kind of scan
        return [str(row[0]) for row in db.execute(sql, values).fetchall()]

    async def _run(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """One transaction on a connection of its own, in a thread."""
        import psycopg

        def done() -> T:
            try:
                with self._connection() as db, db.transaction():
                    return work(db)
            except psycopg.Error as error:
                raise StorageError(
                    f"PostgreSQL failed ({str(error).strip()}). See to the server and ask again."
                ) from error

        return await asyncio.to_thread(done)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection that nobody else uses; after a failure it is not used again."""
        import psycopg

        db = self._free.pop() if self._free else psycopg.connect(self._place, autocommit=True)
        try:
            yield db
        except BaseException:
            db.close()
            raise
        self._free.append(db)


def _row(found: MirroredUnit) -> tuple[Any, ...]:
    unit = found.unit
    doc_ids = [_clean(doc) for doc in found.doc_ids]
    facts, numbers = facts_of(found.metadata, found.differs), numbers_of(found.metadata)
    # Keys that the database refuses are not asked for by number, but by fact.
    kept = {key: value for key, value in numbers.items() if _clean(key) == key}
    return (
        *(unit.id, unit.kind.value, _clean(unit.title), _clean(unit.text), doc_ids, facts),
        *(json.dumps(kept), _text(found.vector)),
    )


def _clean(text: str) -> str:
    """What PostgreSQL takes as text: no NUL, no half of a surrogate pair."""
    return valid_text(text.replace("\0", ""))


def _text(vector: FloatArray) -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def _sql(test: Test, values: list[Any]) -> str:
    """A condition; its values are appended."""
    if isinstance(test, Joined):
        return "(" + f" {test.operator} ".join(_sql(part, values) for part in test.parts) + ")"
    no = "" if test.wanted else "NOT "
    if isinstance(test, Has):
        values.append(list(test.facts))
        return f"{no}facts && %s::text[]"
    if isinstance(test, Number) and _clean(test.key) != test.key:
        other = test.fallback()
        return _sql(other, values) if other is not None else "true"
    values += [test.key, test.value]
    return f"{no}coalesce((numbers->>%s::text)::float8 {_SIGNS[test.operator]} %s::float8, false)"
