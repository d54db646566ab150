"""The index folder: its layout, the manifest file, locks, and putting a new index into its place."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sire_core.errors import IndexLockedError, IndexMissingError, StorageError
from sire_core.storage.plain_files import (
    ADVICE,
    DATABASE_ENDS,
    FILES,
    FOLDERS,
    TOO_MANY,
    check_path,
    checksum,
    has_few_descriptors,
    is_derived_name,
    misplaced,
    raise_if_whole,
    read_checked,
    read_plain,
    remove,
    replace_json,
    require_plain,
    sync_folder,
    system_limit,
    write_checked,
    write_error,
)

FORMAT = 4  # Version of the folder layout and of the tables; a folder of another version is refused with advice
_DATABASES = ("writer.lock", "index.sqlite", "calls.sqlite")
_MAY_COME_FIRST = {*(f"{name}{end}" for name in _DATABASES for end in ("", "-journal", "-wal", "-shm")), *ADVICE}
"""Files of ours that a folder may hold before anything is built, also while another process begins to."""
_OF_ADAPTERS = {"llama_index_nodes.json": "LlamaIndex", "llama_index.json": "LlamaIndex", "langchain.json": "LangChain"}
"""Settings of adapters stay when the index beside them is replaced, as files of somebody else do."""


@contextmanager
def file_lock(folder: Path, name: str, timeout: float = 0.0) -> Iterator[None]:
    """Hold the lock of a name in a folder. The operating system releases it when the process dies."""
    for end in DATABASE_ENDS:
        require_plain(folder / f"{name}{end}")
    while True:
        before = _identity(folder / name)
        try:
            connection = sqlite3.connect(str(folder / name), timeout=timeout, isolation_level=None)
        except sqlite3.Error as error:
            raise _failed(folder, error) from error
        with closing(connection):
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                if before == _identity(folder / name):
                    raise _failed(folder, error) from error
                continue
            if before is not None and before == _identity(folder / name):
                yield
                return
        # The file is new, or another folder has taken the place of this one: what is held may be the lock of that.


def _identity(file: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = file.stat()
        return status.st_dev, status.st_ino
    return None


def _failed(folder: Path, error: sqlite3.Error) -> StorageError:
    if advice := system_limit(error, folder):
        return StorageError(f"{folder} {advice} (SQLite says: {error})")
    if not folder.is_dir():
        return IndexMissingError(f"There is no folder {folder} (any more). Nothing was written.")
    if "locked" in str(error):
        return IndexLockedError(
            f"Another process is writing to {folder}. Readers may go on; wait for it to finish and run it again."
        )
    return write_error(error)(
        f"Cannot write to {folder} ({error}). Make the folder writable or free some space, or copy it to a place that "
        "is."
    )


class Folder:
    """Paths and small files of an index folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        check_path(self.path)
        self.index_file = self.path / "index.sqlite"
        self.calls_file = self.path / "calls.sqlite"
        self.manifest_file = self.path / "manifest.json"  # the last thing that a commit writes
        self.sources_file = self.path / "sources.json"  # the folders that the command line read documents from
        self.verified_file = self.path / "verified.json"  # the stamp of `index.sqlite` when all of it was verified

    def sources(self) -> dict[str, str]:
        """Return the folders that document ids are relative to, and what stands in front of the ids of each."""
        try:
            content = dict(json.loads(read_plain(self.sources_file)))
            folders = dict(content["folders"])
            right = content["checksum"] == checksum(folders) and all(isinstance(name, str) for name in folders.values())
        except (FileNotFoundError, NotADirectoryError):  # an index that was made in Python, or none
            return {}
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise_if_whole(self.sources_file, error)
            right = False
        if not right:
            raise StorageError(
                f"{self.sources_file} is damaged: it says which folders were indexed, so that ids of documents stay "
                "what they are. Restore it from a backup, or delete it and name the whole folders again that the index "
                "was made from."
            )
        return folders

    def note_sources(self, folders: Mapping[str, str]) -> None:
        """Add folders to `sources.json`; without any, the file says that the command line wrote here."""
        before = self.sources()
        merged = {**before, **folders}
        if merged != before or not self.sources_file.exists():
            self._replace(self.sources_file, {"folders": merged, "checksum": checksum(merged)})

    def framework(self) -> str:
        """Return the framework whose app names and splits the documents; empty if none, or the command line does."""
        names = (name for file, name in _OF_ADAPTERS.items() if (self.path / file).exists())
        return "" if self.sources_file.exists() else next(names, "")

    def verified(self) -> list[int]:
        """Return time and stamp of the last full verification of `index.sqlite`; empty if unknown."""
        with suppress(OSError, StorageError, ValueError, TypeError, OverflowError):
            return [int(number) for number in read_checked(self.verified_file, list)]
        return []

    def note_verified(self, stamp: Sequence[int]) -> None:
        """Store time and stamp of a full verification for the next process."""
        with suppress(OSError):
            write_checked(self.verified_file, list(stamp))

    def pool(self, key: str, generation: int) -> Path:
        """Return the folder of the derived files of a pool."""
        return self.path / "derived" / f"{key}-{generation}"

    def check_place(self) -> None:
        """Raise unless an index is here, or can be made here."""
        self.require_plain()
        if self.path.is_dir():
            ours = self.exists() or self.calls_file.exists()
            foreign = [] if ours else sorted(p.name for p in self.path.iterdir() if p.name not in _MAY_COME_FIRST)
            if foreign:
                raise StorageError(
                    f"{self.path} is not an index and not empty (it holds {', '.join(foreign[:3])}). Name a new folder."
                )
            return
        nearest = next(parent for parent in (self.path, *self.path.absolute().parents) if os.path.lexists(parent))
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            why = "cannot be written" if nearest.is_dir() else "is no folder"
            raise StorageError(f"Cannot make the folder {self.path}: {nearest} {why}. Name another place.")

    def create(self) -> None:
        """Make the folder."""
        self.check_place()
        try:
            if not self.path.is_dir():
                self.path.mkdir(parents=True, exist_ok=True)
                sync_folder(self.path.absolute().parent)
        except OSError as error:
            why = TOO_MANY if has_few_descriptors(error) else f"{error.strerror}. Name another place"
            raise StorageError(f"Cannot make the folder {self.path}: {why}.") from error

    def exists(self) -> bool:
        """True if an index was committed or at least started here."""
        try:
            return self.index_file.exists()
        except OSError as error:
            raise StorageError(f"Cannot look into {self.path}: {error.strerror}. Check its permissions.") from error

    def require_plain(self) -> None:
        """Raise if a file or folder of the index is a link or of another type."""
        with suppress(OSError):  # there is no such folder, or one may not look
            for entry in misplaced(self.path):
                require_plain(entry, folder=entry.name in FOLDERS)

    def require(self) -> None:
        """Raise `IndexMissingError` if there is no index here."""
        self.require_plain()
        if not self.exists():
            advice = "Build one: sire index {source} --to {folder}, or in Python Index('{folder}').build(documents)."
            raise IndexMissingError.of(self.path, advice)

    def read_manifest(self) -> dict[str, Any]:
        """Return the manifest file; empty if it is absent or damaged (the store has the authoritative copy)."""
        try:
            manifest = dict(json.loads(read_plain(self.manifest_file)))
        except (OSError, ValueError, TypeError, RecursionError):
            return {}
        noted = manifest.pop("checksum", None)
        if "format" in manifest:
            check_format(manifest, self.path)
        right = noted == checksum(manifest) and type(manifest.get("generation", 0)) is int
        return manifest if right else {}

    def stamp(self) -> tuple[int, int]:
        """Changes when a commit replaces the manifest file; cheap enough to check before every search."""
        try:
            status = self.manifest_file.lstat()
        except OSError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_ino)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest file atomically."""
        self._replace(self.manifest_file, {**manifest, "checksum": checksum(manifest)})

    def _replace(self, target: Path, content: object) -> None:
        try:
            replace_json(target, content)
        except OSError as error:
            todo = "make room or fix the permissions, then open it again"
            why = TOO_MANY if has_few_descriptors(error) else f"{error.strerror}. The index itself is safe: {todo}"
            raise write_error(error)(f"Cannot write {target}: {why}.") from error

    def clean(self, unwanted: Callable[[str], bool]) -> None:
        """Delete derived folders by name, and partial files of killed processes in the others."""
        self.require_plain()
        derived = self.path / "derived"
        for entry in derived.iterdir() if derived.is_dir() else ():
            if not is_derived_name(entry.name):
                continue
            if unwanted(entry.name) or entry.is_symlink():
                remove(entry)
            else:
                for left in entry.glob("*.partial"):
                    remove(left)

    def is_being_written(self) -> bool:
        """True if somebody holds the writer's lock."""
        if not (self.path / "writer.lock").exists():
            return False
        try:
            with file_lock(self.path, "writer.lock"):
                return False
        except IndexLockedError:
            return True
        except StorageError:  # of a folder that cannot be written nobody knows
            return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writer's lock. The operating system releases it when the process dies."""
        self.require_plain()
        with file_lock(self.path, "writer.lock"):
            yield


