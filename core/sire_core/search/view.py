"""`PoolView`: what rankers and selectors see of an index at one generation."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.vectors import unit_rows
from sire_core.errors import ConfigurationError, EmbedderMismatchError
from sire_core.storage.pool import KIND_NAMES, Pool
from sire_core.types import Edge, Hit, Step, Unit, UnitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, Embedder, FloatArray, IntArray, LanguageModel, Ranking

__all__ = ["PoolView"]


class PoolView:
    """A read-only snapshot of one recipe's pool. Shared by concurrent queries; holds nothing of a query.

    Args:
        pool: The arrays.
        embedder: Embeds questions.
        language_model: For rankers and selectors that ask one.
        load_edges: Reads the pool's edges when somebody wants them.
        load_note: Reads a note of the pool's organizers by its key, likewise.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        language_model: LanguageModel | None,
        load_edges: Callable[[], Sequence[Edge]],
        load_note: Callable[[str], bytes | None],
    ) -> None:
        self.pool = pool
        self._embedder = embedder
        self._language_model = language_model
        self._load_edges = load_edges
        self._load_note = load_note
        self._derived: dict[str, Any] = {}
        self._lock = threading.RLock()

    @property
    def generation(self) -> int:
        """Generation of the index this snapshot shows."""
        return self.pool.generation

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.pool.ids)

    @property
    def matrix(self) -> FloatArray:
        """Unit-length vectors, `[size, dimension]`."""
        return self.pool.matrix

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """Codes into `kind_names`, `[size]`."""
        return self.pool.kinds

    @property
    def kind_names(self) -> Sequence[str]:
        """`UnitKind` values by code."""
        return KIND_NAMES

    @property
    def ids(self) -> NDArray[np.bytes_]:
        """Unit ids, `[size]`."""
        return self.pool.ids

    @property
    def chunk_pointers(self) -> tuple[IntArray, IntArray]:
        """CSR of provenance over chunk numbers."""
        return self.pool.indptr, self.pool.indices

    @property
    def language_model(self) -> LanguageModel | None:
        """The user's model, or None."""
        return self._language_model

    def with_language_model(self, language_model: LanguageModel | None) -> PoolView:
        """This snapshot with another model, or none; everything derived is shared."""
        twin = copy.copy(self)
        twin._language_model = language_model  # noqa: SLF001 - a copy of ourselves
        return twin

    @property
    def embedder_fingerprint(self) -> str:
        """Fingerprint of the embedder that the vectors are of; empty when nothing was ever embedded."""
        return "" if self._embedder is None else self._embedder.fingerprint

    @property
    def directory(self) -> Path | None:
        """Where derived structures of this snapshot may be kept; None in memory."""
        return self.pool.directory

    async def embed_query(self, query: str) -> FloatArray:
        """Unit-length vector of a question, `[dimension]`."""
        vectors = await self._embedder.embed([query], "query")
        question: FloatArray = unit_rows(np.asarray(vectors, dtype=np.float32))[0]
        if self.size and len(question) != self.matrix.shape[1]:
            raise EmbedderMismatchError(
                f"The embedder {self._embedder.fingerprint} answered a vector of length {len(question)}, but the index "
                f"holds vectors of length {self.matrix.shape[1]}. Give the embedder that it was built with."
            )
        return question

    async def embed_tokens(self, texts: Sequence[str], kind: str) -> list[FloatArray]:
        """Unit-length vectors of the tokens of texts, each `[tokens, d]`.

        Raises:
            ConfigurationError: The embedder has none.
        """
        embed = getattr(self._embedder, "embed_tokens", None)
        if embed is None:
            raise ConfigurationError(
                f"The embedder {self._embedder.fingerprint} has no vectors of single tokens, which late interaction "
                "needs. Give a sentence-transformers model: st:NAME_OR_FOLDER."
            )
        found: list[FloatArray] = await embed(texts, kind)
        return found

    def allowed(self, where: Filter | None) -> BoolArray | None:
        """Units all of whose chunks pass the filter, `[size]`; None when everything passes."""
        if where is None:
            return None
        documents = self.derived("documents", self.pool.document_metadata)
        passes = np.fromiter((where.matches(metadata) for _, metadata in documents), dtype=bool, count=len(documents))
        if not self.size:
            return np.zeros(0, dtype=bool)
        by_link = passes[self.pool.chunk_documents][self.pool.indices]
        # No unit is without chunks, so every segment of `reduceat` has an element of its own.
        return np.asarray(np.logical_and.reduceat(by_link, self.pool.indptr[:-1]), dtype=bool)

    def units(self, positions: Sequence[int] | IntArray) -> list[Unit]:
        """Read units."""
        return [self.pool.unit(int(position))[0] for position in positions]

    def hits(self, positions: IntArray, scores: NDArray[np.float32], ranking: Ranking) -> list[Hit]:
        """Read units as hits; a derived unit cites its passages in the order in which the ranking prefers them."""
        return [
            self._hit(position, score, ranking)
            for position, score in zip(positions.tolist(), scores.tolist(), strict=True)
        ]

    def _hit(self, position: int, score: float, ranking: Ranking) -> Hit:
        pool = self.pool
        path = ranking.path(position)
        start, end = int(pool.indptr[position]), int(pool.indptr[position + 1])
        order = None
        if end - start > 1:
            places = self.derived("units of chunks", self._units_of_chunks)[pool.indices[start:end]]
            order = np.argsort(-ranking.scores_at(places), kind="stable").tolist()
        unit, documents = pool.unit(position, order)
        if unit.kind is UnitKind.CHUNK:
            return Hit(unit, score, documents, path)
        about = f" about {unit.title}" if unit.title else ""
        level = f", level {unit.level}" if unit.level else ""
        note = (
            f"{unit.kind.value}{about}{level}, made from {end - start} {'passage' if end - start == 1 else 'passages'}"
        )
        return Hit(unit, score, documents, (*path, Step("sources", unit.chunk_ids, note)))

    def _units_of_chunks(self) -> IntArray:
        """Position of the chunk unit of every chunk number."""
        chunk_units = np.flatnonzero(self.pool.kinds == KIND_NAMES.index(UnitKind.CHUNK.value))
        places = np.zeros(len(self.pool.chunk_ids), dtype=np.int64)
        for position in chunk_units.tolist():
            places[self.pool.indices[self.pool.indptr[position] : self.pool.indptr[position + 1]]] = position
        return places

    def edges(self) -> Sequence[Edge]:
        """All edges of the pool."""
        edges: Sequence[Edge] = self.derived("edges", self._load_edges)
        return edges

    def note(self, key: str) -> bytes | None:
        """A note that an organizer of the pool left for queries; of the newest generation, so compare it."""
        return self._load_note(key)

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """A structure derived from this snapshot, made once and shared by queries."""
        try:
            return self._derived[name]
        except KeyError:
            with self._lock:
                if name not in self._derived:
                    self._derived[name] = make()
                return self._derived[name]
