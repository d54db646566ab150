"""`LanceStore`: a table of LanceDB, in a folder or an object store, holds the vectors and finds what is nearest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError
from sire_core.stores.client_calls import in_turn, valid_text
from sire_core.stores.facts import Joined, Number, facts_of, narrow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, MirroredUnit
    from sire_core.stores.facts import Test

__all__ = ["LanceStore"]

T = TypeVar("T")


class LanceStore:
    """A table, made when the first units come; `Index(store=LanceStore("folder"))`.

    It compares all vectors, which LanceDB does quickly up to some 100,000 of them; `LanceStore.table().create_index`
    makes an approximate index beyond. Ranges of numbers in filters are left to the caller.

    Args:
        place: A folder, or what else `lancedb.connect` takes (`s3://...`).
        table: Its name; one table for each index.

    Raises:
        ConfigurationError: LanceDB is not installed.
    """

    def __init__(self, place: str, table: str = "sire_units") -> None:
        try:
            import lancedb
        except ImportError as error:
            raise ConfigurationError('LanceDB is not installed: pip install "sire-rag[lance]".') from error
        self._db = lancedb.connect(str(place))
        self._name = table
        self._table: Any = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Tells the stores of one index apart."""
        return f"lance {self._name}"

    @property
    def description(self) -> str:
        """What `Index.stats` says of it."""
        return f"LanceDB, table {self._name}"

    def table(self) -> Any:
        """LanceDB's own table, None before the first units; for indexes and compaction."""
        if self._table is None and self._name in self._names():
            self._table = self._db.open_table(self._name)
        return self._table

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units, replacing what is there under their ids."""
        await self._run(lambda: self._put(units))

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units."""
        wanted = ", ".join(map(_quoted, ids))
        await self._run(lambda: self.table() is not None and self.table().delete(f"id IN ({wanted})"))

    async def holds(self, unit: str, vector: NDArray[Any]) -> bool:  # noqa: ARG002 - the store is asked for the id
        """Whether a unit is there."""
        where = f"id = {_quoted(unit)}"
        return bool(await self._run(lambda: self.table() is not None and self.table().count_rows(where)))

    async def top(self, query: str, vector: FloatArray, n: int, where: Filter | None = None) -> Sequence[str]:  # noqa: ARG002 - the vector says it
        """Ids of the `n` nearest units; see `VectorIndex`."""
        return await self._run(lambda: self._top(vector, n, where))

    def _names(self) -> list[str]:
        found = self._db.list_tables() if hasattr(self._db, "list_tables") else self._db.table_names()
        return list(getattr(found, "tables", found))

    def _put(self, units: Sequence[MirroredUnit]) -> None:
        if not units:
            return
        rows = [_row(found) for found in units]
        if self.table() is None:
            self._table = self._db.create_table(self._name, schema=_schema(len(units[0].vector)))
        self.table().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def _top(self, vector: FloatArray, n: int, where: Filter | None) -> list[str]:
        table = self.table()
        if table is None:
            return []
        table.checkout_latest()  # another process may have written
        asked = table.search(vector).distance_type("dot").limit(n).select(["id", "_distance"])
        test = narrow(where)
        told = None if test is None else _sql(test)
        if told is not None:
            asked = asked.where(told, prefilter=True)
        return [str(row["id"]) for row in asked.to_list()]

    async def _run(self, work: Callable[[], T]) -> T:
        """In a thread, one after the other."""
        return await in_turn(self._lock, work, "LanceDB", "the place")


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


def _row(found: MirroredUnit) -> dict[str, Any]:
    unit = found.unit
    return {
        "id": unit.id,
        "kind": unit.kind.value,
        "title": valid_text(unit.title),
        "text": valid_text(unit.text),
        "doc_ids": [valid_text(doc) for doc in found.doc_ids],
        "facts": facts_of(found.metadata, found.differs),
        "vector": found.vector,
    }


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sql(test: Test) -> str | None:
    """A condition; None where it cannot narrow anything."""
    if isinstance(test, Joined):
        parts = [_sql(part) for part in test.parts]
        told = [part for part in parts if part is not None]
        if not told or (test.operator == "or" and len(told) < len(parts)):
            return None
        return "(" + f" {test.operator} ".join(told) + ")"
    if isinstance(test, Number):
        other = test.fallback()
        return None if other is None else _sql(other)
    no = "" if test.wanted else "NOT "
    return f"{no}array_has_any(facts, [{', '.join(map(_quoted, test.facts))}])"
