"""`PoolView`: what rankers and selectors see of an index at one generation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sire_core.algorithms.vectors import unit_rows
from sire_core.algorithms.wording import count
from sire_core.errors import ConfigurationError, EmbedderMismatchError
from sire_core.search.structures import Structures
from sire_core.storage.pool import Pool
from sire_core.storage.shared_metadata import differing_metadata, shared_metadata
from sire_core.types import Edge, Hit, PathStep, Unit, UnitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import (
        BoolArray,
        Embedder,
        FloatArray,
        IntArray,
        LanguageModel,
        Ranking,
        WrapModel,
    )
    from sire_core.search.vectors.store_scores import FollowedIndex

__all__ = ["PoolView"]

T = TypeVar("T")


_INLINE = 16_000_000
"""Matrix elements that one product gets through in about 5 ms; more work than that leaves the event loop."""


class PoolView:
    """A read-only snapshot of one recipe's pool. Shared by concurrent queries; holds nothing of a query.

    Args:
        pool: The arrays.
        embedder: Embeds questions.
        language_model: For rankers and selectors that ask one.
        load_edges: Reads the pool's edges when somebody wants them.
        load_notes: Reads notes of the pool's organizers whose keys begin with a text, likewise.
        vectors: The user's own store, where it finds what is nearest; None scans the vectors of the pool.
        before: The view of the generation before, for what is carried over.
        named_models: Makes of a model that a setting names the one that is asked; None takes it as it is.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        language_model: LanguageModel | None,
        load_edges: Callable[[], Sequence[Edge]],
        load_notes: Callable[[str], Mapping[str, bytes]],
        vectors: FollowedIndex | None = None,
        before: PoolView | None = None,
        named_models: WrapModel | None = None,
    ) -> None:
        self.pool = pool
        self._embedder = embedder
        self._language_model = language_model
        self._wraps: tuple[WrapModel, ...] | None = ()
        self._named_models = named_models
        self._load_edges = load_edges
        self._load_notes = load_notes
        self._vectors = vectors
        carried = None if before is None else before._structures  # noqa: SLF001 - our own kind
        self._structures: Structures = Structures(pool.files, carried)
        self._questions: dict[str, FloatArray] = {}
        self._cosines: dict[str, FloatArray] = {}

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
        return self.pool.kind_names

    @property
    def ids(self) -> NDArray[np.bytes_]:
        """Unit ids, `[size]`."""
        return self.pool.ids

    @property
    def chunk_pointers(self) -> tuple[IntArray, IntArray]:
        """CSR of provenance over chunk numbers."""
        return self.pool.indptr, self.pool.indices

    @property
    def chunk_documents(self) -> IntArray:
        """Number of each chunk's document, `[chunks]`."""
        return self.pool.chunk_documents

    @property
    def chunk_metadata(self) -> tuple[IntArray, Sequence[Mapping[str, Any]]]:
        """Number of each chunk's metadata, `[chunks]`, and the different metadata by number."""
        return self.pool.chunk_metadata, self.derived("metadata", self.pool.distinct_metadata)

    @property
    def language_model(self) -> LanguageModel | None:
        """The user's model, or None."""
        return self._wrapped(self._language_model)

    @property
    def asks_models(self) -> bool:
        """Whether a language model may be asked."""
        return self._wraps is not None

    def named_model(self, setting: str, name: str) -> LanguageModel | None:
        """The model that a setting names; see `View`. The one way from a setting to a model."""
        if self._wraps is None:
            return None
        from sire_core.models.openai.named import named_model

        model: LanguageModel = named_model(setting, name)
        return self._wrapped(model if self._named_models is None else self._named_models(model))

    def _wrapped(self, model: LanguageModel | None) -> LanguageModel | None:
        if model is None or self._wraps is None:
            return None
        for wrap in self._wraps:
            model = wrap(model)
        return model

    def with_models(self, wrap: WrapModel | None) -> PoolView:
        """This snapshot, whose rankers and selectors ask every model through a wrapper; everything derived is shared.

        Args:
            wrap: Makes of a model the one that is asked, which counts for example; of the user's own as of those that
                settings name. None means that no model is asked.
        """
        twin = copy.copy(self)
        twin._wraps = None if wrap is None or self._wraps is None else (*self._wraps, wrap)  # noqa: SLF001 - as below
        return twin

    def reading(
        self, load_edges: Callable[[], Sequence[Edge]], load_notes: Callable[[str], Mapping[str, bytes]]
    ) -> PoolView:
        """This snapshot with other ways to read what it has not read yet; everything derived is shared."""
        twin = copy.copy(self)
        twin._load_edges, twin._load_notes = load_edges, load_notes  # noqa: SLF001 - a copy of ourselves
        return twin

    async def asking(self, queries: Sequence[str]) -> PoolView:
        """This snapshot for some questions at once: one request to the embedder, one product with all vectors.

        Args:
            queries: Few enough that `size` numbers of each fit into memory.
        """
        asked = list(dict.fromkeys(queries))
        if not self.size or not asked:
            return self
        questions = await self.embed_queries(asked)
        twin = copy.copy(self)
        twin._questions, twin._cosines = dict(zip(asked, questions, strict=True)), {}  # noqa: SLF001 - our own kind
        return twin

    @property
    def embedder_fingerprint(self) -> str:
        """Fingerprint of the embedder that the vectors are of; empty when nothing was ever embedded."""
        return "" if self._embedder is None else self._embedder.fingerprint

    async def embed_query(self, query: str) -> FloatArray:
        """Unit-length vector of a question, `[dimension]`."""
        return self._questions[query] if query in self._questions else (await self.embed_queries([query]))[0]

    async def embed_queries(self, queries: Sequence[str]) -> FloatArray:
        """Unit-length vectors of questions or parts of one, `[queries, dimension]`, from one call of the embedder."""
        vectors: FloatArray = unit_rows(np.asarray(await self._embedder.embed(queries, "query"), dtype=np.float32))
        if self.size and vectors.shape[1] != self.matrix.shape[1]:
            raise EmbedderMismatchError(
                f"The embedder {self._embedder.fingerprint} answered vectors of length {vectors.shape[1]}, but the "
                f"index holds vectors of length {self.matrix.shape[1]}. Give the embedder that it was built with."
            )
        return vectors

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
        if not self.size:
            return np.zeros(0, dtype=bool)
        by_link = self.passing_chunks(where)[self.pool.indices]
        # No unit is without chunks, so every segment of `reduceat` has an element of its own.
        return np.asarray(np.logical_and.reduceat(by_link, self.pool.indptr[:-1]), dtype=bool)

    def passing_chunks(self, where: Filter | None) -> BoolArray:
        """Chunk numbers that pass a filter, `[chunks]`."""
        from sire_core.search.passing import passing_chunks

        return passing_chunks(self, where)

    def units(self, positions: Sequence[int] | IntArray) -> list[Unit]:
        """Read units."""
        return [self.pool.unit(int(position))[0] for position in positions]

    def vectors(self, ids: Sequence[str]) -> FloatArray:
        """Unit-length vectors of units by id, `[len(ids), dimension]`.

        Raises:
            KeyError: An id is none of this snapshot's.
        """
        places = self.places()
        return np.asarray(self.matrix[[places[found] for found in ids]])

    def places(self) -> Mapping[str, int]:
        """Positions of units by id."""
        found: Mapping[str, int] = self.derived(
            "positions by id", lambda: {unit.decode(): place for place, unit in enumerate(self.ids.tolist())}
        )
        return found

    async def cosines(self, query: str, question: FloatArray, where: Filter | None = None) -> FloatArray:
        """Similarity of a question with every unit, `[size]`: exact cosines, or what the user's store makes of them.

        Args:
            query: The question.
            question: Its vector.
            where: Only units that pass it will be looked at; a store of the user's is told.
        """
        if self._vectors is not None and self.size:
            from sire_core.search.vectors.store_scores import store_scores

            return await store_scores(self._vectors, query, question, self, where)
        if self._questions.get(query) is question:
            return await self._cosines_of_all(query)
        if self.matrix.size > _INLINE:
            import asyncio

            return np.asarray(await asyncio.to_thread(np.dot, self.matrix, question), dtype=np.float32)
        return np.asarray(np.dot(self.matrix, question) if self.size else np.zeros(0), dtype=np.float32)

    async def _cosines_of_all(self, query: str) -> FloatArray:
        """Of a question that is asked with others: the product is made for the first of them, if any wants it."""
        import asyncio

        if not self._cosines:
            questions = np.stack(list(self._questions.values()))
            product = await asyncio.to_thread(np.dot, questions, self.matrix.T)
            self._cosines.update(zip(self._questions, product, strict=True))
        return self._cosines[query]

    @property
    def scans(self) -> bool:
        """Whether similarities come from the pool's own vectors."""
        return self._vectors is None

    def hits(self, positions: IntArray, scores: NDArray[np.float32], ranking: Ranking) -> list[Hit]:
        """Read units as hits; a derived unit cites its passages in the order in which the ranking prefers them."""
        return [
            self.hit(position, score, ranking)
            for position, score in zip(positions.tolist(), scores.tolist(), strict=True)
        ]

    def hit(self, position: int, score: float, ranking: Ranking) -> Hit:
        """One of `hits`."""
        places = self._places(position)
        unit, documents = self.pool.unit(position, _cited(places, ranking).tolist() if len(places) > 1 else None)
        path = ranking.path(position)
        if unit.kind is UnitKind.CHUNK:
            return Hit(unit, score, documents, path, unit.metadata)
        sources = self._sources(position)
        path = (*path, PathStep("sources", unit.chunk_ids, _what(unit)))
        return Hit(unit, score, documents, path, shared_metadata(sources), differing_metadata(sources))

    def passages_of(self, position: int, ranking: Ranking) -> list[int]:
        """Positions of the passages that a unit stands on, each once, in the order in which it cites them."""
        places = self._places(position)
        found: list[int] = places[_cited(places, ranking)].tolist() if len(places) > 1 else places.tolist()
        return list(dict.fromkeys(found))

    def path_through(self, position: int, ranking: Ranking) -> tuple[PathStep, ...]:
        """How the ranking came to a derived unit, and what that is: the path of the passages that it brings."""
        unit, _ = self.pool.unit(position)
        return (*ranking.path(position), PathStep("sources", (unit.id,), _what(unit)))

    def _places(self, position: int) -> IntArray:
        """Positions of the chunk units that a unit stands on, one per chunk."""
        chunks = self.pool.indices[self.pool.indptr[position] : self.pool.indptr[position + 1]]
        places: IntArray = self.derived("units of chunks", self._units_of_chunks)[chunks]
        return places

    def shared_metadata(self, position: int) -> dict[str, Any]:
        """What the metadata of all passages that a unit stands on agree on."""
        return shared_metadata(self._sources(position))

    def _sources(self, position: int) -> list[Mapping[str, Any]]:
        """The different metadata of the passages that a unit stands on."""
        number, metadata = self.chunk_metadata
        pool = self.pool
        numbers = number[pool.indices[pool.indptr[position] : pool.indptr[position + 1]]].tolist()
        return [metadata[number] for number in dict.fromkeys(numbers)]

    def _units_of_chunks(self) -> IntArray:
        """Position of the chunk unit of every chunk number."""
        chunk_units = np.flatnonzero(self.pool.kinds == self.kind_names.index(UnitKind.CHUNK.value))
        places = np.zeros(len(self.pool.chunk_ids), dtype=np.int64)
        for position in chunk_units.tolist():
            places[self.pool.indices[self.pool.indptr[position] : self.pool.indptr[position + 1]]] = position
        return places

    def edges(self) -> Sequence[Edge]:
        """All edges of the pool."""
        edges: Sequence[Edge] = self.derived("edges", self._load_edges)
        return edges

    def note(self, key: str) -> bytes | None:
        """A note that an organizer of the pool left for queries, of the generation that this snapshot shows."""
        return self._load_notes(key).get(key)

    def notes(self, prefix: str) -> Sequence[bytes]:
        """Notes whose keys begin with a text, by key."""
        return list(self._load_notes(prefix).values())

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """A structure derived from this snapshot, made once and shared by queries."""
        return self._structures.derived(name, make)

    def carried(self, name: str, make: Callable[[T | None], T]) -> T:
        """A structure made from the one which the snapshot before had; see `Structures.carried`."""
        return self._structures.carried(name, make)

    def kept(self, name: str, make: Callable[[], T], save: Callable[[T, Path], None], load: Callable[[Path], T]) -> T:
        """A structure made once and kept in files for the next process; see `Structures.kept`."""
        return self._structures.kept(name, make, save, load)

    @property
    def made(self) -> Collection[str]:
        """Names of the structures that somebody wanted so far."""
        return self._structures.names

    def intact(self) -> bool:
        """Whether nobody touched the files of this snapshot since they were verified."""
        return self.pool.intact() and self._structures.intact()


def _cited(places: IntArray, ranking: Ranking) -> IntArray:
    """The order in which a unit cites its passages: as the ranking itself prefers them."""
    return np.argsort(-ranking.scores_at(places), kind="stable")


def _what(unit: Unit) -> str:
    """A derived unit in a path."""
    about = f" about {unit.title}" if unit.title else ""
    level = f", level {unit.level}" if unit.level else ""
    return f"{unit.kind.value}{about}{level}, made from {count(len(unit.chunk_ids), 'passage')}"
