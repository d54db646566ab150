"""Small JSON files in the index folder: written atomically, synced to disk, and verified when they are read.

The index has a few; adapters of frameworks keep theirs in the same folder, so that backups contain them and
`sire check` checks them.

"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sire_core.errors import StorageError
from sire_core.storage.derived import sync_folder
from sire_core.storage.plain_files import FOLDERS, read_plain, remove, require_plain

ADVICE = {
    "pending": (
        "It holds changes of documents that a LangChain index was given and that no search has seen yet. Delete it and "
        "hand in again the documents that were added, replaced or deleted last (index() with force_update=True)."
    ),
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
"""What adapters write beside an index, files or folders of files, and what to do where they are damaged."""


def checksum(content: object) -> int:
    """Return the CRC-32 of JSON content: against accidents, not against forgery."""
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def replace_json(file: Path, content: object) -> None:
    """Write a file atomically; it is on disk when this returns."""
    partial = file.with_suffix(f".{os.getpid()}.partial")
    try:
        partial.unlink(missing_ok=True)  # so that nothing is written through a link
        with partial.open("x", encoding="utf-8") as lines:
            lines.write(json.dumps(content, indent=1))
            lines.flush()
            os.fsync(lines.fileno())
        partial.replace(file)
        sync_folder(file.parent)
    except OSError:
        with suppress(OSError):  # a read-only file system refuses even that
            partial.unlink()
        raise


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
        reason = str(error)
    advice = ADVICE.get(file.name) or ADVICE.get(file.parent.name, "Restore it from a backup.")
    raise StorageError(f"{file} is not what was written ({reason}). {advice}")


def damaged_adapter_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the paths of damaged files of adapters in an index folder, with advice."""
    for name, advice in ADVICE.items():
        path = folder / name
        for file in sorted(path.glob("*.json")) if name in FOLDERS else [path]:
            if not _is_right(file):
                yield str(file.relative_to(folder)), advice


def _is_right(file: Path) -> bool:
    """Whether a file is intact, or does not exist."""
    try:
        read_checked(file)
    except FileNotFoundError:
        return True
    except StorageError:
        return False
    return True


def copy_adapter_files(folder: Path, target: Path) -> None:
    """Copy the files of adapters to a copy of an index, with the changes that wait there."""
    for name in ADVICE:
        remove(target / name)  # of changes that waited earlier no file may be left
        require_plain(folder / name, folder=name in FOLDERS)
        for file in sorted((folder / name).glob("*.json")) if name in FOLDERS else [folder / name]:
            require_plain(file)
            if file.exists():
                copy = target / file.relative_to(folder)
                copy.parent.mkdir(exist_ok=True)
                shutil.copy2(file, copy, follow_symlinks=False)


def read_optional(folder: str | os.PathLike[str] | None, name: str) -> dict[str, Any]:
    """A mapping that is checked as by `read_checked`; empty without a folder or file."""
    try:
        return {} if folder is None else read_checked(Path(folder) / name, dict)
    except FileNotFoundError:
        return {}
