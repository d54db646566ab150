"""`DerivedCache`: structures that rankers derive from a snapshot, cached in memory, on disk and across snapshots."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import StorageError

if TYPE_CHECKING:
    from sire_core.protocols import CarriedFiles
    from sire_core.storage.derived import DerivedFiles

__all__ = ["DerivedCache"]

T = TypeVar("T")

_WORTH_FILES = 2_000
"""Minimum rows for files; smaller structures are derived again within a second."""
_STALE = 50
"""Files are written again if more than one row in this many is missing."""


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
    def names(self) -> Collection[str]:
        """Names of the structures in memory."""
        return self._derived.keys()

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a structure derived from this snapshot, made once and shared by queries."""
        try:
            return self._derived[name]
        except KeyError:
            with self._lock:
                if name not in self._derived:
                    self._derived[name] = make()
                return self._derived[name]

    def cached_incremental(self, name: str, make: Callable[[T | None], T], files: CarriedFiles[T] | None = None) -> T:
        """Return a structure that is updated from that of the previous snapshot."""
        structure: T = self.derived(name, lambda: self._updated(name, make, files))
        self._previous[name] = structure
        return structure

    def _updated(self, name: str, make: Callable[[T | None], T], saved: CarriedFiles[T] | None) -> T:
        before = self._previous.get(name)
        if saved is None or self._files is None:
            return make(before)
        files = self._files.carried_part(saved.folder)
        if before is None and files.directory.is_dir():
            with suppress(Exception):  # damaged files: start from scratch
                files.verify()
                before, self._written[name] = saved.load(files.directory), 0
        made = make(before)
        size, new = saved.size(made)
        stale = not files.directory.is_dir() or (new - self._written.get(name, 0)) * _STALE > size
        # Without the folder of this generation nothing is written: its files may have been purged.
        if stale and size >= _WORTH_FILES and self._files.directory.is_dir():
            with suppress(StorageError, OSError):  # a read-only folder costs only time
                files.directory.parent.mkdir(exist_ok=True)
                files.write(lambda directory: saved.save(made, directory))
                self._written[name] = new
        return made

    def cached_on_disk(
        self, name: str, make: Callable[[], T], save: Callable[[T, Path], None], load: Callable[[Path], T]
    ) -> T:
        """Return a structure derived from this snapshot, made once and stored in files for other processes."""
        structure: T = self.derived(name, lambda: self._from_disk(name, make, save, load))
        return structure

    def _from_disk(
        self, name: str, make: Callable[[], T], save: Callable[[T, Path], None], load: Callable[[Path], T]
    ) -> T:
        files = None if self._files is None else self._files.part(name)
        if files is None:
            return make()
        if files.directory.is_dir():
            stamp = files.stamp()
            with suppress(Exception):  # damaged files: derive again
                files.verify()
                loaded = load(files.directory)
                self._mapped.append((files, stamp))
                return loaded
        made = make()
        with suppress(StorageError):  # a read-only folder costs only time
            files.write(lambda directory: save(made, directory))
        return made

    def intact(self, *, may_be_gone: bool = False) -> bool:
        """Whether the files are unchanged since they were verified; see `DerivedFiles.intact`."""
        return all(files.intact(stamp, may_be_gone=may_be_gone) for files, stamp in self._mapped)
