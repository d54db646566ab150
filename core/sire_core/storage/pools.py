"""`Pools`: the pools of an index, one per recipe and generation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.errors import StorageError
from sire_core.storage.derived import BLOCK, DerivedFiles
from sire_core.storage.pool import ID_TYPE, MATRIX, MOST_LETTERS, ROWS, CorpusColumns, Pool, pool_row, save_columns
from sire_core.storage.store import CORPUS
from sire_core.types import BUILT_IN_KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from sire_core.corpus.stored_corpus import CorpusUpdate
    from sire_core.storage.folder import Folder
    from sire_core.storage.manifest import BuiltRecipe
    from sire_core.storage.rows import Commit
    from sire_core.storage.store import Store
    from sire_core.types import Unit


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


@dataclass(frozen=True, slots=True)
class UpdatedPool:
    """A pool after a commit. Unchanged rows are not copied in memory: they are written from the old pool."""

    generation: int  # Of the index after the commit
    before: Pool  # The pool before
    columns: Mapping[str, Any]  # Everything but matrix and rows, by the names of `Pool`
    matrix: Sequence[NDArray[np.float32]]  # Pieces of the matrix
    rows: Sequence[NDArray[np.uint8]]  # Pieces of the rows
    staying: int  # Units at the beginning that stay where they were

    def in_memory(self) -> Pool:
        """Return the pool as arrays."""
        matrix, rows = np.concatenate(self.matrix), np.concatenate(self.rows)
        return Pool(generation=self.generation, matrix=matrix, rows=rows, **self.columns)

    def save(self, files: DerivedFiles) -> Pool:
        """Write the pool to files and return it mapped from them."""
        known = self._known()

        def save(directory: Path) -> Mapping[str, Mapping[int, int]]:
            save_columns(directory, self.columns)
            shape = (sum(map(len, self.matrix)), self.before.matrix.shape[1])
            with (directory / MATRIX).open("wb") as file:
                np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
                _write(file, self.matrix)
            with (directory / ROWS).open("wb") as file:
                _write(file, self.rows)
            return known

        files.write(save)
        return Pool.load(files, self.generation, written=True)

    def verify(self) -> None:
        """Verify the copied blocks, except those whose checksums are copied along."""
        if self.before.files is not None:
            self.before.files.verify(self._known())

    def _known(self) -> dict[str, dict[int, int]]:
        """Checksums of blocks that keep their place; without the first, which contains the shape."""
        if self.before.files is None:
            return {}
        row = self.before.matrix.dtype.itemsize * self.before.matrix.shape[1]
        same = {MATRIX: row * self.staying, ROWS: int(self.before.offsets[self.staying])}
        checksums = self.before.files.checksums()
        by_file = {name: checksums.get(name, [])[1:] for name in same}
        return {
            name: {block: by_file[name][block] for block in range(1, min(end // BLOCK, len(by_file[name])))}
            for name, end in same.items()
        }


def updated(pool: Pool, change: PoolChange, owners: Sequence[str]) -> UpdatedPool | None:
    """Return the pool after a commit, as `Pool.make` would derive it from the store."""
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


def _renumbered(pool: Pool, commit: Commit, number: Mapping[str, int]) -> NDArray[np.int64]:
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


def _among(ids: NDArray[np.bytes_], wanted: set[str]) -> NDArray[np.bool_]:
    """Return which ids are in a small set."""
    raw = {name.encode() for name in wanted}
    beginnings = np.array(sorted(raw), dtype=ids.dtype)
    is_wanted = np.isin(_beginnings(ids), _beginnings(beginnings))
    near = np.flatnonzero(is_wanted)
    is_wanted[near] = [name in raw for name in ids[near].tolist()]
    return is_wanted


def _beginnings(ids: NDArray[np.bytes_]) -> NDArray[np.uint64]:
    """Return the first eight bytes of ids as numbers."""
    return np.ascontiguousarray(np.ascontiguousarray(ids).view(np.uint64).reshape(-1, MOST_LETTERS // 8)[:, 0])


def _merged(
    pool: Pool,
    unchanged: NDArray[np.int64],
    lengths: NDArray[np.int64],
    indices: NDArray[np.int64],
    new: _New,
    number: Mapping[str, int],
    change: PoolChange,
) -> UpdatedPool:
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
    columns = arrays | {
        "indptr": np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int64),
        "indices": flat[ranges(starts[order], counts[order])],
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "kind_names": tuple(codes),
        **change.update.following(CorpusColumns)[1].columns(),
    }
    return UpdatedPool(
        generation=change.generation,
        before=pool,
        columns=columns,
        matrix=[pool.matrix[start:stop] if stop else vectors[start] for start, stop in runs],
        rows=[_slice(pool, start, stop) if stop else rows[start] for start, stop in runs],
        staying=runs[0][1] if runs[0][0] == 0 else 0,
    )


def _write(file: BinaryIO, pieces: Sequence[NDArray[Any]]) -> None:
    file.writelines(np.ascontiguousarray(piece).data for piece in pieces)


def _runs(sources: NDArray[np.int64], places: NDArray[np.int64]) -> list[tuple[int, int]]:
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


_PUBLISHING = 2.0
"""Seconds after a commit in which its writer derives the pool, so that nobody else does."""


class Pools:
    """Opens pools of a folder or of memory; derives them from the store, or from the pool of the generation before."""

    def __init__(self, folder: Folder | None) -> None:
        self._folder = folder
        self._change: PoolChange | None = None
        self._open: dict[str, tuple[DerivedFiles | None, Pool]] = {}

    def expected(self, generation: int) -> bool:
        """Whether a generation was committed just now, and its writer is deriving the pool."""
        if self._folder is None or self._published() >= generation:
            return False
        file = self._folder.index_file
        written = 0.0
        for path in (file, file.with_name(f"{file.name}-wal")):
            with suppress(OSError):
                written = max(written, path.stat().st_mtime)
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
        made = self._followed(built, generation, before) or Pool.make(store, built.owners, generation)
        pool: Pool | None = None
        if files is not None and self._published() <= generation:  # files of older generations are deleted already
            with suppress(OSError, StorageError):  # else it serves from memory
                files.directory.parent.mkdir(exist_ok=True)
                pool = made.save(files)
        if pool is None:
            pool = made if isinstance(made, Pool) else made.in_memory()
        recent = {name: known for name, known in self._open.items() if known[1].generation >= generation - 1}
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
        return DerivedFiles(directory, f"{directory.name} of {commit}, rules 3, {' '.join(BUILT_IN_KINDS)}")

    def _at_hand(self, built: BuiltRecipe, generation: int, files: DerivedFiles | None) -> Pool | None:
        """Return the pool of a generation if it exists; in a folder, the one that its files contain now."""
        known = self._open.get(built.pool)
        if known is not None and known[0] == files and known[1].generation == generation and known[1].intact():
            return known[1]
        if files is None or not files.directory.is_dir():
            return None
        with suppress(StorageError):  # damaged files are derived again
            pool = Pool.load(files, generation)
            self._open[built.pool] = (files, pool)
            return pool
        return None

    def _followed(self, built: BuiltRecipe, generation: int, files: DerivedFiles | None) -> UpdatedPool | None:
        """Return the pool of the generation before with the last commit applied, if both are available."""
        if self._change is None or self._change.generation != generation:
            return None
        before = self._at_hand(built, generation - 1, files)
        if before is None:
            return None
        pool = updated(before, self._change, built.owners)
        try:
            if pool is not None:
                pool.verify()
        except StorageError:
            return None
        return pool
