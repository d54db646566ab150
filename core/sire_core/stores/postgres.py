"""`PostgresStore`: PostgreSQL with pgvector holds the units and finds what is nearest."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError, StorageError
from sire_core.fork_handlers import keep_for_parent, register_after_fork
from sire_core.stores.client_calls import check_width, reconstruct, valid_text
from sire_core.stores.facts import Has, Joined, Number, Test, facts_of, narrow, numbers_of

if TYPE_CHECKING:
    import psycopg
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, MirroredUnit

T = TypeVar("T")

_TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_WIDEST = 2000  # Longest vectors that pgvector's HNSW takes
_MOST_LISTED = 1000  # Most candidates that its HNSW keeps
_SIGNS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


class PostgresStore:
    """A table of units with an HNSW index, made when the first units come; `Index(store=PostgresStore(address))`.

    What the index finds too few of, for example because a filter lets little through, is found by comparing all that
    the filter lets through. Thread-safe; a process that is forked connects anew. Pickles hold no password: PGPASSWORD
    or .pgpass gives it on the other side.

    Args:
        address: `postgresql://user:password@host:port/database`, whose server has the extension pgvector.
        table: Its name; one table for each index.
        width: Candidates that the HNSW keeps at least while it searches (`hnsw.ef_search`).

    Raises:
        ConfigurationError: psycopg is not installed, or the name is none.
    """

    def __init__(self, address: str, table: str = "sire_units", *, width: int = 400) -> None:
        if not _TABLE_NAME.fullmatch(table):
            raise ConfigurationError(f"The name of a table has small letters, digits and underscores, not {table!r}.")
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise ConfigurationError('PostgreSQL needs a driver: pip install "sire-rag[postgres]".') from error
        self._address = address
        self._name = table
        self.name, self.description = f"postgres {table}", f"PostgreSQL, table {table}"
        self._table = f'"{table}"'  # names may be words of SQL
        self._width = width
        self._free: list[psycopg.Connection[Any]] = []
        register_after_fork(self)

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units, replacing what is there under their ids."""
        await self._run(lambda db: self._put(db, units))

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units."""
        await self._change(f"DELETE FROM {self._table} WHERE id=ANY(%s)", [ids])

    async def holds(self, unit: str, vector: NDArray[Any]) -> bool:  # noqa: ARG002 - the store is asked for the id
        """True if a unit is there."""
        sql = f"SELECT 1 FROM {self._table} WHERE id=%s"
        return await self._run(lambda db: bool(self._held(db)) and bool(db.execute(sql, [unit]).fetchall()))

    async def mark(self) -> str:
        """The comment of the table."""
        sql = "SELECT obj_description(to_regclass(%s), 'pg_class')"
        (row,) = await self._run(lambda db: db.execute(sql, [self._table]).fetchall())
        return str(row[0] or "")

    async def leave_mark(self, text: str) -> None:
        """Comment on the table."""
        await self._change(f"COMMENT ON TABLE {self._table} IS " + "'{}'".format(text.replace("'", "''")))

    async def clear(self) -> None:
        """Delete everything; the table stays, with its rights and indexes."""
        await self._change(f"TRUNCATE {self._table}")

    async def purge(self) -> None:
        """Write the table again without what was deleted. It is locked meanwhile; the log of the server is its own."""
        await self._change(f"VACUUM (FULL) {self._table}", in_transaction=False)

    async def top(self, query: str, vector: FloatArray, n: int, where: Filter | None = None) -> Sequence[str]:  # noqa: ARG002 - the vector says it
        """Ids of the `n` nearest units; see `VectorIndex`."""
        return await self._run(lambda db: self._top(db, vector, n, where))

    def after_fork(self) -> None:
        """In a process that was just forked: forget the parent's connections without a word to the server."""
        keep_for_parent(self._free)
        self._free = []

    def close(self) -> None:
        """Close the connections."""
        with suppress(IndexError):  # other threads take connections, too
            while True:
                self._free.pop().close()

    def __reduce__(self) -> tuple[Any, ...]:
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        shown: dict[str, Any] = {key: v for key, v in conninfo_to_dict(self._address).items() if "password" not in key}
        return reconstruct(type(self), (make_conninfo(**shown), self._name), {"width": self._width})

    def _held(self, db: psycopg.Connection[Any]) -> int:
        """Length of the vectors in the table; 0 where there is no table."""
        sql = "SELECT atttypmod FROM pg_attribute WHERE attrelid=to_regclass(%s) AND attname='vector'"
        row = db.execute(sql, [self._table]).fetchone()
        return 0 if row is None else int(row[0])

    def _put(self, db: psycopg.Connection[Any], units: Sequence[MirroredUnit]) -> None:
        table = self._table
        if not units:
            return
        if held := self._held(db):
            check_width(self.description, held, len(units[0].vector))
        else:
            self._create(db, len(units[0].vector))
        columns = ("id", "kind", "title", "body", "doc_ids", "facts", "numbers", "vector")
        changed = ", ".join(f"{name}=excluded.{name}" for name in columns[1:])
        with db.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))}) "
                f"ON CONFLICT (id) DO UPDATE SET {changed}",
                [_row(unit) for unit in units],
            )

    def _create(self, db: psycopg.Connection[Any], width: int) -> None:
        table = self._table
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        db.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (id text PRIMARY KEY, kind text NOT NULL, title text NOT NULL, "
            "body text NOT NULL, doc_ids text[] NOT NULL, facts text[] NOT NULL, numbers jsonb NOT NULL, "
            f"vector vector({width}) NOT NULL)"
        )
        db.execute(f"CREATE INDEX IF NOT EXISTS {self._name}_facts ON {table} USING gin (facts)")
        if width <= _WIDEST:
            db.execute(f"CREATE INDEX IF NOT EXISTS {self._name}_hnsw ON {table} USING hnsw (vector vector_ip_ops)")

    def _top(self, db: psycopg.Connection[Any], vector: FloatArray, n: int, filter: Filter | None) -> list[str]:
        if not (held := self._held(db)):
            return []
        check_width(self.description, held, len(vector))
        values: list[Any] = []
        test = narrow(filter)
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

    async def _change(self, sql: str, values: Sequence[Any] | None = None, *, in_transaction: bool = True) -> None:
        """Run a statement where there is a table."""
        await self._run(lambda db: bool(self._held(db)) and db.execute(sql, values), in_transaction=in_transaction)

    async def _run(self, work: Callable[[psycopg.Connection[Any]], T], *, in_transaction: bool = True) -> T:
        """Do something on a connection of its own, in a thread."""
        import psycopg

        def done() -> T:
            try:
                return self._done(work, in_transaction=in_transaction)
            except psycopg.Error as error:
                raise StorageError(
                    f"PostgreSQL failed ({str(error).strip()}). See to the server and ask again."
                ) from error

        return await asyncio.to_thread(done)

    def _done(self, work: Callable[[psycopg.Connection[Any]], T], *, in_transaction: bool) -> T:
        """Do something that may be done twice on a connection that nobody else uses."""
        import psycopg

        try:
            db, is_returned = self._free.pop(), True
        except IndexError:
            # Without prepared statements: the plan of one that is kept would not heed what a search sets.
            db, is_returned = psycopg.connect(self._address, autocommit=True, prepare_threshold=None), False
        try:
            with db.transaction() if in_transaction else nullcontext():
                result = work(db)
        except BaseException:
            lost = db.broken
            db.close()
            if not (is_returned and lost):
                raise
        else:
            self._free.append(db)
            return result
        self.close()  # the server was started again: the others are lost as well
        return self._done(work, in_transaction=in_transaction)


def _row(mirrored: MirroredUnit) -> tuple[Any, ...]:
    unit = mirrored.unit
    doc_ids = [_clean(doc) for doc in mirrored.doc_ids]
    facts, numbers = facts_of(mirrored.metadata, mirrored.differs), numbers_of(mirrored.metadata)
    # Keys that the database refuses are not asked for by number, but by fact.
    storable = {key: value for key, value in numbers.items() if _clean(key) == key}
    return (
        *(unit.id, unit.kind.value, _clean(unit.title), _clean(unit.text), doc_ids, facts),
        *(json.dumps(storable), _text(mirrored.vector)),
    )


def _clean(text: str) -> str:
    """Clean text for PostgreSQL: no NUL, no half of a surrogate pair."""
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
