"""Documents that an index was given and that are not indexed yet; the next search in any process indexes them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sire_core.errors import StorageError
from sire_core.storage.plain_files import ADVICE, read_checked, require_plain, write_checked
from sire_core.types import Document, Passage

_NEVER = Document("")
_PATIENCE = 60.0  # Seconds to wait for other writers of pending changes; each takes the time of one write


class PendingDocuments:
    """The latest change of each document: its new content, or None if it is deleted.

    Safe between threads and processes.

    With a folder every change is on disk before `put` returns: a record manager that notes a document as indexed must
    not be wrong because the process ended before the next search.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._memory: dict[str, Document | None] = {}

    def __bool__(self) -> bool:
        return bool(self._memory) if self._path is None else self._path.exists()

    def put(self, changes: Mapping[str, Document | None]) -> None:
        """Note documents by id; None deletes."""
        if not changes:
            return
        with self._writing():
            if self._path is None:
                _merge(self._memory, changes)
            else:
                _note(self._path, changes)

    def changes(self) -> dict[str, Document | None]:
        """Everything that waits, by id, oldest last word first."""
        if self._path is None:
            with self._lock:
                return dict(self._memory)
        return _read(self._path) if self._path.exists() else {}

    def done(self, changes: Mapping[str, Document | None]) -> None:
        """Forget what was indexed, unless it changed again in the meantime."""
        with self._writing():
            rest = {
                name: document for name, document in self.changes().items() if changes.get(name, _NEVER) != document
            }
            if self._path is None:
                self._memory = rest
            else:
                _note(self._path, rest, instead=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One at a time: who notes a change takes the next number, and who forgets some knows all of them."""
        with self._lock:
            if self._path is None:
                yield
                return
            from sire_core.storage.folder import file_lock

            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _unwritable(self._path, error) from error
            with file_lock(self._path.parent, f"{self._path.name}.lock", _PATIENCE):
                yield


def _row(name: str, document: Document | None) -> dict[str, Any]:
    if document is None:
        return {"id": name, "gone": True}
    return {
        "id": name,
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
        "chunks": [chunk if isinstance(chunk, str) else asdict(replace(chunk, blocks=())) for chunk in document.chunks],
    }


def _merge(documents: dict[str, Document | None], changes: Mapping[str, Document | None]) -> None:
    for name, document in changes.items():
        documents.pop(name, None)  # the order is that of the last word
        documents[name] = document


def _files(path: Path) -> list[Path]:
    """The numbered files, oldest first."""
    require_plain(path, folder=True)
    return sorted((file for file in path.glob("*.json") if file.stem.isdigit()), key=lambda file: int(file.stem))


def _note(path: Path, changes: Mapping[str, Document | None], *, instead: bool = False) -> None:
    """Write a change as the next file; `instead` of all that was noted before, which goes then."""
    before = _files(path)
    file = path / f"{int(before[-1].stem) + 1 if before else 1:08}.json"
    content = {"instead": instead, "changes": [_row(name, document) for name, document in changes.items()]}
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_checked(file, content)
        for old in before if instead else ():
            old.unlink(missing_ok=True)
        if instead and not changes:
            file.unlink()
            with suppress(OSError):  # what a killed process left unfinished stands there
                path.rmdir()
    except OSError as error:
        raise _unwritable(path, error) from error


def _read(path: Path) -> dict[str, Document | None]:
    while True:
        files = _files(path)
        with suppress(FileNotFoundError):  # another process has just indexed them
            return _changes(path, files)
        if files == _files(path):
            raise _lost(path)


def _changes(path: Path, files: list[Path]) -> dict[str, Document | None]:
    """The changes in files of which none is missing."""
    noted: list[list[dict[str, Any]]] = []
    for file in reversed(files):
        if int(file.stem) != int(files[-1].stem) - len(noted):
            break
        content = read_checked(file, dict)
        noted.append(content.get("changes", ()))
        if content.get("instead") or int(file.stem) == 1:
            files = []  # nothing older counts
            break
    if files:
        raise FileNotFoundError(path)
    changes: dict[str, Document | None] = {}
    try:
        for rows in reversed(noted):
            _merge(changes, {row["id"]: None if row.get("gone", False) else _document(row) for row in rows})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StorageError(f"A file of {path} is not what was written ({error!r}). {ADVICE['pending']}") from error
    return changes


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"Cannot write {path} ({error.strerror}). Make room or fix the permissions, and do it again.")


def _lost(path: Path) -> StorageError:
    return StorageError(f"A file of {path} is missing. {ADVICE['pending']}")


def _document(row: Mapping[str, Any]) -> Document:
    chunks = tuple(chunk if isinstance(chunk, str) else Passage(**chunk) for chunk in row["chunks"])
    return Document(row["id"], row["text"], row["title"], row["metadata"], chunks)
