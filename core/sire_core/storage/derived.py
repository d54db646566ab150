"""Derived files: written whole with checksums, verified when they are opened, and rebuilt when they are wrong."""

from __future__ import annotations

import json
import os
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from sire_core.errors import SireError, StorageError
from sire_core.storage.plain_files import (
    is_plain,
    read_plain,
    remove,
    require_plain,
    sync_file,
    sync_folder,
    write_error,
)

_CHECKSUMS = "checksums.json"
_BLOCK = 1 << 20  # Bytes that are read at once


@dataclass(frozen=True, slots=True)
class DerivedFiles:
    """A folder of files that can be derived again from the store."""

    directory: Path
    label: str
    lasting: bool = field(default=False, compare=False)

    def part(self, name: str) -> DerivedFiles:
        """Return files that are derived later from the same generation, in a subfolder."""
        return replace(self, directory=self.directory / name, label=f"{self.label}/{name}")

    def carried_part(self, name: str) -> DerivedFiles:
        """Return files that later generations are derived from, in a folder that outlives this one."""
        beside = self.directory.with_name(carried_folder(self.directory.name.rpartition("-")[0]))
        return replace(self, directory=beside / name, label=name)

    def stamp(self) -> tuple[tuple[int, int, int], ...]:
        """Changes when a file is replaced, truncated or written to; cheap enough to check before every search."""
        try:
            with os.scandir(self.directory) as entries:
                files = [e for e in sorted(entries, key=attrgetter("name")) if not e.is_dir(follow_symlinks=False)]
                statuses = [entry.stat(follow_symlinks=False) for entry in files]
        except OSError:
            return ()
        return tuple((status.st_ino, status.st_size, status.st_mtime_ns) for status in statuses)

    def intact(self, stamp: tuple[tuple[int, int, int], ...], *, may_be_gone: bool = False) -> bool:
        """Return whether the files are unchanged since a stamp."""
        now = self.stamp()
        return set(now) <= set(stamp) if may_be_gone else now == stamp

    def exists(self) -> bool:
        """Return whether there is a folder that may be looked into."""
        with suppress(OSError):  # of a folder around it that may not be looked into
            return self.directory.is_dir()
        return False

    def verify(self) -> None:
        """Raise `StorageError` if files are missing, damaged, or derived from something else."""
        try:
            self._require_plain()
            listing, files = _listing(self.directory)
            right = listing["label"] == self.label and all(
                _is_right(self.directory / name, noted) for name, noted in files.items()
            )
        except Exception as error:  # damaged content may raise anything
            raise StorageError(f"The derived files in {self.directory} cannot be read ({error}).") from error
        if not right:
            raise StorageError(f"The derived files in {self.directory} are not what was written.")

    def _require_plain(self) -> None:
        """Raise if the folder, or the one around it, is a link."""
        require_plain(self.directory, folder=True)
        require_plain(self.directory.parent, folder=True)

    def last(self) -> None:
        """Sync files to disk that were written without."""
        with suppress(OSError):
            _sync_files(self.directory)
            sync_folder(self.directory.parent)

    def write(self, save: Callable[[Path], None]) -> None:
        """Write the files into a sibling folder, sync them if they are `lasting`, and rename the folder."""
        directory = self.directory
        partial = directory.with_name(f"{directory.name}.{os.getpid()}-{threading.get_ident()}.partial")
        try:
            require_plain(directory.parent, folder=True)
            remove(partial)
            partial.mkdir()
            save(partial)
            files = {path.name: _size_and_checksum(path) for path in sorted(partial.iterdir())}
            (partial / _CHECKSUMS).write_text(json.dumps({"label": self.label, "files": files}))
            if self.lasting:
                _sync_files(partial)
            remove(directory)
            partial.rename(directory)
            if self.lasting:
                sync_folder(directory.parent)
        except Exception as error:  # libraries that write files may raise anything
            shutil.rmtree(partial, ignore_errors=True)
            raise write_error(error)(
                f"Cannot write {directory} ({error}). The index itself is safe; free some space or fix the "
                "permissions, and open it again."
            ) from error


MAX_INFLATED = 1 << 26  # Bytes that a compressed value may unpack to


def inflate(body: bytes | memoryview, max_bytes: int = MAX_INFLATED) -> bytes:
    """Return decompressed bytes; `zlib.error` if they are more than a limit, or not what was compressed."""
    stream = zlib.decompressobj()
    content = stream.decompress(body, max_bytes)
    if not stream.eof:
        raise zlib.error(f"it is cut off, or unpacks to more than {max_bytes:,} bytes")
    return content


@contextmanager
def derived_values(name: str) -> Iterator[None]:
    """Raise `StorageError` where derived files hold something else than the code that reads them expects."""
    try:
        yield
    except SireError:
        raise
    except Exception as error:  # forged content may raise anything
        raise StorageError(
            f"What is derived from the index is damaged or forged: {name} cannot be read ({type(error).__name__}: "
            f"{error}). Delete the folder `derived` of the index; it is made again from index.sqlite."
        ) from error


def carried_folder(key: str) -> str:
    """Return the name of the folder of files that the next generations of a pool are derived from."""
    return f"{key}-carried"


def _listing(directory: Path) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """Return what a folder of derived files says of itself, and size and checksum of its files."""
    listing = dict(json.loads(read_plain(directory / _CHECKSUMS)))
    return listing, dict(listing["files"])


def damaged_files(directory: Path) -> Iterator[tuple[Path, str]]:
    """Yield damaged files of a folder of derived files, each with what is wrong."""
    try:
        _, files = _listing(directory)
    except Exception:  # noqa: BLE001 - whatever can go wrong with foreign bytes
        yield directory / _CHECKSUMS, "it cannot be read"
        return
    for name, noted in files.items():
        file = directory / name
        try:
            if not _is_right(file, noted):
                yield file, "it is not what was written"
        except FileNotFoundError:
            yield file, "it is missing"
        except OSError as error:
            yield file, f"it cannot be read ({error.strerror})"


def _sync_files(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_file():
            sync_file(path)
    sync_folder(folder)


def _is_right(path: Path, noted: Sequence[int]) -> bool:
    return is_plain(path) and _size_and_checksum(path) == list(noted)


def _size_and_checksum(path: Path) -> list[int]:
    """Return the size of a file and its CRC-32: against accidents, not against forgery."""
    checksum = 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return [path.stat().st_size, checksum]
