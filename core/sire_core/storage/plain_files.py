"""Guards of an index folder: its files are plain files, its folders plain folders, and links are never followed."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sire_core.errors import StorageError

DATABASE_ENDS = ("", "-wal", "-shm", "-journal")
"""A SQLite database, and the files that SQLite keeps beside it."""

FILES = frozenset(
    {
        *(f"{name}{end}" for name in ("index.sqlite", "calls.sqlite") for end in DATABASE_ENDS),
        *(f"{name}{end}" for name in ("writer.lock", "pending.lock") for end in DATABASE_ENDS),
        *("manifest.json", "sources.json", "verified.json", "known_files.json"),
        *("llama_index_nodes.json", "llama_index.json", "langchain.json"),
    }
)
"""Names of all files in an index folder, those of adapters included."""

FOLDERS = frozenset({"derived", "pending"})
"""Names of all folders in an index folder."""

_DERIVED = re.compile(r"[0-9a-f]{8,64}-(?:\d+|carried)(?:\.\d+-\d+\.partial)?")


def is_derived_name(name: str) -> bool:
    """Whether a folder inside `derived` has a name that we give."""
    return _DERIVED.fullmatch(name) is not None


def is_plain(path: Path, *, folder: bool = False) -> bool:
    """Whether there is a plain file (or folder), and no link to one."""
    mode = path.lstat().st_mode
    return stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)


def require_plain(path: Path, *, folder: bool = False) -> None:
    """Raise if something else than a plain file (or folder) has this name; nothing at all is fine."""
    with suppress(OSError):  # what cannot be looked at cannot be opened either
        if not is_plain(path, folder=folder):
            raise StorageError(
                f"{path} is {_kind(path.lstat().st_mode)}; an index keeps {'a folder' if folder else 'a plain file'} "
                "there and follows no links. Move it away (what a link leads to stays), or restore the index from a "
                "backup."
            )


def misplaced(folder: Path) -> Iterator[Path]:
    """Entries of an index folder that have a name of ours and are links or of another type."""
    with os.scandir(folder) as entries:
        for entry in entries:
            is_ours = entry.name in FILES or entry.name in FOLDERS
            right = entry.is_dir if entry.name in FOLDERS else entry.is_file
            if is_ours and not right(follow_symlinks=False):
                yield Path(entry.path)


def read_plain(path: Path) -> bytes:
    """Content of a plain file; a link is not followed, a pipe not waited for."""
    if not is_plain(path):
        raise OSError(f"{path} is no plain file")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        return file.read()


def remove(path: Path) -> None:
    """Remove a derived folder, or a link that has its name; never what the link leads to."""
    with suppress(OSError):
        if is_plain(path, folder=True):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


TOO_MANY = "too many open files. Raise the limit (ulimit -n), or close indexes"


def system_limit(error: Exception, folder: Path | None) -> str:
    """What a limit of the system has to do with an error of SQLite, and what to do; empty when nothing."""
    if "lock" in str(error) and folder is not None and _has_no_locks(folder):
        return "lies on a file system that gives no locks. Put the index on a local disk, or start its lock service."
    if any(words in str(error) for words in ("unable to open", "readonly", "disk I/O")) and _has_few_descriptors():
        return f"cannot be opened: {TOO_MANY}."
    return ""


def has_few_descriptors(error: OSError) -> bool:
    """Whether the process or the machine has no file descriptor left."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


_NEEDED = 8
"""Descriptors that SQLite takes for a change: the files, their logs, a directory. Those of a failed one are free."""


def _has_few_descriptors() -> bool:
    held: list[int] = []
    try:
        for _ in range(_NEEDED):
            held.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 - those before the first error are closed
    except OSError as limit:
        return has_few_descriptors(limit)
    finally:
        for descriptor in held:
            os.close(descriptor)
    return False


def _has_no_locks(folder: Path) -> bool:
    """Whether the file system refuses locks, tried on a file of our own."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno == errno.ENOLCK
    return False


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a folder" if stat.S_ISDIR(mode) else "a file" if stat.S_ISREG(mode) else "a pipe or a device"
