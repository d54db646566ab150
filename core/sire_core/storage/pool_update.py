"""A pool that follows one commit: rows that stay are copied, not read from the store again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.storage.pool import ID_TYPE, Pool, corpus_columns, pool_row
from sire_core.storage.store import CORPUS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.corpus.stored_corpus import StoredCorpus
    from sire_core.storage.commit import Commit
    from sire_core.types import Unit

__all__ = ["PoolChange", "updated"]


@dataclass(frozen=True, slots=True)
class PoolChange:
    """What a commit did to pools.

    Attributes:
        generation: Of the index after it.
        commit: What was committed.
        corpus: Documents and chunks after it.
    """

    generation: int
    commit: Commit
    corpus: StoredCorpus


@dataclass(frozen=True, slots=True)
class _New:
    """Units that a commit put into a pool, with the keys that a pool is sorted by."""

    units: list[Unit]
    ranks: list[int]


def updated(pool: Pool, change: PoolChange, owners: Sequence[str]) -> dict[str, Any] | None:
    """Arrays of a pool after a commit, as `Pool.make` would derive them from the store.

    Args:
        pool: As it was one generation before.
        change: The commit.
        owners: Organizer fingerprints, in the recipe's order.

    Returns:
        None when the pool cannot follow: vectors of rows that stay were replaced, or they have another length.
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
    kept = np.flatnonzero(~_among(pool.ids, touched)).astype(np.int64)
    if commit.revectors or not len(kept):
        return None
    number = {chunk.id: i for i, chunk in enumerate(change.corpus.chunks)}
    renumber = _renumbered(pool, commit, number)
    lengths = np.diff(pool.indptr)[kept]
    indices = renumber[pool.indices[ranges(pool.indptr[:-1][kept], lengths)]]
    dimension = pool.matrix.shape[1]
    if (indices < 0).any() or any(len(commit.vectors[unit.id]) != dimension for unit in new.units):
        return None
    return _merged(pool, kept, lengths, indices, new, number, change)


def _renumbered(pool: Pool, commit: Commit, number: Mapping[str, int]) -> NDArray[np.int64]:
    """Number after a commit of every chunk of a pool; -1 for one that is gone."""
    put = [chunk.id for chunk in commit.put_chunks]
    staying = ~_among(pool.chunk_ids, {*put, *commit.drop_chunks})
    others = np.ones(len(number), dtype=bool)
    others[[number[chunk] for chunk in put]] = False
    found = np.full(len(pool.chunk_ids), -1, dtype=np.int64)
    found[staying] = np.flatnonzero(others)  # these keep their order
    for place in np.flatnonzero(~staying).tolist():
        found[place] = number.get(pool.chunk_ids[place].decode(), -1)
    return found


def _among(ids: NDArray[np.bytes_], wanted: set[str]) -> NDArray[np.bool_]:
    """Which ids are some of a few."""
    raw = {found.encode() for found in wanted}
    return np.fromiter((found in raw for found in ids.tolist()), dtype=bool, count=len(ids))


def _merged(
    pool: Pool,
    kept: NDArray[np.int64],
    lengths: NDArray[np.int64],
    indices: NDArray[np.int64],
    new: _New,
    number: Mapping[str, int],
    change: PoolChange,
) -> dict[str, Any]:
    numbers = [[number[chunk] for chunk in unit.chunk_ids] for unit in new.units]
    firsts = np.minimum.reduceat(indices, np.cumsum(lengths) - lengths)
    codes = {name: code for code, name in enumerate(pool.kind_names)}
    kinds = [codes.setdefault(unit.kind.value, len(codes)) for unit in new.units]
    columns = {
        "ids": np.concatenate([pool.ids[kept], np.array([unit.id for unit in new.units], dtype=ID_TYPE)]),
        "kinds": np.concatenate([pool.kinds[kept], _bytes(kinds)]),
        "levels": np.concatenate([pool.levels[kept], _bytes([unit.level for unit in new.units])]),
        "ranks": np.concatenate([pool.ranks[kept], _bytes(new.ranks)]),
    }
    firsts = np.concatenate([firsts, np.array([min(found) for found in numbers], dtype=np.int64)])
    order = np.lexsort((columns["ids"], firsts, columns["levels"], columns["ranks"]))
    arrays: dict[str, Any] = {name: column[order] for name, column in columns.items()}
    runs = _runs(np.concatenate([kept, np.full(len(new.units), -1)])[order], order - len(kept))
    by_id = change.corpus.chunk_by_id
    doc_of = {chunk: by_id[chunk].doc_id for unit in new.units for chunk in unit.chunk_ids}
    rows = [np.frombuffer(pool_row(unit, doc_of), dtype=np.uint8) for unit in new.units]
    vectors = [np.asarray(change.commit.vectors[unit.id], dtype=np.float32)[None] for unit in new.units]
    sizes = np.concatenate([np.diff(pool.offsets)[kept], np.array([len(row) for row in rows], dtype=np.int64)])[order]
    counts = np.concatenate([lengths, np.array([len(found) for found in numbers], dtype=np.int64)])
    starts = np.cumsum(counts) - counts
    flat = np.concatenate([indices, np.array([n for found in numbers for n in found], dtype=np.int64)])
    return arrays | {
        "matrix": np.concatenate([pool.matrix[start:stop] if stop else vectors[start] for start, stop in runs]),
        "indptr": np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int64),
        "indices": flat[ranges(starts[order], counts[order])],
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "rows": np.concatenate([_slice(pool, start, stop) if stop else rows[start] for start, stop in runs]),
        "kind_names": tuple(codes),
        **corpus_columns(change.corpus.chunks, list(change.corpus.documents.values())),
    }


def _runs(sources: NDArray[np.int64], places: NDArray[np.int64]) -> list[tuple[int, int]]:
    """The rows of the new pool as slices (start, stop) of the old one, and as (number, 0) where one is new."""
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
