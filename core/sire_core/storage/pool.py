"""The units of one recipe as arrays (its pool): derived from the store, memory-mapped, rebuilt when stale."""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sire_core.errors import StorageError
from sire_core.filters import comparable
from sire_core.filters.conditions import filtered_title
from sire_core.storage.checksums import stored_values
from sire_core.storage.derived import DerivedFiles
from sire_core.storage.store import CORPUS, Store
from sire_core.types import BUILT_IN_KINDS, Unit, UnitKind

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.corpus.stored_corpus import CorpusUpdate, StoredCorpus, StoredDocument
    from sire_core.types import Chunk


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


MOST_LETTERS = 24
"""Of a unit's id, as `digest` makes them."""
ID_TYPE = f"S{MOST_LETTERS}"
MOST_LEVELS = 255
MATRIX, ROWS = "matrix.npy", "rows.bin"
"""Names of the large files of a pool."""
_ARRAYS = (
    *("ids", "kinds", "levels", "ranks", "indptr", "indices", "offsets"),
    *("chunk_ids", "chunk_documents", "chunk_metadata"),
)
_TEXTS = ("documents", "titles", "metadata")


@dataclass(frozen=True, slots=True)
class CorpusColumns:
    """Columns of a pool about the whole corpus. An `Incremental` of it."""

    chunk_ids: NDArray[np.bytes_]  # Ids of the chunks, in corpus order
    chunk_documents: NDArray[np.int64]  # Document numbers of the chunks
    chunk_metadata: NDArray[np.int64]  # Numbers of their metadata
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


def _longer(known: bytes, names: Iterable[str]) -> bytes:
    """Return a JSON list with more texts at its end."""
    new = json.dumps(list(names)).encode()
    return new if known == b"[]" else known if new == b"[]" else known[:-1] + b", " + new[1:]


