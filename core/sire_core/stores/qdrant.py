"""`QdrantStore`: a collection of Qdrant holds the vectors and finds what is nearest."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError
from sire_core.fork_handlers import keep_for_parent, register_after_fork
from sire_core.stores.client_calls import check_width, in_turn, payload_of, reconstruct
from sire_core.stores.facts import Has, Joined, Test, narrow, numbers_of
from sire_core.types import from_uuid, to_uuid

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from qdrant_client import QdrantClient

    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, MirroredUnit

T = TypeVar("T")

_locks: weakref.WeakKeyDictionary[Any, threading.Lock] = weakref.WeakKeyDictionary()
"""One for each client: those in memory and of folders are no more than lists, whichever stores share them."""


class QdrantStore:
    """A collection, made when the first units come; `Index(store=QdrantStore(QdrantClient("http://..."))`.

    Args:
        client: Of a server, of a folder (`path=`) or in memory. A process that is forked makes one like it for itself
            if it is of a server.
        collection: Its name; one collection for each index.
        width: Candidates that the HNSW keeps at least while it searches (`hnsw_ef`).

    Raises:
        ConfigurationError: This is no client.
    """

    def __init__(self, client: QdrantClient, collection: str = "sire_units", *, width: int = 400) -> None:
        if not hasattr(client, "query_points"):
            raise ConfigurationError(
                f'{type(client).__name__} is no QdrantClient. pip install "sire-rag[qdrant]", then '
                "QdrantStore(QdrantClient(url))."
            )
        self._opened = client
        self._forked = False
        self._collection = collection
        self.name, self.description = f"qdrant {collection}", f"Qdrant, collection {collection}"
        self._width = width
        self._checked = 0
        register_after_fork(self)

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units, replacing what is there under their ids."""
        await self._run(lambda: self._put(units))

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units."""
        names: list[Any] = [to_uuid(unit) for unit in ids]
        await self._run(lambda: self._there() and self._client.delete(self._collection, names))

    async def holds(self, unit: str, vector: NDArray[Any]) -> bool:  # noqa: ARG002 - the store is asked for the id
        """True if a unit is there."""
        points = await self._run(lambda: self._there() and self._client.retrieve(self._collection, [to_uuid(unit)]))
        return bool(points)

    async def mark(self) -> str:
        """Read the notes from a small collection beside the other one."""

        def read() -> str:
            if not (self._there() and self._client.collection_exists(self._beside)):
                return ""
            points = self._client.retrieve(self._beside, [0])
            return str((points[0].payload or {}).get("mark", "")) if points else ""

        return await self._run(read)

    async def leave_mark(self, text: str) -> None:
        """Write that small collection."""
        await self._run(lambda: self._mark(text) if self._there() else None)

    async def clear(self) -> None:
        """Delete everything; the collection stays, with its settings."""
        await self._run(lambda: self._empty() if self._there() else None)

    async def purge(self) -> None:
        """Nothing: Qdrant gives back by itself, in its own time, what was deleted."""

    def __reduce__(self) -> tuple[Any, ...]:
        options = {name: value for name, value in self._client.init_options.items() if value is not None}
        if not self._is_remote() or {"api_key", "auth_token_provider", "headers"} & set(options):
            raise ConfigurationError(
                "Clients of Qdrant that live in memory or in a folder, or that have a key, cannot be sent to another "
                "process: pickles hold no keys. Open the index there, with a client of its own."
            )
        return reconstruct(_store, (type(self), options, self._collection), {"width": self._width})

    @property
    def _beside(self) -> str:
        return f"{self._collection}_mark"

    def _mark(self, text: str) -> None:
        from qdrant_client import models

        if not self._client.collection_exists(self._beside):
            vectors = models.VectorParams(size=1, distance=models.Distance.DOT)
            self._client.create_collection(self._beside, vectors_config=vectors)
        self._client.upsert(self._beside, [models.PointStruct(id=0, vector=[1.0], payload={"mark": text})])

    def _empty(self) -> None:
        from qdrant_client import models

        self._client.delete(self._collection, models.FilterSelector(filter=models.Filter()))

    async def top(self, query: str, vector: FloatArray, n: int, where: Filter | None = None) -> Sequence[str]:  # noqa: ARG002 - the vector says it
        """Ids of the `n` nearest units; see `VectorIndex`."""
        return await self._run(lambda: self._top(vector, n, where))

    def _there(self) -> bool:
        return self._client.collection_exists(self._collection)

    def _put(self, units: Sequence[MirroredUnit]) -> None:
        from qdrant_client import models

        if not units:
            return
        width = len(units[0].vector)
        if self._there():
            self._check(width)
        else:
            vectors = models.VectorParams(size=width, distance=models.Distance.COSINE)
            self._client.create_collection(self._collection, vectors_config=vectors)
            if self._is_remote():
                self._client.create_payload_index(self._collection, "facts", models.PayloadSchemaType.KEYWORD)
        points = [
            models.PointStruct(id=to_uuid(unit.unit.id), vector=unit.vector.tolist(), payload=_payload(unit))
            for unit in units
        ]
        self._client.upsert(self._collection, points)

    def _check(self, width: int) -> None:
        """Compare the length of the vectors, once."""
        if self._checked != width:
            held = self._client.get_collection(self._collection).config.params.vectors
            check_width(self.description, int(getattr(held, "size", width)), width)
            self._checked = width

    def after_fork(self) -> None:
        """In a process that was just forked: forget the parent's client of a server, and who held the lock."""
        _locks.pop(self._opened, None)
        self._forked = self._is_remote()

    @property
    def _client(self) -> QdrantClient:
        if self._forked:
            keep_for_parent(self._opened)
            self._opened, self._forked = type(self._opened)(**self._opened.init_options), False
        return self._opened

    @property
    def _lock(self) -> threading.Lock:
        return _locks.setdefault(self._opened, threading.Lock())

    def _is_remote(self) -> bool:
        return "Remote" in type(getattr(self._opened, "_client", None)).__name__

    def _top(self, vector: FloatArray, n: int, filter: Filter | None) -> list[str]:
        from qdrant_client import models

        if not self._there():
            return []
        self._check(len(vector))
        test = narrow(filter)
        response = self._client.query_points(
            self._collection,
            query=vector.tolist(),
            limit=n,
            query_filter=None if test is None else models.Filter(must=[_condition(test)]),
            # Clients in memory and of folders compare everything.
            search_params=models.SearchParams(hnsw_ef=max(self._width, 2 * n)) if self._is_remote() else None,
            with_payload=False,
        )
        return [from_uuid(str(point.id)) for point in response.points]

    async def _run(self, work: Callable[[], T]) -> T:
        """In a thread, one after the other: clients in memory and of folders are no more than lists."""
        return await in_turn(self._lock, work, "Qdrant", "the server")


def _store(made: type[QdrantStore], options: dict[str, Any], collection: str, *, width: int) -> QdrantStore:
    """A store with a client of its own, in another process."""
    from qdrant_client import QdrantClient

    return made(QdrantClient(**options), collection, width=width)


def _payload(mirrored: MirroredUnit) -> dict[str, Any]:
    numbers = {_key(key): value for key, value in numbers_of(mirrored.metadata).items()}
    return {**payload_of(mirrored), "numbers": numbers}


def _key(key: str) -> str:
    """A key that is no path: hexadecimal digits."""
    return f"k{key.encode('utf-8', 'surrogatepass').hex()}"


def _condition(test: Test) -> Any:
    from qdrant_client import models

    if isinstance(test, Joined):
        parts = [_condition(part) for part in test.parts]
        return models.Filter(must=parts) if test.operator == "and" else models.Filter(should=parts)
    field: models.FieldCondition
    if isinstance(test, Has):
        field = models.FieldCondition(key="facts", match=models.MatchAny(any=list(test.facts)))
    else:
        field = models.FieldCondition(
            key=f"numbers.{_key(test.key)}", range=models.Range(**{test.operator: test.value})
        )
    return field if test.wanted else models.Filter(must_not=[field])
