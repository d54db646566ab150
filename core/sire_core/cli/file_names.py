"""Ids of documents and the files that they were read from."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePath

__all__ = ["ids_of", "is_inside", "left_out_sources", "stored_ids", "taken_names"]


def stored_ids(folder: Path) -> list[str]:
    """Ids of the documents of an index; also of one that cannot be searched before the next change has mended it.

    Args:
        folder: The index folder.
    """
    from contextlib import closing

    from sire_core.storage.index_files import IndexFiles

    with closing(IndexFiles(folder)) as files:
        return list(files.store.documents())


def ids_of(given: Iterable[str], folder: Path) -> list[str]:
    """Ids as they were given, or of the files that were named by their paths, which need not exist any more.

    Args:
        given: Ids and paths. What is neither stays as it is, for the index to refuse.
        folder: The index folder, which knows the folders that documents were read from.
    """
    from sire_core.storage.folder import Folder

    known, roots = set(stored_ids(folder)), Folder(folder).sources()
    return list(dict.fromkeys(_id_of(name, known, roots) for name in given))


def _id_of(name: str, known: Collection[str], roots: Sequence[str]) -> str:
    if name in known:
        return name
    place = PurePath(os.path.realpath(Path(name).parent), Path(name).name)
    below = [place.relative_to(root).as_posix() for root in roots if place.is_relative_to(root)]
    # Where folders are known, a bare name is the id of a file right inside one: another file may have the same name.
    return next((found for found in (below if roots else [place.name]) if found in known), name)


def left_out_sources(gone: Iterable[str], sources: Iterable[Path], folder: Path) -> list[str]:
    """Folders that documents were read from before, that are not read now, or not whole, and still hold some of them.

    Args:
        gone: Ids of documents that what is read now does not have.
        sources: What is read now.
        folder: The index folder.
    """
    from sire_core.storage.folder import Folder

    now, names = [PurePath(os.path.realpath(source)) for source in sources], list(gone)
    roots = [root for root in Folder(folder).sources() if not any(PurePath(root).is_relative_to(one) for one in now)]
    return [root for root in roots if any(Path(root, name).is_file() for name in names)]


def is_inside(source: Path, root: str) -> bool:
    """Whether a file or folder lies below a folder, and is not the folder itself."""
    place = os.path.realpath(source)
    return place != os.path.realpath(root) and PurePath(place).is_relative_to(os.path.realpath(root))


def taken_names(names: Iterable[str], sources: Iterable[Path], folder: Path) -> list[str]:
    """Ids that two different files have: one in a folder that is read now, one in a folder that was read before.

    Args:
        names: Ids of the documents that were read.
        sources: What is read now.
        folder: The index folder.
    """
    from sire_core.storage.folder import Folder

    now = [os.path.realpath(source) for source in sources if source.is_dir()]
    before = [root for root in Folder(folder).sources() if root not in now]
    # Of folders inside each other ids are paths below the outer one: no name is taken twice.
    pairs = [(new, old) for new in now for old in before if os.path.commonpath([new, old]) not in (new, old)]
    return [name for name in names if any(_both(Path(new, name), Path(old, name)) for new, old in pairs)]


def _both(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and other.is_file() and not one.samefile(other)
    except (OSError, ValueError):  # an id of a record that is no name of a file
        return False
