"""What a folder remembers of a retriever."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sire_core.storage.side_files import read_checked, write_checked

__all__ = ["CUT_BY", "RECIPE", "TOP_K", "read_settings", "write_settings"]

TOP_K = "similarity_top_k"
CUT_BY = "transformations"
RECIPE = "recipe"
_FILE = "llama_index.json"


def read_settings(place: str | os.PathLike[str] | None) -> dict[str, Any]:
    """`TOP_K`, `RECIPE`, and `CUT_BY` where transformations cut the documents; empty where nothing was saved.

    Raises:
        StorageError: The file is damaged.
    """
    try:
        return {} if place is None else dict(read_checked(Path(place) / _FILE))
    except FileNotFoundError:  # a folder that the core wrote
        return {}


def write_settings(place: Path, similarity_top_k: int, cut_by: Sequence[str] | None, recipe: str) -> None:
    """Replace what is remembered."""
    known = {RECIPE: recipe, CUT_BY: list(cut_by or ())}
    write_checked(place / _FILE, {TOP_K: similarity_top_k, **{name: value for name, value in known.items() if value}})
