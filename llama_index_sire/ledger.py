"""Which derived nodes a pipeline was given: written down, so that a run that died leaves nothing stale behind."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from sire_core.errors import StorageError
from sire_core.storage.side_files import read_checked, write_checked

__all__ = ["Ledger"]


class Ledger:
    """Ids of the derived units whose nodes were handed out and not deleted since; never fewer than the store holds.

    Args:
        directory: The folder of the index; None remembers in this object only.
    """

    def __init__(self, directory: Path | None) -> None:
        self._file = directory / "llama_index_nodes.json" if directory is not None else None
        self._memory: list[str] = []

    def read(self) -> list[str]:
        """The ids, oldest first.

        Raises:
            StorageError: The file is damaged.
        """
        if self._file is None:
            return list(self._memory)
        try:
            return [str(name) for name in read_checked(self._file)]
        except FileNotFoundError:
            return []

    def write(self, derived: Collection[str]) -> None:
        """Replace everything, atomically.

        Raises:
            StorageError: The file cannot be written.
        """
        if self._file is None:
            self._memory = list(derived)
            return
        try:
            write_checked(self._file, list(derived))
        except OSError as error:
            raise StorageError(f"Cannot write {self._file}: {error.strerror}.") from error
