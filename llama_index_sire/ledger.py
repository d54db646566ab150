"""Which derived nodes a pipeline was given: written down, so that a run that died leaves nothing stale behind."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sire_core.errors import StorageError

__all__ = ["Ledger"]


class Ledger:
    """Ids of the derived units whose nodes were handed out and not deleted since; never fewer than the store holds.

    Args:
        directory: The folder of the index; None remembers in this object only.
    """

    def __init__(self, directory: Path | None) -> None:
        self._file = directory / "llama_index_nodes.json" if directory is not None else None
        self._memory: dict[str, Any] = {}

    def read(self) -> list[str]:
        """The ids, oldest first.

        Raises:
            StorageError: The file is damaged.
        """
        return [str(name) for name in self._load().get("derived", ())]

    def write(self, derived: Collection[str]) -> None:
        """Replace everything, atomically.

        Raises:
            StorageError: The file cannot be written.
        """
        self._memory = {"derived": list(derived)}
        if self._file is None:
            return
        partial = self._file.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(self._memory), encoding="utf-8")
            partial.replace(self._file)
        except OSError as error:
            raise StorageError(f"Cannot write {self._file}: {error.strerror}.") from error

    def _load(self) -> dict[str, Any]:
        if self._file is None:
            return self._memory
        try:
            return dict(json.loads(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{self._file} cannot be read ({error}). Empty the vector store, delete this folder, and index again."
            ) from error
