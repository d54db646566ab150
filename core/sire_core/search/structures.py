"""`Structures`: what rankers derive from a snapshot, made once, shared by queries, carried on and kept in files."""

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

__all__ = ["Structures"]

T = TypeVar("T")

_WORTH_FILES = 2_000
"""Rows from which on files are worth their space: fewer are made again in a second."""
_STALE = 50
"""Files are written again when they lack more than one row in so many."""


class Structures:
    """Structures of one snapshot by name. Thread-safe.

    Args:
        files: Where those that are kept lie; None keeps nothing.
        before: The structures of the snapshot before, for what is carried over.
    """

    def __init__(self, files: DerivedFiles | None, before: Structures | None = None) -> None:
        self._files = files
        self._derived: dict[str, Any] = {}
        self._carried: dict[str, Any] = {} if before is None else dict(before._carried)  # noqa: SLF001 - our own kind
        self._written: dict[str, int] = {} if before is None else dict(before._written)  # noqa: SLF001 - as above
        self._mapped: list[tuple[DerivedFiles, tuple[tuple[int, int, int], ...]]] = []
        self._lock = threading.RLock()

    @property
    def names(self) -> Collection[str]:
        """Of those that were made or read so far."""
        return self._derived.keys()

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """A structure derived from this snapshot, made once and shared by queries."""
        try:
            return self._derived[name]
        except KeyError:
            with self._lock:
                if name not in self._derived:
                    self._derived[name] = make()
                return self._derived[name]

    def carried(self, name: str, make: Callable[[T | None], T], files: CarriedFiles[T] | None = None) -> T:
        """A structure that is made from the one which the snapshot before had, where there was one.

        Args:
            name: Of the structure.
            make: Makes it; from nothing when it is given None.
            files: Writes and reads it, so that another process need not begin with nothing.
        """
        found: T = self.derived(name, lambda: self._made_from(name, make, files))
        self._carried[name] = found
        return found

    def _made_from(self, name: str, make: Callable[[T | None], T], saved: CarriedFiles[T] | None) -> T:
        before = self._carried.get(name)
        if saved is None or self._files is None:
            return make(before)
        files = self._files.carried_part(saved.folder)
        if before is None and files.directory.is_dir():
            with suppress(Exception):  # whatever is wrong with files that can be made again: it begins with nothing
                files.verify()
                before, self._written[name] = saved.load(files.directory), 0
        made = make(before)
        size, new = saved.size(made)
        stale = not files.directory.is_dir() or (new - self._written.get(name, 0)) * _STALE > size
        # Whoever has removed the files of this state may have wanted its words gone from the disk.
        if stale and size >= _WORTH_FILES and self._files.directory.is_dir():
            with suppress(StorageError, OSError):  # a folder that cannot be written costs time only
                files.directory.parent.mkdir(exist_ok=True)
                files.write(lambda directory: saved.save(made, directory))
                self._written[name] = new
        return made

    def kept(self, name: str, make: Callable[[], T], save: Callable[[T, Path], None], load: Callable[[Path], T]) -> T:
        """A structure derived from this snapshot, made once and kept in files for the next process.

        Args:
            name: Of the structure and of the folder of its files.
            make: Makes it.
            save: Writes it as files into a folder.
            load: Reads them.
        """
        found: T = self.derived(name, lambda: self._kept(name, make, save, load))
        return found

    def _kept(self, name: str, make: Callable[[], T], save: Callable[[T, Path], None], load: Callable[[Path], T]) -> T:
        files = None if self._files is None else self._files.part(name)
        if files is None:
            return make()
        if files.directory.is_dir():
            stamp = files.stamp()
            with suppress(Exception):  # whatever is wrong with files that can be made again: they are made again
                files.verify()
                found = load(files.directory)
                self._mapped.append((files, stamp))
                return found
        made = make()
        with suppress(StorageError):  # a folder that cannot be written costs time only
            files.write(lambda directory: save(made, directory))
        return made

    def intact(self, *, may_be_gone: bool = False) -> bool:
        """Whether nobody touched the files of structures since they were verified. See `DerivedFiles.intact`."""
        return all(files.intact(stamp, may_be_gone=may_be_gone) for files, stamp in self._mapped)
