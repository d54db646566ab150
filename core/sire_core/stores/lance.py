"""`LanceStore`: a table of LanceDB, in a folder or an object store, holds the vectors and finds what is nearest."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError
from sire_core.fork_handlers import register_after_fork
from sire_core.stores.client_calls import check_width, in_turn, payload_of, reconstruct
from sire_core.stores.facts import Joined, Number, Test, narrow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, MirroredUnit

T = TypeVar("T")


class LanceStore:
    """A table, made when the first units come; `Index(store=LanceStore("folder"))`.

    It compares all vectors, which LanceDB does quickly up to some 100,000 of them; beyond,
    `LanceStore.table().create_index(metric="dot")` makes an approximate index (of another metric none would be used).
    Ranges of numbers in filters are left to the caller. After `os.fork` it works as well as LanceDB does, which warns;
    versions that would stall are refused there.

    Args:
        address: A folder, or what else `lancedb.connect` takes (`s3://...`).
        table: Its name; one table for each index.

    Raises:
        ConfigurationError: LanceDB is not installed.
    """

    def __init__(self, address: str, table: str = "sire_units") -> None:
        try:
            import lancedb
        except ImportError as error:
            raise ConfigurationError('LanceDB is not installed: pip install "sire-rag[lance]".') from error
        self._address = str(address)
        self._db = lancedb.connect(self._address)
        self._name = table
        self.name, self.description = f"lance {table}", f"LanceDB, table {table}"
        self._lock = threading.Lock()
        self._forked = False
        register_after_fork(self)

    def table(self) -> Any:
        """LanceDB's own table, None before the first units; for indexes and compaction."""
        return self._open(self._name)

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units, replacing what is there under their ids."""
        await self._run(lambda: self._put(units))

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units."""
        wanted = ", ".join(map(_quoted, ids))
        await self._change(lambda table: table.delete(f"id IN ({wanted})"))

    async def holds(self, unit: str, vector: NDArray[Any]) -> bool:  # noqa: ARG002 - the store is asked for the id
        """True if a unit is there."""
        condition = f"id = {_quoted(unit)}"
        return bool(await self._change(lambda table: table.count_rows(condition)))

    async def mark(self) -> str:
        """Read the notes from a small table beside the other one."""

        def read(_: Any) -> str:
            beside = self._open(self._beside)
            return "" if beside is None else str(beside.to_arrow()["mark"][0].as_py())

        return await self._change(read) or ""

    async def leave_mark(self, text: str) -> None:
        """Write that small table."""
        await self._change(lambda _: self._db.create_table(self._beside, [{"mark": text}], mode="overwrite"))

    async def clear(self) -> None:
        """Delete everything; the table stays, with its indexes."""
        await self._change(lambda table: table.delete("true"))

    async def purge(self) -> None:
        """Write the table again without what was deleted, and delete its older versions."""
        await self._change(_rewrite)

    def __reduce__(self) -> tuple[Any, ...]:
        return reconstruct(type(self), (self._address, self._name), {})

    @property
    def _beside(self) -> str:
        return f"{self._name}_mark"

    async def top(self, query: str, vector: FloatArray, n: int, where: Filter | None = None) -> Sequence[str]:  # noqa: ARG002 - the vector says it
        """Ids of the `n` nearest units; see `VectorIndex`."""
        return await self._run(lambda: self._top(vector, n, where))

    def after_fork(self) -> None:
        """In a process that was just forked: LanceDB's threads are gone, and starting them again may deadlock."""
        self._forked, self._lock = True, threading.Lock()  # nobody holds it here

    def _open(self, name: str) -> Any:
        """A table as it is now: opening one costs as much as asking whether an open one is still there, and current."""
        if self._forked:
            raise ConfigurationError(
                "LanceDB may stall in a process that is forked after it was imported. Open the index after the fork "
                "(gunicorn without --preload), or start workers with multiprocessing's 'spawn'."
            )
        try:
            return self._db.open_table(name)
        except (ValueError, FileNotFoundError) as error:
            if "not found" in str(error).lower():
                return None
            raise

    def _put(self, units: Sequence[MirroredUnit]) -> None:
        if not units:
            return
        table, width = self.table(), len(units[0].vector)
        if table is None:
            table = self._db.create_table(self._name, schema=_schema(width))
        check_width(self.description, _width(table), width)
        rows = [{"id": unit.unit.id, **payload_of(unit), "vector": unit.vector} for unit in units]
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def _top(self, vector: FloatArray, n: int, filter: Filter | None) -> list[str]:
        table = self.table()
        if table is None:
            return []
        check_width(self.description, _width(table), len(vector))
        search = table.search(vector).distance_type("dot").limit(n).select(["id", "_distance"])
        test = narrow(filter)
        condition = None if test is None else _sql(test)
        if condition is not None:
            search = search.where(condition, prefilter=True)
        return [str(row["id"]) for row in search.to_list()]

    async def _change(self, work: Callable[[Any], T]) -> T | None:
        """Do something with the table; None where there is none."""
        return await self._run(lambda: None if (table := self.table()) is None else work(table))

    async def _run(self, work: Callable[[], T]) -> T:
        """In a thread, one after the other."""

        def done() -> T:
            try:
                return work()
            except (RuntimeError, ValueError) as error:
                if "not found" not in str(error).lower():
                    raise
                return work()  # another process has dropped or purged the table meanwhile

        return await in_turn(self._lock, done, "LanceDB", "the folder")


def _schema(width: int) -> Any:
    import pyarrow as pa

    texts = pa.list_(pa.string())
    return pa.schema(
        [
            *((name, pa.string()) for name in ("id", "kind", "title", "text")),
            ("doc_ids", texts),
            ("facts", texts),
            ("vector", pa.list_(pa.float32(), width)),
        ]
    )


def _width(table: Any) -> int:
    return int(table.schema.field("vector").type.list_size)


def _rewrite(table: Any) -> None:
    """Compaction alone keeps the file of a few deleted rows; when all rows are written again, the old files go."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of readers of older versions: ours read again
        table.update(values_sql={"id": "id"})
        table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sql(test: Test) -> str | None:
    """A condition; None where it cannot narrow anything."""
    if isinstance(test, Joined):
        parts = [_sql(part) for part in test.parts]
        certain = [part for part in parts if part is not None]
        if not certain or (test.operator == "or" and len(certain) < len(parts)):
            return None
        return "(" + f" {test.operator} ".join(certain) + ")"
    if isinstance(test, Number):
        other = test.fallback()
        return None if other is None else _sql(other)
    no = "" if test.wanted else "NOT "
    return f"{no}array_has_any(facts, [{', '.join(map(_quoted, test.facts))}])"