def check_format(manifest: Mapping[str, Any], path: Path) -> None:
    """Raise if a folder has another format version."""
    version = manifest.get("format", FORMAT)
    if version != FORMAT:
        raise StorageError(
            f"{path} has format {version}, this release reads {FORMAT}. "
            "Build the index again, or use the release that made it."
        )


def replace_folder(target: Path, new: Path, old: Path) -> None:
    """Move a new index to where an old one is, and remove that one."""
    if old.exists():
        _remove_leftover(old)
    for path in _others(target):
        copy = new / path.relative_to(target)
        copy.parent.mkdir(exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, copy, symlinks=True, dirs_exist_ok=True)
        else:
            copy.unlink(missing_ok=True)
            shutil.copy2(path, copy, follow_symlinks=False)
    new.rename(old)
    if not _exchange(target, old):
        old.rename(new)
        target.rename(old)
        try:
            new.rename(target)
        except BaseException:
            old.rename(target)
            raise
    shutil.rmtree(old)


def _remove_leftover(old: Path) -> None:
    """Remove what an interrupted replacement left, an index or a part of one."""
    if old.is_symlink() or not old.is_dir() or not {path.name for path in old.iterdir()} <= FILES | FOLDERS:
        raise StorageError(f"{old} is in the way, and holds what is no index. Move it away.")
    shutil.rmtree(old)


_CURRENT_FOLDER, _SWAP = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; whether the system can."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = os.fsencode(one), os.fsencode(other)
    return rename is not None and rename(_CURRENT_FOLDER, paths[0], _CURRENT_FOLDER, paths[1], _SWAP) == 0


def _others(folder: Path) -> Iterator[Path]:
    """Yield files and folders inside an index folder that belong to no index."""
    for path in sorted(folder.iterdir()):
        if path.name not in (FILES | FOLDERS) - _OF_ADAPTERS.keys():
            yield path
    for path in sorted((folder / "derived").glob("*")):
        if not is_derived_name(path.name):
            yield path
