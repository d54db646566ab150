"""`Pools`: the derived files of an index, one pool per recipe and generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import StorageError
from sire_core.storage.pool import Pool
from sire_core.storage.pool_update import PoolChange, updated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.manifest import BuiltRecipe
    from sire_core.storage.folder import Folder
    from sire_core.storage.store import Store

__all__ = ["Pools"]

_MANY = 256
"""So many vectors are read from the derived files; fewer from the store, which needs no look at all ids."""


class Pools:
    """Pools that lie in a folder or in memory; derived from the store, or from the pool before, where they do not.

    Args:
        folder: Where they lie; None keeps them in memory.
        store: Opens what they are derived from.
    """

    def __init__(self, folder: Folder | None, store: Callable[[], Store]) -> None:
        self._folder = folder
        self._store = store
        self._change: PoolChange | None = None
        self._open: dict[str, tuple[object, Pool]] = {}

    def get(self, built: BuiltRecipe, generation: int) -> Pool:
        """The recipe's pool: mapped from its files, or derived when they are missing or damaged.

        Args:
            built: One of the manifest's recipes.
            generation: The manifest's; call this in the `snapshot` of the store in which the manifest was read.
        """
        at_hand = self._at_hand(built, generation) if self._folder else None
        if at_hand is not None:
            return at_hand
        pool = self._followed(built, generation) or Pool.make(self._store(), built.owners, generation)
        directory = self._folder.pool(built.pool, generation) if self._folder else None
        try:
            pool = pool.kept(directory)
        except StorageError:
            return pool  # it serves from memory
        recent = {name: known for name, known in self._open.items() if known[1].generation >= generation - 1}
        self._open = {**recent, built.pool: (_identity(directory), pool)}
        return pool

    def vectors(
        self, built: BuiltRecipe | None, generation: int, ids: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Which of some units the index holds, as positions, and their vectors `[positions, dimension]`.

        Args:
            built: The recipe whose pool is likely to have most of them.
            generation: Of the manifest.
            ids: Of the units.
        """
        pool = self._at_hand(built, generation) if built is not None and len(ids) >= _MANY else None
        if pool is None:
            found = self._store().vectors(ids)
            places = [place for place, wanted in enumerate(ids) if wanted in found]
            stored = [found[ids[place]] for place in places]
            return np.array(places, dtype=np.int64), np.stack(stored) if stored else np.empty((0, 0), np.float32)
        row = {found: number for number, found in enumerate(pool.ids.tolist())}
        rows = np.array([row.get(wanted.encode(), -1) for wanted in ids], dtype=np.int64)
        inside, outside = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        vectors = pool.matrix[rows[inside]]
        others = self._store().vectors([ids[place] for place in outside.tolist()])
        also = [place for place in outside.tolist() if ids[place] in others]
        if not also:
            return inside, vectors
        return np.concatenate([inside, also]), np.concatenate([vectors, [others[ids[place]] for place in also]])

    def committed(self, change: PoolChange | None) -> None:
        """Remember what was just committed, from which the pools of the next generation follow; None forgets it."""
        self._change = change

    def _at_hand(self, built: BuiltRecipe, generation: int) -> Pool | None:
        """The pool of a generation if it was made before; in a folder it is the one that lies there now."""
        directory = self._folder.pool(built.pool, generation) if self._folder else None
        identity = _identity(directory)
        known = self._open.get(built.pool)
        if known is not None and known[0] == identity and known[1].generation == generation:
            return known[1]
        if directory is None or identity is None:
            return None
        with suppress(StorageError):  # damaged files are derived ones: made again
            pool = Pool.load(directory, generation)
            self._open[built.pool] = (identity, pool)
            return pool
        return None

    def _followed(self, built: BuiltRecipe, generation: int) -> Pool | None:
        """The pool of one generation before with the last commit applied, if both are at hand."""
        if self._change is None or self._change.generation != generation:
            return None
        before = self._at_hand(built, generation - 1)
        if before is None:
            return None
        arrays = updated(before, self._change, built.owners)
        return None if arrays is None else Pool(generation=generation, **arrays)


def _identity(directory: Path | None) -> object:
    """Tells one folder of derived files from another of its name; None where there is none."""
    if directory is None:
        return None
    try:
        status = directory.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns)
