"""A new index folder in the place of an old one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from sire_core.storage.plain_files import FILES, FOLDERS, is_derived_name

__all__ = ["replace_folder"]

_OF_ADAPTERS = {"llama_index_nodes.json", "llama_index.json", "langchain.json"}
"""Settings of adapters stay when the index beside them is replaced, as files of somebody else do."""


def replace_folder(place: Path, new: Path, old: Path) -> None:
    """Move a new index to where an old one is, and remove that one.

    What lies beside the old index in its folder stays. Documents that wait in an adapter belong to an index: who calls
    this has taken them along.
    """
    for path in _others(place):
        copy = new / path.relative_to(place)
        copy.parent.mkdir(exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, copy, symlinks=True, dirs_exist_ok=True)
        else:
            copy.unlink(missing_ok=True)
            shutil.copy2(path, copy, follow_symlinks=False)
    place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        old.rename(place)
        raise
    shutil.rmtree(old)


def _others(folder: Path) -> Iterator[Path]:
    """What lies in an index folder, and in its folders, but belongs to no index."""
    for path in sorted(folder.iterdir()):
        if path.name not in (FILES | FOLDERS) - _OF_ADAPTERS:
            yield path
    for path in sorted((folder / "derived").glob("*")):
        if not is_derived_name(path.name):
            yield path
    for path in sorted((folder / "pending").glob("*")):
        if path.suffix not in (".json", ".partial"):
            yield path
