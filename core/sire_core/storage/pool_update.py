"""Applies one commit to a pool: unchanged rows are copied, not read from the store again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.storage.derived import BLOCK
from sire_core.storage.pool import ID_TYPE, MATRIX, MOST_LETTERS, ROWS, CorpusColumns, Pool, pool_row, save_columns
from sire_core.storage.store import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from sire_core.corpus.stored_corpus import CorpusUpdate
    from sire_core.storage.derived import DerivedFiles
    from sire_core.storage.rows import Commit
    from sire_core.types import Unit


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A commit, as far as pools depend on it.

    Attributes:
        generation: Of the index after it.
        commit: What was committed.
        update: Documents and chunks before and after it.
    """

    generation: int
    commit: Commit
    update: CorpusUpdate


@dataclass(frozen=True, slots=True)
class _New:
    """Units that a commit adds to a pool, with their sort keys."""

    units: list[Unit]
    ranks: list[int]


@dataclass(frozen=True, slots=True)
class UpdatedPool:
    """A pool after a commit. Unchanged rows are not copied in memory: they are written from the old pool.

    Attributes:
        generation: Of the index after the commit.
        before: The pool before.
        columns: Everything but matrix and rows, by the names of `Pool`.
        matrix: Pieces of the matrix.
        rows: Pieces of the rows.
        staying: Units at the beginning that stay where they were.
    """

    generation: int
    before: Pool
    columns: Mapping[str, Any]
    matrix: Sequence[NDArray[np.float32]]
    rows: Sequence[NDArray[np.uint8]]
    staying: int

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
