"""`PoolView`: what rankers and selectors see of an index at one generation, and the structures derived from it."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from sire_core.arrays.grouping import ranges
from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.arrays.products import row_products
from sire_core.errors import ConfigurationError, EmbedderMismatchError, StorageError
from sire_core.filters import Filter
from sire_core.filters.conditions import DOCUMENT_KEYS, FIELDS, PASSAGE_KEYS, TITLE, conditions, passes
from sire_core.protocols import (
    BoolArray,
    CarriedArrays,
    Embedder,
    FloatArray,
    IntArray,
    LanguageModel,
    Ranking,
    Runner,
    Similarities,
    WrapModel,
)
from sire_core.search.validity import version
from sire_core.search.vectors.sq_index import KnownSimilarities, ReadSimilarities, sq_pays
from sire_core.search.vectors.vector_store import FollowedIndex, store_scores
from sire_core.storage.array_file import ARRAYS_FILE, map_arrays, save_arrays, unpack_arrays
from sire_core.storage.checksums import stored_values
from sire_core.storage.derived import DerivedFiles
from sire_core.storage.pool import Pool, differing_metadata, shared_metadata
from sire_core.text.pluralize import count
from sire_core.types import Edge, ExtractionRecord, Hit, PathStep, Unit, UnitKind, content_hash

T = TypeVar("T")

_WORTH_FILES = 2_000  # Minimum rows for files; smaller structures are derived again within a second
_STALE = 50  # Files are written again if more than one row in this many is missing
_INLINE = 16_000_000
"""Matrix elements that one product gets through in about 5 ms; more work than that leaves the event loop."""


class DerivedCache:
    """Derived structures of one snapshot by name. Thread-safe."""

    def __init__(self, files: DerivedFiles | None, before: DerivedCache | None = None) -> None:
        self._files = files
        self._derived: dict[str, Any] = {}
        self._previous: dict[str, Any] = {} if before is None else dict(before._previous)  # noqa: SLF001 - our own kind
        self._written: dict[str, int] = {} if before is None else dict(before._written)  # noqa: SLF001 - as above
        self._mapped: list[tuple[DerivedFiles, tuple[tuple[int, int, int], ...]]] = []
        self._lock = threading.RLock()

    @property
    def made(self) -> Collection[str]:
        """Names of the derived structures in memory."""
        return self._derived.keys()

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """Return a structure derived from this snapshot, made once and shared by queries."""
        if name not in self._derived:
            with self._lock:
                if name not in self._derived:
                    with stored_values(name):
                        self._derived[name] = make()
        structure: T = self._derived[name]
        return structure

    def cached_incremental(self, name: str, make: Callable[[T | None], T], saved: CarriedArrays[T] | None = None) -> T:
        """Return a structure that is updated from that of the previous snapshot."""
        structure: T = self.derived(name, lambda: self._updated(name, make, saved))
        self._previous[name] = structure
        return structure

    def _updated(self, name: str, make: Callable[[T | None], T], saved: CarriedArrays[T] | None) -> T:
        before = self._previous.get(name)
        if saved is None or self._files is None:
            return make(before)
        files = self._files.carried_part(saved.folder)
        if before is None and files.exists():
            with suppress(Exception):  # damaged files: start from scratch
                files.verify()
                arrays = unpack_arrays((files.directory / ARRAYS_FILE).read_bytes(), in_place=True)
                before, self._written[name] = saved.of(arrays), 0
        made = make(before)
        size, new = saved.size(made)
        stale = not files.exists() or (new - self._written.get(name, 0)) * _STALE > size
        # Without the folder of this generation nothing is written: its files may have been purged.
        if stale and size >= _WORTH_FILES and self._files.exists():
            with suppress(StorageError, OSError):  # a read-only folder costs only time
                files.directory.parent.mkdir(exist_ok=True)
                files.write(lambda directory: save_arrays(directory / ARRAYS_FILE, saved.arrays(made)))
                self._written[name] = new
        return made

    def cached_arrays(self, name: str, make: Callable[[], Mapping[str, NDArray[Any]]]) -> Mapping[str, NDArray[Any]]:
        """Return arrays by name, derived from this snapshot and kept in one file, from which they are mapped."""

        def save(arrays: Mapping[str, NDArray[Any]], directory: Path) -> None:
            save_arrays(directory / ARRAYS_FILE, arrays)

        return self.cached_on_disk(name, make, save, lambda directory: map_arrays(directory / ARRAYS_FILE))

    def cached_on_disk(
        self, name: str, make: Callable[[], T], save: Callable[[T, Path], None], load: Callable[[Path], T]
    ) -> T:
        """Return a structure derived from this snapshot, made once and loaded from files, as by other processes."""
        return self.derived(name, lambda: self._from_disk(name, make, save, load))

    def _from_disk(
        self, name: str, make: Callable[[], T], save: Callable[[T, Path], None], load: Callable[[Path], T]
    ) -> T:
        files = None if self._files is None else self._files.part(name)
        if files is None:
            return make()
        if files.exists():
            with suppress(Exception):  # damaged files: derive again
                return self._loaded(files, load, written=False)
        made = make()
        with suppress(StorageError, OSError):  # a read-only folder costs only time
            files.write(lambda directory: save(made, directory))
            return self._loaded(files, load, written=True)  # what no query reads takes no memory
        return made

    def _loaded(self, files: DerivedFiles, load: Callable[[Path], T], *, written: bool) -> T:
        stamp = files.stamp()
        if not written:
            files.verify()
        loaded = load(files.directory)
        self._mapped.append((files, stamp))
        return loaded

    def intact(self, *, may_be_gone: bool = False) -> bool:
        """True if the files are unchanged since they were verified; see `DerivedFiles.intact`."""
        return all(files.intact(stamp, may_be_gone=may_be_gone) for files, stamp in self._mapped)


class PoolView(DerivedCache):
    """A read-only snapshot of one recipe's pool. Shared by concurrent queries; holds nothing of a query."""

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        language_model: LanguageModel | None,
        load_edges: Callable[[], Sequence[Edge]],
        load_notes: Callable[[str], Mapping[str, bytes]],
        vectors: FollowedIndex | None = None,
        before: PoolView | None = None,
        wrap_model: WrapModel | None = None,
        model_records: Callable[[Sequence[str]], Mapping[str, ExtractionRecord]] | None = None,
    ) -> None:
        super().__init__(pool.files, before)
        self._model_records = model_records
        self.pool = pool
        self.generation, self.size, self.matrix = pool.generation, len(pool.ids), pool.matrix  # See `View`
        self.ids, self.kinds, self.kind_names = pool.ids, pool.kinds, pool.kind_names
        self.chunk_pointers, self.chunk_documents = (pool.indptr, pool.indices), pool.chunk_documents
        self._load_edges = load_edges
        self._load_notes = load_notes
        self._embedder = embedder
        self._language_model = language_model
        self._wraps: tuple[WrapModel, ...] | None = ()
        self._named_models = wrap_model
        self._vectors = vectors
        self.runner: Runner | None = None
        self.paraphrase_score: float | None = None
        """Score of the embedder that the vectors are of, see `models.paraphrases`; None if it was not measured."""
        self.shown_entities: Callable[[], Mapping[str, str]] | None = None
        """Ids of entities in paths, by their stored ids, where `allow` hides passages."""
        self._questions: dict[str, FloatArray] = {}
        self._cosines: dict[str, FloatArray] = {}

    @property
    def chunk_metadata(self) -> tuple[IntArray, Sequence[Mapping[str, Any]]]:
        """Number of each chunk's metadata, `[chunks]`, and the different metadata by number."""
        return self.pool.chunk_metadata, self.derived("metadata", self.pool.distinct_metadata)

    def reading(
        self, load_edges: Callable[[], Sequence[Edge]], load_notes: Callable[[str], Mapping[str, bytes]]
    ) -> Self:
        """This snapshot with other ways to read what it has not read yet; everything derived is shared."""
        twin = copy.copy(self)
        twin._load_edges, twin._load_notes = load_edges, load_notes  # noqa: SLF001 - a copy of ourselves
        return twin

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
        number, metadata = self.chunk_metadata
        if where is not None and (asked := self._fields_asked(where, metadata)):
            nothing = [""] * len(number)
            documents = self._owners() if asked & {*DOCUMENT_KEYS} else nothing
            passages = [own for _, own in self.passage_ids()] if asked & {*PASSAGE_KEYS} else nothing
            titles = self.passage_titles() if TITLE in asked else nothing
            rows = list(zip(number.tolist(), documents, passages, titles, strict=True))
            different = list(dict.fromkeys(rows))  # thousands of passages may share what the filter looks at
            matched = passes(where, ((metadata[number], *fields) for number, *fields in different))
            found = dict(zip(different, matched, strict=True))
            return np.fromiter((found[row] for row in rows), dtype=bool, count=len(rows))
        matches = (where is None or where.matches(found) for found in metadata)
        passing = np.fromiter(matches, dtype=bool, count=len(metadata))
        return np.asarray(passing[number], dtype=bool)

    @staticmethod
    def _fields_asked(where: Filter, metadata: Sequence[Mapping[str, Any]]) -> set[str]:
        """Keys of a filter that stand for fields of some passages, since not all metadata have them."""
        keys = {condition.key for condition in conditions(where)}.intersection(FIELDS)
        return {key for key in keys if not all(key in values for values in metadata)}

    def passage_ids(self) -> list[tuple[str, str]]:
        """Ids by chunk number, of its document and its own: the user's, or ours where there is none."""
        given: list[str] = self.derived("ids of passages", self.pool.source_ids)
        own = [found.decode() for found in self.pool.chunk_ids.tolist()]
        return [(document, name or chunk) for document, name, chunk in zip(self._owners(), given, own, strict=True)]

    def passage_titles(self) -> list[str]:
        """The title of every chunk number that filters compare; empty where there is none."""
        return self.derived("titles of passages", self.pool.filtered_titles)

    def _owners(self) -> list[str]:
        """Ids of the documents of all chunk numbers."""
        ids: list[str] = self.derived("ids of documents", self.pool.document_ids)
        return [ids[number] for number in self.pool.chunk_documents.tolist()]

    def units(self, positions: Sequence[int] | IntArray) -> list[Unit]:
        """Read units."""
        return [self.pool.unit(int(position))[0] for position in positions]

    def vectors(self, ids: Sequence[str]) -> FloatArray:
        """Unit-length vectors of units by id, `[len(ids), dimension]`."""
        positions = self.places()
        return np.asarray(self.matrix[[positions[name] for name in ids]])

    def places(self) -> Mapping[str, int]:
        """Positions of units by id."""
        by_id: Mapping[str, int] = self.derived(
            "positions by id", lambda: {unit.decode(): position for position, unit in enumerate(self.ids.tolist())}
        )
        return by_id

    def hits(self, positions: IntArray, scores: FloatArray, ranking: Ranking) -> list[Hit]:
        """Read units as hits; a derived unit cites its passages in the order in which the ranking prefers them."""
        return [
            self.hit(position, score, ranking)
            for position, score in zip(positions.tolist(), scores.tolist(), strict=True)
        ]

    def hit(self, position: int, score: float, ranking: Ranking, path: tuple[PathStep, ...] | None = None) -> Hit:
        """One of `hits`; its path is asked of the ranking unless it is given."""
        positions = self._places(position)
        unit, documents = self.pool.unit(position, _cited(positions, ranking).tolist() if len(positions) > 1 else None)
        if path is None:
            path = ranking.path(position)
        if unit.kind is UnitKind.CHUNK:
            return Hit(unit, score, documents, path, unit.metadata)
        sources = self._sources(position)
        path = (*path, PathStep("sources", unit.chunk_ids, _what(unit)))
        return Hit(unit, score, documents, path, shared_metadata(sources), differing_metadata(sources))

    def passages_of(self, position: int, ranking: Ranking) -> list[int]:
        """Positions of the passages that a unit stands on, each once, in the order in which it cites them."""
        rows = self._places(position)
        positions: list[int] = rows[_cited(rows, ranking)].tolist() if len(rows) > 1 else rows.tolist()
        return list(dict.fromkeys(positions))

    def path_through(self, position: int, ranking: Ranking) -> tuple[PathStep, ...]:
        """Path of the ranking to a derived unit, and what that is: the path of the passages that it brings."""
        unit, _ = self.pool.unit(position)
        return (*ranking.path(position), PathStep("sources", (unit.id,), _what(unit)))

    def _places(self, position: int) -> IntArray:
        """Positions of the chunk units that a unit stands on, one per chunk."""
        chunks = self.pool.indices[self.pool.indptr[position] : self.pool.indptr[position + 1]]
        places: IntArray = self.derived("units of chunks", self._units_of_chunks)[chunks]
        return places

    def neighbors(self, position: int, allowed: BoolArray | None) -> tuple[int, list[int]]:
        """Chunk number of a passage, and positions of the allowed passages before and after it.

        They are of its document, or documents themselves with the same source in their metadata, as splitters leave it.
        """
        pool = self.pool
        number = int(pool.indices[pool.indptr[position]])
        numbers, metadata = self.chunk_metadata
        around = [n for n in (number - 1, number, number + 1) if 0 <= n < len(pool.chunk_ids)]
        sources = {n: version(metadata[numbers[n]])[0] or pool.chunk_documents[n] for n in around}
        same = [n for n in around if n != number and sources[n] == sources[number]]
        places: IntArray = self.derived("units of chunks", self._units_of_chunks)[same]
        return number, [unit for unit in places.tolist() if allowed is None or allowed[unit]]

    def shared_metadata(self, position: int) -> dict[str, Any]:
        """Metadata that all passages of a unit agree on."""
        return shared_metadata(self._sources(position))

    def _sources(self, position: int) -> list[Mapping[str, Any]]:
        """The different metadata of the passages that a unit stands on."""
        number, metadata = self.chunk_metadata
        pool = self.pool
        numbers = number[pool.indices[pool.indptr[position] : pool.indptr[position + 1]]].tolist()
        return [metadata[number] for number in dict.fromkeys(numbers)]

    def _units_of_chunks(self) -> IntArray:
        """Position of the chunk unit of every chunk number."""
        units = np.flatnonzero(self.pool.kinds == self.kind_names.index(UnitKind.CHUNK.value))
        starts, lengths = self.pool.indptr[units], np.diff(self.pool.indptr)[units]
        positions = np.zeros(len(self.pool.chunk_ids), dtype=np.int64)
        positions[self.pool.indices[ranges(starts, lengths)]] = units.repeat(lengths)
        return positions

    def shown_entity(self, entity_id: str) -> str:
        """Id of an entity as paths have it."""
        return entity_id if self.shown_entities is None else self.shown_entities().get(entity_id, entity_id)

    def edges(self) -> Sequence[Edge]:
        """All edges of the pool."""
        return self.derived("edges", self._load_edges)

    def note(self, key: str) -> bytes | None:
        """A note that an organizer of the pool left for queries, of the generation that this snapshot shows."""
        return self._load_notes(key).get(key)

    def notes(self, prefix: str) -> Sequence[bytes]:
        """Notes whose keys begin with a text, by key."""
        return list(self._load_notes(prefix).values())

    def intact(self, *, may_be_gone: bool = False) -> bool:
        """True if nobody touched the files of this snapshot since they were verified. See `DerivedFiles.intact`."""
        return self.pool.intact(may_be_gone=may_be_gone) and super().intact(may_be_gone=may_be_gone)

    def model_records(self, units: Sequence[Unit]) -> list[ExtractionRecord]:
        """Records that a model extracted from passages; empty where rules did."""
        if self._model_records is None:
            return []
        hashes = [content_hash(unit.title, unit.text) for unit in units]
        records = self._model_records(hashes)
        return [records[name] for name in hashes if name in records]

    @property
    def language_model(self) -> LanguageModel | None:
        """The user's model, or None."""
        return self._wrapped(self._language_model)

    @property
    def asks_models(self) -> bool:
        """True if a language model may be asked."""
        return self._wraps is not None

    def named_model(self, setting: str, name: str) -> LanguageModel | None:
        """The model that a setting names; see `View`. The one way from a setting to a model."""
        if self._wraps is None:
            return None
        from sire_core.models.openai.client import named_model

        model: LanguageModel = named_model(setting, name)
        return self._wrapped(model if self._named_models is None else self._named_models(model))

    def _wrapped(self, model: LanguageModel | None) -> LanguageModel | None:
        if model is None or self._wraps is None:
            return None
        for wrap in self._wraps:
            model = wrap(model)
        return model

    def with_models(self, wrap: WrapModel | None) -> PoolView:
        """This snapshot, whose rankers and selectors ask models through a wrapper; None means that none is asked."""
        twin = copy.copy(self)
        twin._wraps = None if wrap is None or self._wraps is None else (*self._wraps, wrap)  # noqa: SLF001 - a copy of ourselves
        return twin

    def with_runner(self, runner: Runner) -> PoolView:
        """This snapshot while a build prepares the ranker, with what runs parallel work."""
        twin = copy.copy(self)
        twin.runner = runner
        return twin

    async def asking(self, queries: Sequence[str]) -> PoolView:
        """This snapshot for some questions at once: one request to the embedder, one product with all vectors."""
        different = list(dict.fromkeys(queries))
        if not self.size or not different:
            return self
        questions = await self.embed_queries(different)
        twin = copy.copy(self)
        twin._questions, twin._cosines = dict(zip(different, questions, strict=True)), {}  # noqa: SLF001 - our own kind
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
        """Unit-length vectors of the tokens of texts, each `[tokens, d]`."""
        embed = getattr(self._embedder, "embed_tokens", None)
        if embed is None:
            raise ConfigurationError(
                f"The embedder {self._embedder.fingerprint} has no vectors of single tokens, which late interaction "
                "needs. Give a model: onnx:NAME_OR_FOLDER or st:NAME_OR_FOLDER."
            )
        vectors: list[FloatArray] = await embed(texts, kind)
        return vectors

    def waiting(self) -> BoolArray:
        """Which units the user's own store has not got yet, or not as they are, `[size]`; none without one."""
        return np.zeros(self.size, dtype=bool) if self._vectors is None else self._vectors.waiting(self)

    async def cosines(self, query: str, question: FloatArray, where: Filter | None = None) -> FloatArray:
        """Similarity of a question with every unit, `[size]`: exact cosines, or what the user's store makes of them."""
        if self._vectors is not None and self.size:
            return await store_scores(self._vectors, query, question, self, where)
        if self._questions.get(query) is question:
            return await self._cosines_of_all(query)
        if self.matrix.size > _INLINE:
            return np.asarray(await asyncio.to_thread(np.dot, self.matrix, question), dtype=np.float32)
        return np.asarray(row_products(self.matrix, question) if self.size else np.zeros(0), dtype=np.float32)

    async def similarities(self, query: str, question: FloatArray, where: Filter | None = None) -> Similarities:
        """As `cosines`, but those of a large pool are computed as far as they are read. For one question only."""
        alone = self._questions.get(query) is not question
        if where is None and alone and self.scans and sq_pays(*self.matrix.shape):
            return ReadSimilarities(self, question)
        return KnownSimilarities(await self.cosines(query, question, where))

    async def _cosines_of_all(self, query: str) -> FloatArray:
        """Cosines of one of several questions: the product is made for the first of them, if any wants it."""
        if not self._cosines:
            questions = np.stack(list(self._questions.values()))
            product = await asyncio.to_thread(np.dot, questions, self.matrix.T)
            self._cosines.update(zip(self._questions, product, strict=True))
        return self._cosines[query]

    @property
    def scans(self) -> bool:
        """True if similarities come from the pool's own vectors."""
        return self._vectors is None


def _cited(places: IntArray, ranking: Ranking) -> IntArray:
    """The order in which a unit cites its passages: as the ranking itself prefers them."""
    return np.argsort(-ranking.scores_at(places), kind="stable")


def _what(unit: Unit) -> str:
    """A derived unit in a path."""
    about = f" about {unit.title}" if unit.title else ""
    level = f", level {unit.level}" if unit.level else ""
    return f"{unit.kind.value}{about}{level}, made from {count(len(unit.chunk_ids), 'passage')}"
