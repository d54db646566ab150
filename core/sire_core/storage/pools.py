"""`Pools`: the pools of an index, one per recipe and generation."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from sire_core.errors import StorageError
from sire_core.storage.derived import DerivedFiles
from sire_core.storage.pool import Pool
from sire_core.storage.pool_update import PoolChange, UpdatedPool, updated
from sire_core.types import BUILT_IN_KINDS

if TYPE_CHECKING:
    from sire_core.storage.folder import Folder
    from sire_core.storage.manifest import BuiltRecipe
    from sire_core.storage.store import Store

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
        return DerivedFiles(directory, f"{directory.name} of {commit}, rules 2, {' '.join(BUILT_IN_KINDS)}")

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
