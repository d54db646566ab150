"""What a folder remembers of a retriever, and of the derived nodes that a pipeline was given."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sire_core.errors import StorageError
from sire_core.storage.side_files import read_checked, write_checked

__all__ = ["CUT_BY", "RECIPE", "TITLE", "TOP_K", "Ledger", "read_settings", "saved_titles", "write_settings"]


TOP_K = "similarity_top_k"
CUT_BY = "transformations"
RECIPE = "recipe"
TITLE = "title_key"
_FILE = "llama_index.json"


def read_settings(place: str | os.PathLike[str] | None) -> dict[str, Any]:
    """`TOP_K` and `RECIPE`; `CUT_BY` where transformations cut the documents, `TITLE` where it was set; else empty.

    Raises:
        StorageError: The file is damaged.
    """
    try:
        return {} if place is None else dict(read_checked(Path(place) / _FILE))
    except FileNotFoundError:  # a folder that the core wrote
        return {}


def saved_titles(place: str | os.PathLike[str] | None) -> str | list[str]:
    """The key of titles that a folder's documents were read with; "title" where nothing was saved.

    Raises:
        StorageError: The file is damaged.
    """
    found: str | list[str] = read_settings(place).get(TITLE, "title")
    return found


def write_settings(
    place: Path, similarity_top_k: int, cut_by: Sequence[str] | None, recipe: str, title_key: str | Sequence[str]
) -> None:
    """Replace what is remembered."""
    titles = title_key if isinstance(title_key, str) else list(title_key)
    known = {RECIPE: recipe, CUT_BY: list(cut_by or ()), TITLE: "" if titles == "title" else titles}
    write_checked(place / _FILE, {TOP_K: similarity_top_k, **{name: value for name, value in known.items() if value}})


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
