"""The pool of one recipe as arrays: derived from the store, memory-mapped, rebuilt when stale."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sire_core.errors import StorageError
from sire_core.storage.store import CORPUS, Store
from sire_core.types import Unit, UnitKind

__all__ = ["KIND_NAMES", "Pool", "pool_row"]

KIND_NAMES: tuple[str, ...] = tuple(kind.value for kind in UnitKind)
_KINDS = {kind.value: kind for kind in UnitKind}
_ARRAYS = ("matrix", "ids", "kinds", "levels", "ranks", "indptr", "indices", "chunk_ids", "chunk_documents", "offsets")


@dataclass(frozen=True, slots=True)
class Pool:
    """Arrays over the units of a recipe, chunks first, then each organizer's units by level and corpus order.

    Attributes:
        generation: Generation of the index it was made from.
        matrix: Unit-length vectors, float32 `[n, d]`.
        ids: Unit ids, `[n]`.
        kinds: Codes into `KIND_NAMES`, `[n]`.
        levels: `[n]`.
        ranks: Who made a unit: 0 for the corpus, then the organizers in the recipe's order, `[n]`.
        indptr: CSR of provenance, `[n + 1]`.
        indices: Chunk numbers; unit i stands on `indices[indptr[i]:indptr[i + 1]]`.
        chunk_ids: Ids of the chunks by number.
        chunk_documents: Document numbers of the chunks.
        offsets: Bytes of unit i in `rows` are `offsets[i]:offsets[i + 1]`.
        rows: Units as JSON, one after the other.
        documents: Per document number its id and metadata, as JSON bytes; parsed by who needs it.
        directory: Where the files are; None in memory.
    """

    generation: int
    matrix: NDArray[np.float32]
    ids: NDArray[np.bytes_]
    kinds: NDArray[np.uint8]
    levels: NDArray[np.uint8]
    ranks: NDArray[np.uint8]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    chunk_ids: NDArray[np.bytes_]
    chunk_documents: NDArray[np.int64]
    offsets: NDArray[np.int64]
    rows: NDArray[np.uint8]
    documents: bytes
    directory: Path | None = None

    def unit(self, position: int, order: Sequence[int] | None = None) -> tuple[Unit, tuple[str, ...]]:
        """A unit and the ids of its documents, in order of its chunks.

        Args:
            position: Row number.
            order: Numbers of the unit's chunks in the order in which they shall be cited; None keeps the stored one.
        """
        row = json.loads(self.rows[self.offsets[position] : self.offsets[position + 1]].tobytes().decode())
        chunk_ids, documents = row["chunk_ids"], row["documents"]
        if order is not None:
            chunk_ids = [chunk_ids[i] for i in order]
            numbers = self.chunk_documents[self.indices[self.indptr[position] : self.indptr[position + 1]]].tolist()
            first: dict[int, int] = {}  # the stored documents are those of the stored chunks, each at its first chunk
            for number in numbers:
                first.setdefault(number, len(first))
            documents = [documents[first[number]] for number in dict.fromkeys([numbers[i] for i in order])]
        return Unit(
            row["id"],
            _KINDS[row["kind"]],
            row["text"],
            tuple(chunk_ids),
            row["level"],
            row["tree"],
            tuple(row["entity_keys"]),
            row["title"],
            row["metadata"],
        ), tuple(documents)

    def document_metadata(self) -> list[tuple[str, Mapping[str, Any]]]:
        """(id, metadata) by document number."""
        return [(doc, metadata) for doc, metadata in json.loads(self.documents)]

    @classmethod
    def load(cls, directory: Path, generation: int) -> Pool:
        """Map the files of a pool that `make` wrote.

        Raises:
            StorageError: A file is missing or damaged; the caller rebuilds.
        """
        try:
            arrays = {name: np.load(directory / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
            rows = np.memmap(directory / "rows.bin", dtype=np.uint8, mode="r")
            documents = (directory / "documents.json").read_bytes()
        except (OSError, ValueError, EOFError) as error:
            raise StorageError(
                f"The derived files in {directory} cannot be read ({error}); they will be rebuilt."
            ) from error
        plain = {name: np.asarray(array) for name, array in arrays.items()}
        _check_lengths(plain, len(rows), documents, directory)
        return cls(generation=generation, rows=np.asarray(rows), documents=documents, directory=directory, **plain)

    @classmethod
    def make(cls, store: Store, owners: Sequence[str], generation: int) -> Pool:
        """Derive a pool from the store.

        Args:
            store: The committed index.
            owners: Organizer fingerprints, in the recipe's order; the corpus is put in front.
            generation: Generation of the store.
        """
        return cls(generation=generation, **_collect(store, [CORPUS, *owners]))

    def kept(self, directory: Path | None) -> Pool:
        """The same pool, written to files and mapped from them; as it is when there is no folder.

        Raises:
            StorageError: The files cannot be written.
        """
        if directory is None:
            return self
        _write(self, directory)
        return self.load(directory, self.generation)


def _check_lengths(arrays: Mapping[str, NDArray[Any]], size: int, documents: bytes, directory: Path) -> None:
    """Notice files that were cut off or come from different pools."""
    count = len(arrays["ids"])
    whole = (
        all(len(arrays[name]) == count for name in ("matrix", "kinds", "levels", "ranks"))
        and all(len(arrays[name]) == count + 1 for name in ("indptr", "offsets"))
        and int(arrays["indptr"][-1]) == len(arrays["indices"])
        and len(arrays["chunk_ids"]) == len(arrays["chunk_documents"])
        and max(1, int(arrays["offsets"][-1])) == size
        and documents.endswith(b"]")
    )
    if not whole:
        raise StorageError(f"The derived files in {directory} do not fit together; they will be rebuilt.")


def _collect(store: Store, owners: Sequence[str]) -> dict[str, Any]:
    chunks = store.chunks()
    number = {chunk.id: i for i, chunk in enumerate(chunks)}
    documents = store.documents()
    document_number = {doc: i for i, doc in enumerate(documents)}
    doc_of = {chunk.id: chunk.doc_id for chunk in chunks}
    found: list[tuple[tuple[int, int, int, str], Unit, NDArray[np.float32]]] = []
    for rank, owner in enumerate(owners):
        for unit, vector in store.units_with_vectors([owner]):
            first = min(number[chunk] for chunk in unit.chunk_ids)
            found.append(((rank, unit.level, first, unit.id), unit, vector))
    found.sort(key=lambda item: item[0])
    units = [unit for _, unit, _ in found]
    rows = [pool_row(unit, doc_of) for unit in units]
    dimension = len(found[0][2]) if found else 0
    matrix = np.empty((len(found), dimension), dtype=np.float32)
    for i, (_, _, vector) in enumerate(found):
        matrix[i] = vector
    return {
        "matrix": matrix,
        "ids": np.array([unit.id for unit in units], dtype="S24"),
        "kinds": np.array([KIND_NAMES.index(unit.kind.value) for unit in units], dtype=np.uint8),
        "levels": np.array([unit.level for unit in units], dtype=np.uint8),
        "ranks": np.array([key[0] for key, _, _ in found], dtype=np.uint8),
        "indptr": np.cumsum([0, *(len(unit.chunk_ids) for unit in units)], dtype=np.int64),
        "indices": np.array([number[c] for unit in units for c in unit.chunk_ids], dtype=np.int64),
        "chunk_ids": np.array([chunk.id for chunk in chunks], dtype="S24"),
        "chunk_documents": np.array([document_number[chunk.doc_id] for chunk in chunks], dtype=np.int64),
        "offsets": np.cumsum([0, *map(len, rows)], dtype=np.int64),
        "rows": np.frombuffer(b"".join(rows), dtype=np.uint8),
        "documents": json.dumps([[doc.id, doc.metadata] for doc in documents.values()]).encode(),
    }


def pool_row(unit: Unit, doc_of: Mapping[str, str]) -> bytes:
    """A unit as it stands in `Pool.rows`.

    Args:
        unit: The unit.
        doc_of: Document ids by chunk id.
    """
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
        "documents": list(dict.fromkeys(doc_of[chunk] for chunk in unit.chunk_ids)),
    }
    return json.dumps(row, separators=(",", ":")).encode()


def _write(pool: Pool, directory: Path) -> None:
    """Write into a sibling folder and rename it, so that a pool folder is whole or absent."""
    partial = directory.with_name(f"{directory.name}.{os.getpid()}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name in _ARRAYS:
            np.save(partial / f"{name}.npy", getattr(pool, name))
        (partial / "rows.bin").write_bytes(pool.rows.data if len(pool.rows) else b" ")
        (partial / "documents.json").write_bytes(pool.documents)
        shutil.rmtree(directory, ignore_errors=True)
        partial.rename(directory)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        if directory.is_dir():  # another process derived the same generation in the meantime
            return
        raise StorageError(
            f"Cannot write {directory} ({error.strerror}). The index itself is safe; free some space or fix the "
            "permissions, and open it again."
        ) from error