@dataclass(frozen=True, slots=True)
class Pool:
    """Arrays over the units of a recipe, chunks first, then each organizer's units by level and corpus order."""

    generation: int  # Generation of the index it was made from
    matrix: NDArray[np.float32]  # Unit-length vectors, float32 `[n, d]`
    ids: NDArray[np.bytes_]  # Unit ids, `[n]`
    kinds: NDArray[np.uint8]  # Codes into `kind_names`, `[n]`
    levels: NDArray[np.uint8]  # `[n]`
    ranks: NDArray[np.uint8]  # 0 for units of the corpus, then the number of the organizer in the recipe's order, `[n]`
    indptr: NDArray[np.int64]  # CSR of provenance, `[n + 1]`
    indices: NDArray[np.int64]  # Chunk numbers; the sources of unit i are `indices[indptr[i]:indptr[i + 1]]`
    chunk_ids: NDArray[np.bytes_]  # Ids of the chunks by number
    chunk_documents: NDArray[np.int64]  # Document numbers of the chunks
    chunk_metadata: NDArray[np.int64]  # Numbers into `metadata` of the chunks
    offsets: NDArray[np.int64]  # Bytes of unit i in `rows` are `offsets[i]:offsets[i + 1]`
    rows: NDArray[np.uint8]  # Units as compressed JSON, one after the other
    documents: bytes  # Document ids by number, as JSON bytes; parsed when they are needed
    titles: bytes  # Titles of the documents by number, as JSON bytes; empty where there is none
    metadata: bytes  # The different metadata that chunks have, as JSON bytes; parsed when they are needed
    kind_names: tuple[str, ...] = BUILT_IN_KINDS  # Names of kinds by code: those that are built in, then the user's own
    files: DerivedFiles | None = None  # The files that the arrays are mapped from; None in memory
    stamp: tuple[tuple[int, int, int], ...] = ()  # Of the files, when they were verified

    def unit(self, position: int, order: Sequence[int] | None = None) -> tuple[Unit, tuple[str, ...]]:
        """Return a unit and the ids of its documents, in order of its chunks."""
        row = json.loads(zlib.decompress(self.rows[self.offsets[position] : self.offsets[position + 1]].data))
        chunk_ids, documents, source_ids = row["chunk_ids"], row["documents"], row["source_ids"]
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
        ), tuple(documents)

    def document_ids(self) -> list[str]:
        """Return ids of all documents by number, including those without text."""
        return list(json.loads(self.documents))

    def source_ids(self) -> list[str]:
        """Return the user's own ids of passages by chunk number; empty where there is none."""
        own = [""] * len(self.chunk_ids)
        for numbers, unit in self._passages():
            for number, name in zip(numbers, unit.source_ids, strict=False):  # none, or one each
                own[number] = name
        return own

    def filtered_titles(self) -> list[str]:
        """Return the titles that filters compare, by chunk number; empty where there is none."""
        titles: list[str] = json.loads(self.titles)
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
        return list(json.loads(self.metadata))

    @classmethod
    def load(cls, files: DerivedFiles, generation: int, *, written: bool = False) -> Pool:
        """Map the files of a pool."""
        stamp = files.stamp()
        if not written:
            files.verify()
        directory = files.directory
        try:
            parts: dict[str, Any] = {name: np.asarray(np.load(directory / f"{name}.npy", "r")) for name in _ARRAYS}
            parts["matrix"] = np.asarray(np.load(directory / MATRIX, "r"))
            parts["rows"] = np.asarray(np.memmap(directory / ROWS, dtype=np.uint8, mode="r"))
            parts |= {name: (directory / f"{name}.json").read_bytes() for name in _TEXTS}
            parts["kind_names"] = tuple(json.loads((directory / "kinds.json").read_bytes()))
        except (OSError, ValueError, EOFError) as error:  # deleted since
            raise StorageError(f"The derived files in {directory} cannot be read ({error}).") from error
        return cls(generation=generation, files=files, stamp=stamp, **parts)

    @classmethod
    def make(cls, store: Store, owners: Sequence[str], generation: int) -> Pool:
        """Derive a pool from the store."""
        with stored_values("The pool of passages"):
            return cls(generation=generation, **_collect(store, [CORPUS, *owners]))

    def save(self, files: DerivedFiles) -> Pool:
        """Write the pool to files and return it mapped from them."""
        files.write(self._write_arrays)
        return self.load(files, self.generation, written=True)

    def _write_arrays(self, directory: Path) -> None:
        save_columns(directory, {field.name: getattr(self, field.name) for field in fields(self)})
        np.save(directory / MATRIX, self.matrix)
        (directory / ROWS).write_bytes(self.rows.data if len(self.rows) else b" ")

    def intact(self, *, may_be_gone: bool = False) -> bool:
        """Whether the files are unchanged since they were verified; true in memory. See `DerivedFiles.intact`."""
        return self.files is None or self.files.intact(self.stamp, may_be_gone=may_be_gone)


def save_columns(directory: Path, columns: Mapping[str, Any]) -> None:
    """Write all arrays of a pool except its matrix and rows."""
    for name in _ARRAYS:
        np.save(directory / f"{name}.npy", columns[name])
    for name in _TEXTS:
        (directory / f"{name}.json").write_bytes(columns[name])
    (directory / "kinds.json").write_text(json.dumps(columns["kind_names"]), encoding="utf-8")


def _collect(store: Store, owners: Sequence[str]) -> dict[str, Any]:
    store.require_complete(owners)
    chunks = store.chunks(texts=False)
    number = {chunk.id: i for i, chunk in enumerate(chunks)}
    doc_of = {chunk.id: chunk.doc_id for chunk in chunks}
    codes = {name: code for code, name in enumerate(BUILT_IN_KINDS)}
    entries: list[tuple[tuple[int, int, int, str], int, NDArray[np.int64], bytes]] = []
    for rank, owner in enumerate(owners):
        for unit in store.each_unit(owner):
            sources = np.array([number[chunk] for chunk in unit.chunk_ids], dtype=np.int64)
            key = (rank, unit.level, int(sources.min()), unit.id)
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
        "indices": np.concatenate([np.empty(0, np.int64), *(sources for _, _, sources, _ in entries)]),
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
        "documents": list(dict.fromkeys(doc_of[chunk] for chunk in unit.chunk_ids)),
    }
    return zlib.compress(json.dumps(row, separators=(",", ":")).encode(), 1)
