"""The units of one recipe as arrays (its pool): derived from the store, kept in files, followed through changes."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sire_core.arrays.grouping import ranges
from sire_core.errors import StorageError
from sire_core.filters import comparable
from sire_core.filters.conditions import filtered_title
from sire_core.storage.array_file import ARRAYS_FILE, Joined, map_arrays, save_arrays
from sire_core.storage.checksums import stored_values
from sire_core.storage.derived import DerivedFiles, derived_values, inflate
from sire_core.storage.store import CORPUS, Store
from sire_core.types import BUILT_IN_KINDS, Chunk, Unit, UnitKind

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.documents.stored_corpus import CorpusUpdate, StoredCorpus, StoredDocument
    from sire_core.protocols import BoolArray, FloatArray, HashArray, IdArray, IntArray
    from sire_core.storage.folder import Folder
    from sire_core.storage.index_tables import Commit
    from sire_core.storage.manifest import BuiltRecipe


def shared_metadata(sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return keys and values that all documents have in common."""
    first, *others = sources
    return {
        key: value
        for key, value in first.items()
        if all(key in other and comparable(other[key]) == comparable(value) for other in others)
    }


def differing_metadata(sources: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return the values that differ by key, each once, in order; a missing key counts as None."""
    shared = shared_metadata(sources)
    by_key: dict[str, dict[Hashable, Any]] = {key: {} for source in sources for key in source if key not in shared}
    for key, values in by_key.items():
        for source in sources:
            values.setdefault(comparable(source.get(key)), source.get(key))
    return {key: tuple(values.values()) for key, values in by_key.items()}


T = TypeVar("T")

MOST_LETTERS = 24  # Letters of a unit's id, as `digest` makes it
ID_TYPE = f"S{MOST_LETTERS}"
MOST_LEVELS = 255
_TEXT_COLUMNS = ("documents", "titles", "metadata", "kind_names")


@dataclass(frozen=True, slots=True)
class CorpusColumns:
    """Columns of a pool about the whole corpus. An `Incremental` of it."""

    chunk_ids: IdArray  # Ids of the chunks, in corpus order
    chunk_documents: IntArray  # Document numbers of the chunks
    chunk_metadata: IntArray  # Numbers of their metadata
    documents: bytes  # Ids of the documents, in corpus order, as JSON
    titles: bytes  # Titles of the documents, likewise
    count: int  # How many documents
    metadata: Mapping[str, int]  # The different metadata of chunks as JSON, with their numbers

    @classmethod
    def of(cls, corpus: StoredCorpus) -> Self:
        """Make the columns of all chunks and documents."""
        return cls.made(corpus.chunks, list(corpus.documents.values()))

    @classmethod
    def made(cls, chunks: Sequence[Chunk], documents: Sequence[StoredDocument]) -> Self:
        """Make the columns of chunks and documents, both in corpus order."""
        empty = np.empty(0, dtype=np.int64)
        nothing = cls(np.empty(0, dtype=ID_TYPE), empty, empty, b"[]", b"[]", 0, {})
        return nothing._followed_by(chunks, documents)

    def updated(self, update: CorpusUpdate) -> Self:
        """Return the columns after a change: extended if it only appends, else made again."""
        change, before, after = update.change, update.before, update.after
        documents = change.put_documents
        last = next(reversed(before.documents.values())).sequence if before.documents else -1  # type: ignore[call-overload] # a dict's
        ascending = all(
            one < other
            for one, other in zip(
                [last, *(d.sequence for d in documents)], (d.sequence for d in documents), strict=False
            )
        )
        if update.old_chunks or change.drop_documents or not ascending:
            return self.of(after)
        return self._followed_by(update.new_chunks, documents)

    def columns(self) -> dict[str, Any]:
        """Return the columns by the names of `Pool`."""
        return {
            "chunk_ids": self.chunk_ids,
            "chunk_documents": self.chunk_documents,
            "chunk_metadata": self.chunk_metadata,
            "documents": self.documents,
            "titles": self.titles,
            "metadata": f"[{','.join(self.metadata)}]".encode(),
        }

    def _followed_by(self, chunks: Sequence[Chunk], documents: Sequence[StoredDocument]) -> Self:
        """Return these columns with more documents and their chunks at the end."""
        number = {document.id: self.count + i for i, document in enumerate(documents)}
        numbers, metadata = dict(self.metadata), list[int]()
        last, metadata_number = None, 0
        for chunk in chunks:
            if chunk.metadata is not last:  # the chunks of a document mostly share one object
                last = chunk.metadata
                metadata_number = numbers.setdefault(
                    json.dumps(dict(last), sort_keys=True) if last else "{}", len(numbers)
                )
            metadata.append(metadata_number)
        owners = [number[chunk.doc_id] for chunk in chunks]
        return type(self)(
            np.concatenate([self.chunk_ids, np.array([chunk.id for chunk in chunks], dtype=ID_TYPE)]),
            np.concatenate([self.chunk_documents, np.array(owners, dtype=np.int64)]),
            np.concatenate([self.chunk_metadata, np.array(metadata, dtype=np.int64)]),
            _longer(self.documents, [document.id for document in documents]),
            _longer(self.titles, [document.title for document in documents]),
            self.count + len(documents),
            numbers,
        )


def _longer(listed: bytes, names: Iterable[str]) -> bytes:
    """Return a JSON list with more texts at its end."""
    new = json.dumps(list(names)).encode()
    return new if listed == b"[]" else listed if new == b"[]" else listed[:-1] + b", " + new[1:]


@dataclass(frozen=True, slots=True)
class Pool:
    """Arrays over the units of a recipe, chunks first, then each organizer's units by level and corpus order."""

    generation: int  # Generation of the index it was made from
    matrix: FloatArray  # Unit-length vectors, float32 `[n, d]`
    ids: IdArray  # Unit ids, `[n]`
    kinds: NDArray[np.uint8]  # Codes into `kind_names`, `[n]`
    levels: NDArray[np.uint8]  # `[n]`
    ranks: NDArray[np.uint8]  # 0 for units of the corpus, then the number of the organizer in the recipe's order, `[n]`
    indptr: IntArray  # CSR of provenance, `[n + 1]`
    indices: IntArray  # Chunk numbers; the sources of unit i are `indices[indptr[i]:indptr[i + 1]]`
    chunk_ids: IdArray  # Ids of the chunks by number
    chunk_documents: IntArray  # Document numbers of the chunks
    chunk_metadata: IntArray  # Numbers into `metadata` of the chunks
    offsets: IntArray  # Bytes of unit i in `rows` are `offsets[i]:offsets[i + 1]`
    rows: NDArray[np.uint8]  # Units as compressed JSON, one after the other
    documents: bytes  # Document ids by number, as JSON bytes; parsed when they are needed
    titles: bytes  # Titles of the documents by number, as JSON bytes; empty where there is none
    metadata: bytes  # The different metadata that chunks have, as JSON bytes; parsed when they are needed
    kind_names: tuple[str, ...] = BUILT_IN_KINDS  # Names of kinds by code: those that are built in, then the user's own
    files: DerivedFiles | None = None  # The files that the arrays are mapped from; None in memory
    stamp: tuple[tuple[int, int, int], ...] = ()  # Of the files, when they were verified
    shown_id: Callable[[str], str] = str  # Makes the id of a document that is shown of that which is stored

    def unit(self, position: int, order: Sequence[int] | None = None) -> tuple[Unit, tuple[str, ...]]:
        """Return a unit and the ids of its documents, in order of its chunks."""
        with derived_values("a unit"):
            return self._unit(position, order)

    def _unit(self, position: int, order: Sequence[int] | None) -> tuple[Unit, tuple[str, ...]]:
        row = json.loads(inflate(self.rows[self.offsets[position] : self.offsets[position + 1]].data))
        chunk_ids, documents, source_ids = row["chunk_ids"], row["documents"], row["source_ids"]
        _require_texts(row["id"], row["text"], row["title"], *chunk_ids, *row["entity_keys"], *documents, *source_ids)
        if order is not None:
            chunk_ids = [chunk_ids[i] for i in order]
            source_ids = [source_ids[i] for i in order] if source_ids else []
            numbers = self.chunk_documents[self.indices[self.indptr[position] : self.indptr[position + 1]]].tolist()
            first: dict[int, int] = {}  # stored documents are in order of their first chunk
            for number in numbers:
                first.setdefault(number, len(first))
            documents = [documents[first[number]] for number in dict.fromkeys([numbers[i] for i in order])]
        return Unit(
            row["id"],
            UnitKind.define(row["kind"]),
            row["text"],
            tuple(chunk_ids),
            row["level"],
            row["tree"],
            tuple(row["entity_keys"]),
            row["title"],
            row["metadata"],
            tuple(source_ids),
            row.get("layout", ""),
        ), tuple(map(self.shown_id, documents))

    def document_ids(self) -> list[str]:
        """Return ids of all documents by number, including those without text."""
        stored_ids = self._listed("documents", self.chunk_documents, str)
        scoped = {name: shown for name in stored_ids if (shown := self.shown_id(name)) != name}
        hidden = set(scoped.values())  # whose ids others have here
        return [scoped.get(name, f"{name} #hidden" if name in hidden else name) for name in stored_ids]

    def _listed(self, name: str, numbers: IntArray, form: type[T]) -> list[T]:
        """Return a list of JSON values that chunks have the numbers of."""
        with derived_values(name):
            values = json.loads(getattr(self, name))
            if not isinstance(values, list) or not set(map(type, values)) <= {form}:
                raise TypeError(f"it is no list of {form.__name__}")
            if len(numbers) and numbers.max() >= len(values):
                raise IndexError("it is too short")
            return values

    def source_ids(self) -> list[str]:
        """Return the user's own ids of passages by chunk number; empty where there is none."""
        source_ids = [""] * len(self.chunk_ids)
        for numbers, unit in self._passages():
            for number, name in zip(numbers, unit.source_ids, strict=False):  # none, or one each
                source_ids[number] = name
        return source_ids

    def filtered_titles(self) -> list[str]:
        """Return the titles that filters compare, by chunk number; empty where there is none."""
        titles = self._listed("titles", self.chunk_documents, str)
        filtered = [titles[number] for number in self.chunk_documents.tolist()]
        if not all(filtered):  # reading all rows is slow, and seldom needed
            for numbers, unit in self._passages():
                for number in numbers:
                    filtered[number] = filtered_title(filtered[number], unit.title)
        return filtered

    def _passages(self) -> Iterator[tuple[list[int], Unit]]:
        """Yield the units that are passages, with their chunk numbers."""
        for position in np.flatnonzero(self.kinds == self.kind_names.index(UnitKind.CHUNK.value)).tolist():
            yield self.indices[self.indptr[position] : self.indptr[position + 1]].tolist(), self.unit(position)[0]

    def distinct_metadata(self) -> list[Mapping[str, Any]]:
        """Return the distinct metadata of chunks; `chunk_metadata` has the number of each chunk's."""
        return self._listed("metadata", self.chunk_metadata, dict)

    @classmethod
    def load(cls, files: DerivedFiles, generation: int, *, written: bool = False) -> Pool:
        """Map the files of a pool."""
        stamp = files.stamp()
        if not written:
            files.verify()
        directory = files.directory
        with derived_values(str(directory)):
            parts: dict[str, Any] = {**map_arrays(directory / ARRAYS_FILE)}
            parts |= {name: parts[name].tobytes() for name in _TEXT_COLUMNS}
            parts["kind_names"] = tuple(json.loads(parts["kind_names"]))
            pool = cls(generation=generation, files=files, stamp=stamp, **parts)
            if not written:
                pool.require_sound()
        return pool

    def require_sound(self) -> None:
        """Raise `StorageError` if arrays do not fit each other: files that were forged have the right checksums."""
        count, chunks = len(self.ids), len(self.chunk_ids)
        longs = (self.indptr, self.indices, self.offsets, self.chunk_documents, self.chunk_metadata)
        short = (self.kinds, self.levels, self.ranks, self.rows)
        right = all(array.dtype == np.int64 and array.ndim == 1 for array in longs)
        right = right and all(array.dtype == np.uint8 and array.ndim == 1 for array in short)
        right = right and self.matrix.dtype == np.float32 and self.matrix.ndim == 2 and len(self.matrix) == count
        right = right and all(
            array.dtype == np.dtype(ID_TYPE) and array.ndim == 1 and _is_ascii(array)
            for array in (self.ids, self.chunk_ids)
        )
        right = right and {len(self.kinds), len(self.levels), len(self.ranks)} == {count}
        right = right and {len(self.chunk_documents), len(self.chunk_metadata)} == {chunks}
        right = right and _are_bounds(self.indptr, count, len(self.indices))
        right = right and _are_bounds(self.offsets, count, len(self.rows))
        right = right and _is_within(self.indices, chunks) and bool((np.diff(self.indptr) > 0).all())
        right = right and _is_within(self.kinds, len(self.kind_names))
        right = right and min(self.chunk_documents.min(initial=0), self.chunk_metadata.min(initial=0)) >= 0
        if not right or self.kind_names[: len(BUILT_IN_KINDS)] != BUILT_IN_KINDS:
            raise StorageError("The arrays of the pool do not fit each other.")

    @classmethod
    def in_memory(cls, columns: Mapping[str, Any], generation: int) -> Pool:
        """Make a pool of columns."""
        whole: dict[str, Any] = {
            name: np.concatenate(c.pieces) if isinstance(c, Joined) else c for name, c in columns.items()
        }
        return cls(generation=generation, **whole)

    @classmethod
    def save(cls, files: DerivedFiles, columns: Mapping[str, Any], generation: int) -> Pool:
        """Write columns to files and return the pool mapped from them."""
        texts = {
            **{name: columns[name] for name in _TEXT_COLUMNS},
            "kind_names": json.dumps(columns["kind_names"]).encode(),
        }
        arrays = {**columns, **{name: np.frombuffer(text, np.uint8) for name, text in texts.items()}}
        files.write(lambda directory: save_arrays(directory / ARRAYS_FILE, arrays))
        return cls.load(files, generation, written=True)

    def intact(self, *, may_be_gone: bool = False) -> bool:
        """True if the files are unchanged since they were verified; true in memory. See `DerivedFiles.intact`."""
        return self.files is None or self.files.intact(self.stamp, may_be_gone=may_be_gone)


def _is_ascii(ids: IdArray) -> bool:
    return not ids.size or bool(np.ascontiguousarray(ids).view(np.uint8).max() < 128)


def _is_within(numbers: NDArray[Any], size: int) -> bool:
    return not numbers.size or bool(numbers.min() >= 0 and numbers.max() < size)


def _are_bounds(bounds: IntArray, count: int, size: int) -> bool:
    """True if bounds divide so many items into so many parts."""
    right = len(bounds) == count + 1 and bounds[0] == 0 and (np.diff(bounds) >= 0).all()
    return bool(right and bounds[-1] == size)


def _require_texts(*values: object) -> None:
    if not set(map(type, values)) <= {str}:
        raise TypeError("it has something else where a text belongs")


def collect(store: Store, owners: Sequence[str]) -> dict[str, Any]:
    """Return the columns of the pool of some owners, by the names of `Pool`."""
    store.require_complete(owners)
    chunks = store.chunks(texts=False)
    number = {chunk.id: i for i, chunk in enumerate(chunks)}
    doc_of = {chunk.id: chunk.doc_id for chunk in chunks}
    codes = {name: code for code, name in enumerate(BUILT_IN_KINDS)}
    entries: list[tuple[tuple[int, int, int, str], int, list[int], bytes]] = []
    for rank, owner in enumerate(owners):
        for unit in store.each_unit(owner):
            sources = [number[chunk] for chunk in unit.chunk_ids]
            key = (rank, unit.level, min(sources), unit.id)
            entries.append((key, codes.setdefault(unit.kind.value, len(codes)), sources, pool_row(unit, doc_of)))
    entries.sort(key=itemgetter(0))
    position = {key[3]: i for i, (key, *_) in enumerate(entries)}
    matrix = np.empty((len(entries), store.dimension() if entries else 0), dtype=np.float32)
    for unit_id, vector in store.each_vector(owners):
        matrix[position[unit_id]] = vector
    return {
        "matrix": matrix,
        "ids": np.array([key[3] for key, *_ in entries], dtype=ID_TYPE),
        "kinds": np.array([kind for _, kind, _, _ in entries], dtype=np.uint8),
        "levels": np.array([key[1] for key, *_ in entries], dtype=np.uint8),
        "ranks": np.array([key[0] for key, *_ in entries], dtype=np.uint8),
        "indptr": np.cumsum([0, *(len(sources) for _, _, sources, _ in entries)], dtype=np.int64),
        "indices": np.fromiter((source for _, _, sources, _ in entries for source in sources), dtype=np.int64),
        "offsets": np.cumsum([0, *(len(row) for *_, row in entries)], dtype=np.int64),
        "rows": np.frombuffer(b"".join(row for *_, row in entries), dtype=np.uint8),
        "kind_names": tuple(codes),
        **CorpusColumns.made(chunks, list(store.documents().values())).columns(),
    }


def pool_row(unit: Unit, doc_of: Mapping[str, str]) -> bytes:
    """Return a unit as compressed JSON for `Pool.rows`."""
    row = {
        "id": unit.id,
        "kind": unit.kind.value,
        "text": unit.text,
        "level": unit.level,
        "tree": unit.tree,
        "chunk_ids": unit.chunk_ids,
        "entity_keys": unit.entity_keys,
        "title": unit.title,
        "metadata": unit.metadata,
        "source_ids": unit.source_ids,
        "layout": unit.layout,
        "documents": list(dict.fromkeys(doc_of[chunk] for chunk in unit.chunk_ids)),
    }
    return zlib.compress(_encode(row).encode(), 1)


_encode = json.JSONEncoder(separators=(",", ":")).encode  # `json.dumps` would make one every time


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A commit, as far as pools depend on it."""

    generation: int  # Of the index after it
    commit: Commit  # What was committed
    update: CorpusUpdate  # Documents and chunks before and after it


@dataclass(frozen=True, slots=True)
class _New:
    """Units that a commit adds to a pool, with their sort keys."""

    units: list[Unit]
    ranks: list[int]


def updated(pool: Pool, change: PoolChange, owners: Sequence[str]) -> dict[str, Any] | None:
    """Return the columns of a pool after a commit, as `collect` would derive them from the store.

    Unchanged rows are not copied in memory.
    """
    commit = change.commit
    new, touched = _New([], []), set[str]()
    for rank, owner in enumerate((CORPUS, *owners)):
        if owner in commit.deltas:
            delta = commit.deltas[owner]
            touched.update(delta.drop_units, (unit.id for unit in delta.put_units))
            units = {unit.id: unit for unit in delta.put_units}
            new.units.extend(units.values())
            new.ranks.extend([rank] * len(units))
    unchanged = np.flatnonzero(~_among(pool.ids, touched)).astype(np.int64)
    if commit.revectors or not len(unchanged):
        return None
    number = {chunk.id: i for i, chunk in enumerate(change.update.after.chunks)}
    renumber = _renumbered(pool, commit, number)
    lengths = np.diff(pool.indptr)[unchanged]
    indices = renumber[pool.indices[ranges(pool.indptr[:-1][unchanged], lengths)]]
    dimension = pool.matrix.shape[1]
    if (indices < 0).any() or any(len(commit.vectors[unit.id]) != dimension for unit in new.units):
        return None
    return _merged(pool, unchanged, lengths, indices, new, number, change)


def _renumbered(pool: Pool, commit: Commit, number: Mapping[str, int]) -> IntArray:
    """Return the new number of every chunk of a pool; -1 for removed ones."""
    put = [chunk.id for chunk in commit.put_chunks]
    staying = ~_among(pool.chunk_ids, {*put, *commit.drop_chunks})
    others = np.ones(len(number), dtype=bool)
    others[[number[chunk] for chunk in put]] = False
    numbers = np.full(len(pool.chunk_ids), -1, dtype=np.int64)
    numbers[staying] = np.flatnonzero(others)  # these keep their order
    for position in np.flatnonzero(~staying).tolist():
        numbers[position] = number.get(pool.chunk_ids[position].decode(), -1)
    return numbers


def _among(ids: IdArray, wanted: set[str]) -> BoolArray:
    raw = {name.encode() for name in wanted}
    beginnings = np.array(sorted(raw), dtype=ids.dtype)
    is_wanted = np.isin(_beginnings(ids), _beginnings(beginnings))
    near = np.flatnonzero(is_wanted)
    is_wanted[near] = [name in raw for name in ids[near].tolist()]
    return is_wanted


def _beginnings(ids: IdArray) -> HashArray:
    """Return the first eight bytes of ids as numbers."""
    return np.ascontiguousarray(np.ascontiguousarray(ids).view(np.uint64).reshape(-1, MOST_LETTERS // 8)[:, 0])


def _merged(
    pool: Pool,
    unchanged: IntArray,
    lengths: IntArray,
    indices: IntArray,
    new: _New,
    number: Mapping[str, int],
    change: PoolChange,
) -> dict[str, Any]:
    numbers = [[number[chunk] for chunk in unit.chunk_ids] for unit in new.units]
    firsts = np.minimum.reduceat(indices, np.cumsum(lengths) - lengths)
    codes = {name: code for code, name in enumerate(pool.kind_names)}
    kinds = [codes.setdefault(unit.kind.value, len(codes)) for unit in new.units]
    columns = {
        "ids": np.concatenate([pool.ids[unchanged], np.array([unit.id for unit in new.units], dtype=ID_TYPE)]),
        "kinds": np.concatenate([pool.kinds[unchanged], _bytes(kinds)]),
        "levels": np.concatenate([pool.levels[unchanged], _bytes([unit.level for unit in new.units])]),
        "ranks": np.concatenate([pool.ranks[unchanged], _bytes(new.ranks)]),
    }
    firsts = np.concatenate([firsts, np.array([min(sources) for sources in numbers], dtype=np.int64)])
    order = np.lexsort((columns["ids"], firsts, columns["levels"], columns["ranks"]))
    arrays: dict[str, Any] = {name: column[order] for name, column in columns.items()}
    runs = _runs(np.concatenate([unchanged, np.full(len(new.units), -1)])[order], order - len(unchanged))
    by_id = change.update.after.chunk_by_id
    doc_of = {chunk: by_id[chunk].doc_id for unit in new.units for chunk in unit.chunk_ids}
    rows = [np.frombuffer(pool_row(unit, doc_of), dtype=np.uint8) for unit in new.units]
    vectors = [np.asarray(change.commit.vectors[unit.id], dtype=np.float32)[None] for unit in new.units]
    sizes = np.concatenate([np.diff(pool.offsets)[unchanged], np.array([len(row) for row in rows], dtype=np.int64)])[
        order
    ]
    counts = np.concatenate([lengths, np.array([len(sources) for sources in numbers], dtype=np.int64)])
    starts = np.cumsum(counts) - counts
    flat = np.concatenate([indices, np.array([n for sources in numbers for n in sources], dtype=np.int64)])
    return arrays | {
        "matrix": Joined([pool.matrix[start:stop] if stop else vectors[start] for start, stop in runs]),
        "rows": Joined([_slice(pool, start, stop) if stop else rows[start] for start, stop in runs]),
        "indptr": np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int64),
        "indices": flat[ranges(starts[order], counts[order])],
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "kind_names": tuple(codes),
        **change.update.following(CorpusColumns)[1].columns(),
    }


def _runs(sources: IntArray, places: IntArray) -> list[tuple[int, int]]:
    """Return the rows of the new pool as slices (start, stop) of the old one, and as (number, 0) for new rows."""
    # A new row is one of its own, also where an old one with the number behind -1 follows.
    new = sources < 0
    breaks = np.flatnonzero((np.diff(sources, prepend=-2) != 1) | new | np.concatenate([[False], new[:-1]]))
    ends = [*breaks[1:].tolist(), len(sources)]
    return [
        (int(places[start]), 0) if sources[start] < 0 else (int(sources[start]), int(sources[end - 1]) + 1)
        for start, end in zip(breaks.tolist(), ends, strict=True)
    ]


def _slice(pool: Pool, start: int, stop: int) -> NDArray[np.uint8]:
    return pool.rows[int(pool.offsets[start]) : int(pool.offsets[stop])]


def _bytes(values: Sequence[int]) -> NDArray[np.uint8]:
    return np.array(values, dtype=np.uint8)


_PUBLISHING = 2.0  # Seconds after a commit in which its writer derives the pool, so that nobody else does


class Pools:
    """Opens pools of a folder or of memory; derives them from the store, or from the pool of the generation before."""

    def __init__(self, folder: Folder | None) -> None:
        self._folder = folder
        self._change: PoolChange | None = None
        self._open: dict[str, tuple[DerivedFiles | None, Pool]] = {}

    def expected(self, generation: int) -> bool:
        """True if a generation was committed just now, and its writer is deriving the pool."""
        if self._folder is None or self._published() >= generation:
            return False
        file = self._folder.index_file
        written = 0.0
        for path in (file, file.with_name(f"{file.name}-wal")):
            with suppress(OSError):
                status = path.stat()
                written = max(written, status.st_mtime if status.st_size else 0.0)  # readers make an empty log
        return abs(time.time() - written) < _PUBLISHING

    def get(self, store: Store, built: BuiltRecipe, generation: int, *, lasting: bool = False) -> Pool:
        """Return the recipe's pool: mapped from its files, or derived if they are missing or damaged."""
        commits = store.commits()
        files = self._files(built, generation, commits[0])
        files = None if files is None else replace(files, lasting=lasting)
        at_hand = self._at_hand(built, generation, files) if files else None
        if at_hand is not None:
            if lasting and files is not None:
                files.last()  # a reader may have written them without syncing
            return at_hand
        before = self._files(built, generation - 1, commits[1])
        columns = self._followed(built, generation, before)
        if columns is None:
            with stored_values("The pool of passages"):
                columns = collect(store, [CORPUS, *built.owners])
        pool: Pool | None = None
        if files is not None and self._published() <= generation:  # files of older generations are deleted already
            with suppress(OSError, StorageError):  # else it serves from memory
                files.directory.parent.mkdir(exist_ok=True)
                pool = Pool.save(files, columns, generation)
        if pool is None:
            pool = Pool.in_memory(columns, generation)
        recent = {name: entry for name, entry in self._open.items() if entry[1].generation >= generation - 1}
        self._open = {**recent, built.pool: (files, pool)}
        return pool

    def _published(self) -> int:
        """Return the generation in the manifest file."""
        return 0 if self._folder is None else int(self._folder.read_manifest().get("generation", 0))

    def committed(self, change: PoolChange | None) -> None:
        """Set the commit that pools of the next generation are derived from; None forgets it."""
        self._change = change

    def _files(self, built: BuiltRecipe, generation: int, commit: str) -> DerivedFiles | None:
        """Return the files of a pool; None in memory."""
        if self._folder is None:
            return None
        directory = self._folder.pool(built.pool, generation)
        # Readers count on a code for every kind that is built in: files without one are made again from the store, and
        # so are those of other rules.
        return DerivedFiles(directory, f"{directory.name} of {commit}, rules 5, {' '.join(BUILT_IN_KINDS)}")

    def _at_hand(
        self, built: BuiltRecipe, generation: int, files: DerivedFiles | None, *, verified: bool = False
    ) -> Pool | None:
        """Return the pool of a generation if it exists, as its files are now; `verified` reads all of them."""
        entry = self._open.get(built.pool)
        if entry is not None and entry[0] == files and entry[1].generation == generation and entry[1].intact():
            with suppress(StorageError):  # damaged files are derived again
                if verified and entry[1].files is not None:
                    entry[1].files.verify()
                return entry[1]
        if files is None or not files.exists():
            return None
        with suppress(StorageError):  # as above
            pool = Pool.load(files, generation)
            self._open[built.pool] = (files, pool)
            return pool
        return None

    def _followed(self, built: BuiltRecipe, generation: int, files: DerivedFiles | None) -> dict[str, Any] | None:
        """Return the columns of the generation before with the last commit applied, if both are available."""
        if self._change is None or self._change.generation != generation:
            return None
        before = self._at_hand(built, generation - 1, files, verified=True)  # what is copied gets new checksums
        return None if before is None else updated(before, self._change, built.owners)
