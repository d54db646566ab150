"""The embedding stage of a build: every vector is computed once, stored at once and reused."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.errors import EmbedderMismatchError, ModelError, SireError
from sire_core.protocols import Embedder, Fittable, FloatArray, Progress, Runner
from sire_core.storage.plain_files import write_error
from sire_core.text.words import tokenize
from sire_core.types import Chunk, Unit, digest
from sire_core.worker_pool import bounded_map

if TYPE_CHECKING:
    from sire_core.storage.call_cache import CallStore

_MAX_SHOWN_LETTERS = 60
_MIN_READ_LETTERS = 1000  # Models read at least so many characters


class TextError(ModelError):
    """An embedder fails for a text, or for one of several; smaller batches show for which."""


class BatchError(TextError):
    """The vectors of a batch cannot be assigned to its texts; single texts may work."""


def check_vectors(
    rows: Any, texts: Sequence[str], name: str, dimension: int | None = None, *, knows_all: bool = True
) -> FloatArray:
    """Vectors of texts as a matrix, float32 `[len(texts), dimension]`."""
    try:
        vectors = [np.asarray(row, dtype=np.float32) for row in rows]
    except (TypeError, ValueError) as error:
        raise TextError(f"{name} returned vectors that cannot be read ({error}).") from error
    if len(vectors) != len(texts):
        raise BatchError(
            f"{name} returned {len(vectors)} vectors for {len(texts)} texts; one for each text, in their order, is due."
        )
    width = dimension or (vectors[0].size if vectors else 0)
    for row, vector in enumerate(vectors):
        problem = _problem(vector, width)
        if not problem and knows_all and not vector.any() and any(map(str.isalnum, texts[row])):
            problem = "a zero vector"
        if problem:
            raise TextError(f"{name} returned {problem} for the text {texts[row][:_MAX_SHOWN_LETTERS]!r}.")
    matrix = np.stack(vectors) if vectors else np.empty((0, width), dtype=np.float32)
    if knows_all and len(matrix) > 1 and matrix.any() and (matrix == matrix[0]).all():
        different = {" ".join(tokenize(text[:_MIN_READ_LETTERS])) for text in texts}
        if len(different) > 1:
            raise BatchError(f"{name} returned the same vector for {len(different)} different texts.")
    return matrix


def _problem(vector: FloatArray, width: int) -> str:
    """Describe the fault of a vector; empty if it has none."""
    if vector.ndim != 1 or not vector.size:
        return "no vector"
    if vector.size != width:
        return f"a vector of length {vector.size}, not {width},"
    return "" if np.isfinite(vector).all() else "a vector with infinite or undefined numbers"


_FITTED_BATCH = 1024  # Texts of a batch whose vectors are not stored before the index is
_STORED_BATCH = 128  # Texts of a batch that is stored at once: a killed build loses only those under way
_DIFFERENT, _SAME = 8, 1e-7  # So many different texts do not all have vectors as close as that
_HOPELESS = 16  # An embedder that failed for as many parts of a batch, and for no part did not, fails for all
_IN_MEMORY = 1 << 23  # Bytes of vectors that are kept in memory; with more, all go to the file


@dataclass(frozen=True, slots=True)
class _Embedded:
    """Unit-length vectors of a batch, `[texts, dimension]`, zero for those that failed, and why these did."""

    vectors: FloatArray
    failed: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class UnitEmbedder:
    """Vectors of units during one build."""

    _embedder: Embedder
    _store: CallStore | None  # None for what was fitted to this corpus: quicker to ask again than to write down
    _load: Callable[[Sequence[str]], Mapping[str, FloatArray]]
    _read: Callable[[Sequence[str]], Mapping[str, Unit]]
    _made: VectorFile
    _progress: Progress
    _workers: int
    _width: int
    _runner: Runner
    _fits: bool = False  # whether it has returned vectors of the index's length
    # Units that could not be embedded, by id, with the reason; their vectors are zero: words find them
    failed: dict[str, tuple[Unit, str]] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        """Length of the vectors: of those that are stored or were made, else what the embedder says."""
        return self._width or int(self._embedder.dimension)

    async def embed(self, units: Sequence[Unit | str]) -> FloatArray:
        """Unit-length vectors of the units' index texts, `[len(units), dimension]`."""
        if not units:
            return np.empty((0, self.dimension), dtype=np.float32)
        by_id = await self.by_id(units)
        ids = [_id(unit) for unit in units]
        vectors = np.empty((len(ids), len(by_id[ids[0]])), dtype=np.float32)
        for row, unit in enumerate(ids):
            vectors[row] = by_id[unit]
        return vectors

    async def by_id(self, units: Sequence[Unit | str]) -> Mapping[str, FloatArray]:
        """Unit-length vectors by unit id, read lazily."""
        new = [unit for unit in units if _id(unit) not in self._made]
        held = {unit: vector for unit, vector in self._load([_id(unit) for unit in new]).items() if vector.any()}
        await self._make([unit for unit in new if _id(unit) not in held])
        return _Vectors(dict.fromkeys(map(_id, units)), held, self._made)

    async def _make(self, units: Sequence[Unit | str]) -> None:
        """Embed units without a vector, or take vectors that an unfinished run has stored."""
        new_units = [unit for unit in units if not isinstance(unit, str)]
        new_units += self._read([unit for unit in units if isinstance(unit, str)]).values()
        same: dict[str, tuple[Unit, ...]] = {}
        for unit in new_units:
            text = digest("vector", unit.index_text)
            same[text] = (*same.get(text, ()), unit)
        parts = self._parts(list(same))
        stored = {text for part in parts for text in self._stored(part)}
        # First what has to be asked for: afterwards the length of vectors is known.
        await self._ask({text: units for text, units in same.items() if text not in stored})
        for part in parts if stored else ():
            if usable := self._usable(self._stored(part)):
                self._made.put([_ids(same[text]) for text in usable], np.stack(list(usable.values())))
                stored.difference_update(usable)
        await self._ask({text: units for text, units in same.items() if text in stored})

    def _parts(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Batches of texts, none smaller than a request of the embedder (its `batch_size`)."""
        size = _FITTED_BATCH if self._store is None else max(_STORED_BATCH, getattr(self._embedder, "batch_size", 0))
        return [texts[start : start + size] for start in range(0, len(texts), size)]

    def _stored(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Vectors that an unfinished run has stored, by hash of the text."""
        return {} if self._store is None else self._store.vectors(self._embedder.fingerprint, texts)

    def _usable(self, stored: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Stored vectors that pass the checks of new ones."""
        width = self._width or next((vector.size for vector in stored.values()), 0)
        usable = {text: vector for text, vector in stored.items() if vector.any() and not _problem(vector, width)}
        if not usable or self._are_alike(np.stack(list(usable.values()))):
            return {}
        self._width = self._width or width
        return usable

    async def _ask(self, same: Mapping[str, tuple[Unit, ...]]) -> None:
        """Embed texts, given by hash the units that have it, in batches, a few at a time."""
        parts = self._parts(list(same))
        done = 0
        if parts:
            self._progress("embedding", 0, len(same))
        async for number, embedded in self._batches([[same[text][0] for text in part] for part in parts]):
            part, failed = parts[number], embedded.failed
            good = [row for row in range(len(part)) if row not in failed]
            self._require_different(embedded.vectors[good])
            if self._store is not None:
                self._store.put_vectors(self._embedder.fingerprint, [part[row] for row in good], embedded.vectors[good])
            self._made.put([_ids(same[text]) for text in part], embedded.vectors)
            for row, reason in failed.items():
                self.failed |= {unit.id: (unit, reason) for unit in same[part[row]]}
            done += len(part)
            self._progress("embedding", done, len(same))

    def _require_different(self, vectors: FloatArray) -> None:
        """Raise when all vectors of a batch are one and the same: that does not show in single calls."""
        if self._are_alike(vectors):
            raise ModelError(
                f"The embedder {self._embedder.fingerprint} returned the same vector for {len(vectors)} different "
                "texts. Nothing was stored. Check which model its server runs."
            )

    def _are_alike(self, vectors: FloatArray) -> bool:
        """True if vectors of different texts are all the same, although they must differ."""
        return len(vectors) >= _DIFFERENT and self._knows_all() and bool(np.ptp(vectors, axis=0).max() < _SAME)

    async def _batches(self, parts: Sequence[list[Unit]]) -> AsyncGenerator[tuple[int, _Embedded], None]:
        """Vectors by number of the part, as they come."""
        if self._runner.part_size is not None and getattr(self._embedder, "portable", False):
            async with aclosing(self._runner.map(_embedded, self._embedder, parts)) as batches:
                async for number, raw in batches:
                    yield number, _Embedded(self._checked(raw, IndexTexts(parts[number])))
            return

        async def embed(number: int) -> _Embedded:
            return await self._halving(IndexTexts(parts[number]))

        async with aclosing(bounded_map(embed, range(len(parts)), self._workers)) as finished:
            async for some in finished:
                for result in some:
                    yield result

    async def _halving(self, texts: IndexTexts) -> _Embedded:
        """Vectors of texts; where the embedder fails for some, of the others, found by halving what failed."""
        made: dict[int, FloatArray] = {}
        failed: dict[int, str] = {}
        first: Exception | None = None
        pieces = [range(len(texts))]
        while pieces:
            smaller: list[range] = []
            for piece in pieces:
                some = texts[piece.start : piece.stop]
                try:
                    vectors_of_piece = self._checked(await self._embedder.embed(some, "document"), some)
                    made.update(zip(piece, vectors_of_piece, strict=True))
                except Exception as error:
                    if isinstance(error, SireError) and not isinstance(error, TextError):
                        raise
                    first = first or error
                    if len(piece) > 1:
                        smaller += _smaller(piece, error)
                        continue
                    failed[piece.start] = f"{type(error).__name__}: {error}"
            tried = len(failed) if isinstance(first, BatchError) else len(failed) + len(smaller)
            if first is not None and not made and (tried > _HOPELESS or not (smaller or self._width)):
                raise first
            pieces = smaller
        vectors = np.zeros((len(texts), self._width), dtype=np.float32)
        for row, vector in made.items():
            vectors[row] = vector
        return _Embedded(vectors, failed)

    def _knows_all(self) -> bool:
        """True if different texts must have different vectors: not of a fitted embedder, nor of a known test double."""
        return not isinstance(self._embedder, Fittable) and bool(getattr(self._embedder, "tells_texts_apart", True))

    def _declared(self) -> int | None:
        """Length of the embedder's vectors as it says itself; None as long as it does not know."""
        try:
            return int(self._embedder.dimension) or None
        except (SireError, TypeError, ValueError):
            return None

    def _checked(self, raw: Any, texts: Sequence[str]) -> FloatArray:
        """Unit-length vectors of texts."""
        name, knows_all = f"The embedder {self._embedder.fingerprint}", self._knows_all()
        raw = check_vectors(raw, texts, name, None if self._width else self._declared(), knows_all=knows_all)
        self._width = self._width or raw.shape[1]
        if raw.shape[1] != self._width and self._fits:
            raise TextError(f"{name} returned vectors of length {raw.shape[1]}, not {self._width}.")
        if raw.shape[1] != self._width:
            raise EmbedderMismatchError(
                f"{name} answers vectors of another length than those in the index. Give the one that it was built "
                "with, or build into another folder."
            )
        self._fits = True
        return unit_rows(raw)


def _smaller(piece: range, error: Exception) -> list[range]:
    """Parts of a batch for which an embedder failed: its halves, or single texts."""
    if isinstance(error, BatchError):
        return [range(row, row + 1) for row in piece]
    middle = (piece.start + piece.stop) // 2
    return [range(piece.start, middle), range(middle, piece.stop)]


def _embedded(embedder: Embedder, units: list[Unit]) -> FloatArray:
    """Vectors of a part, wherever this runs."""
    return asyncio.run(embedder.embed(IndexTexts(units)[:], "document"))


class IndexTexts(Sequence[str]):
    """Texts of passages or units that are embedded, made when they are needed: they take as much memory as these."""

    def __init__(self, sources: Sequence[Chunk] | Sequence[Unit]) -> None:
        self._sources = sources

    def __len__(self) -> int:
        return len(self._sources)

    def __getitem__(self, index: Any) -> Any:
        chosen: Any = self._sources[index]
        return [source.index_text for source in chosen] if isinstance(index, slice) else chosen.index_text


class _Vectors(Mapping[str, "FloatArray"]):
    """Vectors of some units, of which the index holds some and a build has made the others."""

    def __init__(self, ids: Mapping[str, None], held: Mapping[str, FloatArray], made: VectorFile) -> None:
        self._ids, self._held, self._made = ids, held, made

    def __getitem__(self, unit: str) -> FloatArray:
        held = self._held.get(unit)
        return self._made[unit] if held is None else held

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def _id(unit: Unit | str) -> str:
    return unit if isinstance(unit, str) else unit.id


def _ids(units: Iterable[Unit]) -> list[str]:
    return [unit.id for unit in units]


class VectorFile:
    """Vectors of one length, in a file that has no name: it is gone with this object, or with the process.

    Thread-safe. Few vectors make no file.
    """

    def __init__(self, directory: Path | None) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(directory) if directory else None)  # noqa: SIM115 - closed with this
        weakref.finalize(self, self._file.close)
        self._places: dict[str, int] = {}
        self._rows = 0
        self._size = 0
        self._lock = threading.Lock()

    def put(self, ids: Sequence[Sequence[str]], vectors: FloatArray) -> None:
        """Add vectors `[len(ids), dimension]`, each under some ids."""
        content = np.ascontiguousarray(vectors, dtype=np.float32)
        with self._lock:
            self._size = content.shape[1] * content.itemsize
            try:
                self._file.seek(self._rows * self._size)
                self._file.write(content.tobytes())
            except OSError as error:
                raise write_error(error)(
                    f"Vectors cannot be kept until they are written ({error}): {self._rows + len(ids):,} of "
                    f"{self._size:,} bytes each. Make room on the disk and run again."
                ) from error
            self._places.update((name, self._rows + row) for row, names in enumerate(ids) for name in names)
            self._rows += len(ids)

    def __getitem__(self, key: str) -> FloatArray:
        with self._lock:
            self._file.seek(self._places[key] * self._size)
            return np.frombuffer(self._file.read(self._size), dtype=np.float32)

    def __contains__(self, key: object) -> bool:
        return key in self._places
