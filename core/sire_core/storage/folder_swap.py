"""A new index folder in the place of an old one."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["replace_folder"]

_DATABASES = [
    f"{name}{end}"
    for name in ("index.sqlite", "calls.sqlite", "writer.lock", "pending.lock")
    for end in ("", "-wal", "-shm", "-journal")
]
_OF_AN_INDEX = {*_DATABASES, "manifest.json", "sources.json", "verified.json", "derived", "pending"}
"""What belongs to one index. What else lies in its folder are settings of adapters, or files of somebody else."""


def replace_folder(place: Path, new: Path, old: Path) -> None:
    """Move a new index to where an old one is, and remove that one.

    What lies beside the old index in its folder stays. Documents that wait in an adapter belong to an index: who calls
    this has taken them along.

    Args:
        place: The old index.
        new: The new one, on the same file system.
        old: Where the old one may stand meanwhile, on the same file system.

    Raises:
        OSError: A file cannot be copied, or a folder not be moved; the old index is where it was.
    """
    for found in sorted(place.iterdir()):
        if found.name in _OF_AN_INDEX:
            continue
        if found.is_dir() and not found.is_symlink():
            shutil.copytree(found, new / found.name, symlinks=True, dirs_exist_ok=True)
        else:
            (new / found.name).unlink(missing_ok=True)
            shutil.copy2(found, new / found.name, follow_symlinks=False)
    place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        old.rename(place)
        raise
    shutil.rmtree(old)
