"""Files of an index folder: plain files and folders only, links are never followed; JSON with a checksum.

The index has a few; adapters of frameworks keep theirs in the same folder, so that backups contain them and
`sire check` checks them.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sire_core.atomic_files import replacing
from sire_core.errors import NoSpaceError, StorageError

ADVICE = {
    "llama_index_nodes.json": (
        "It says which nodes a LlamaIndex vector store holds. Empty the vector store, delete this folder, and run the "
        "pipeline again."
    ),
    "llama_index.json": (
        "It holds the settings of a LlamaIndex retriever: delete it, and give similarity_top_k and recipe again, and "
        "transformations where the documents were cut by some."
    ),
    "langchain.json": "It holds the settings of a LangChain retriever: delete it, and give k and recipe again.",
}
"""Advice on damage of the files that adapters write beside an index, by name."""
DATABASE_ENDS = ("", "-wal", "-shm", "-journal")  # A SQLite database, and the files that SQLite keeps beside it

FILES = frozenset(
    {
        *(f"{name}{end}" for name in ("index.sqlite", "calls.sqlite", "writer.lock") for end in DATABASE_ENDS),
        *("manifest.json", "sources.json", "verified.json", "known_files.json"),
        *("llama_index_nodes.json", "llama_index.json", "langchain.json"),
    }
)
"""Names of all files in an index folder, those of adapters included."""

FOLDERS = frozenset({"derived"})  # Names of all folders in an index folder

_DERIVED = re.compile(r"[0-9a-f]{8,64}-(?:\d+|carried)(?:\.\d+-\d+\.partial)?")


_MAX_NAME, _MAX_PATH = 255, 4000  # Bytes of a name and of a path on all common file systems


def check_path(path: Path) -> None:
    """Raise `StorageError` for what no file system takes as a path."""
    encoded = str(path).encode("utf-8", "replace")
    if "\0" in str(path):
        raise StorageError(f"{str(path)[:100]!r} is no path of a folder: it holds a zero character. Name another one.")
    if len(encoded) > _MAX_PATH or any(len(part.encode("utf-8", "replace")) > _MAX_NAME for part in path.parts):
        raise StorageError(f"The path {str(path)[:100]!r}... is too long for a folder. Name a shorter one.")


def is_derived_name(name: str) -> bool:
    """True if a folder inside `derived` has a name that we give."""
    return _DERIVED.fullmatch(name) is not None


def is_plain(path: Path, *, folder: bool = False) -> bool:
    """True if there is a plain file (or folder), and no link to one."""
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


def raise_if_whole(file: Path, error: Exception) -> None:
    """Raise our error where a file could not be read because of the system, which says nothing about damage."""
    if isinstance(error, OSError) and error.errno not in (None, errno.ELOOP):
        reason = TOO_MANY if has_few_descriptors(error) else error.strerror
        raise StorageError(
            f"{file} cannot be read: {reason}. Nothing says that it is damaged: read it as a user who may."
        ) from error


def remove(path: Path) -> None:
    """Remove a derived folder, or a link that has its name; never what the link leads to."""
    with suppress(OSError):
        if is_plain(path, folder=True):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


TOO_MANY = "too many open files. Raise the limit (ulimit -n), or close indexes"


def system_limit(error: Exception, folder: Path | None) -> str:
    """Return which limit of the system caused an error of SQLite, and what to do; empty if none did."""
    if "lock" in str(error) and folder is not None and _has_no_locks(folder):
        return "lies on a file system that gives no locks. Put the index on a local disk, or start its lock service."
    if any(words in str(error) for words in ("unable to open", "readonly", "disk I/O")) and _has_few_descriptors():
        return f"cannot be opened: {TOO_MANY}."
    return ""


_NO_SPACE = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def write_error(error: BaseException) -> type[StorageError]:
    """The class of our error for a file that cannot be written."""
    if isinstance(error, OSError):
        return NoSpaceError if error.errno in _NO_SPACE else StorageError
    import sqlite3  # only where something failed: importing us is to load little

    is_full = any(words in str(error) for words in ("disk is full", "disk I/O"))
    return NoSpaceError if isinstance(error, sqlite3.Error) and is_full else StorageError


def has_few_descriptors(error: OSError) -> bool:
    """True if the process or the machine has no file descriptor left."""
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
    """True if the file system refuses locks, tried on a file of our own."""
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


def checksum(content: object) -> int:
    """Return the CRC-32 of JSON content: against accidents, not against forgery."""
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def replace_json(file: Path, content: object) -> None:
    """Write a file atomically; it is on disk when this returns."""
    with replacing(file) as partial, partial.open("x", encoding="utf-8") as lines:
        lines.write(json.dumps(content, indent=1))
        lines.flush()
        os.fsync(lines.fileno())
    sync_folder(file.parent)


def write_checked(file: Path, content: object) -> None:
    """Write content with a checksum of it and of the file's name."""
    replace_json(file, {"content": content, "checksum": checksum([file.name, content])})


def read_checked(file: Path, form: type = object) -> Any:
    """Return what `write_checked` wrote; raise `StorageError` with advice if it is damaged."""
    try:
        data = json.loads(read_plain(file))
        content = data["content"]
        if data["checksum"] == checksum([file.name, content]) and isinstance(content, form):
            return content
        reason = "its checksum is another"
    except FileNotFoundError:
        raise
    except NotADirectoryError as error:  # the folder's path leads through a file: there is nothing either
        raise FileNotFoundError(file) from error
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise_if_whole(file, error)
        reason = str(error)
    raise StorageError(
        f"{file} is not what was written ({reason}). {ADVICE.get(file.name, 'Restore it from a backup.')}"
    )


def damaged_adapter_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the paths of damaged files of adapters in an index folder, with advice."""
    for name, advice in ADVICE.items():
        with suppress(FileNotFoundError):
            try:
                read_checked(folder / name)
            except StorageError:
                yield name, advice


def copy_adapter_files(folder: Path, target: Path) -> None:
    """Copy the files of adapters to a copy of an index."""
    for name in ADVICE:
        remove(target / name)
        require_plain(folder / name)
        if (folder / name).exists():
            shutil.copy2(folder / name, target / name, follow_symlinks=False)


def read_optional(folder: str | os.PathLike[str] | None, name: str) -> dict[str, Any]:
    """A mapping that is checked as by `read_checked`; empty without a folder or file."""
    if folder is not None:
        check_path(Path(folder))
    try:
        return {} if folder is None else read_checked(Path(folder) / name, dict)
    except FileNotFoundError:
        return {}


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk. Systems that cannot (Windows) do so themselves."""
    if hasattr(os, "O_DIRECTORY"):
        sync_file(folder, os.O_DIRECTORY)


def sync_file(path: Path, flags: int = 0) -> None:
    """Sync a file to disk."""
    handle = os.open(path, os.O_RDONLY | flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
