"""Documents that were handed to a `SireDocumentIndex` and are not indexed yet."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from sire_core.errors import StorageError
from sire_core.index import Index
from sire_core.types import Document, Passage

__all__ = ["Pending", "pending_of"]

_NEVER = Document("")
_lock = threading.Lock()
_known: WeakKeyDictionary[Index, Pending] = WeakKeyDictionary()


class Pending:
    """The last word on each document: a new text, or that it is gone. Thread-safe; one process writes at a time.

    With a file every change is on disk before `put` returns: a record manager that notes a document as indexed must not
    be wrong because the process ended before the next search.

    Args:
        path: A JSONL file in the index folder; None keeps everything in memory.

    Attributes:
        flushing: Held by who indexes what waits.
    """

    def __init__(self, path: Path | None) -> None:
        self.flushing = threading.Lock()
        self._path = path
        self._lock = threading.RLock()
        self._memory: dict[str, Document | None] = {}

    def put(self, changes: Mapping[str, Document | None]) -> None:
        """Note documents by id; None deletes.

        Raises:
            StorageError: The file cannot be written; nothing is noted.
        """
        with self._lock:
            if self._path is None:
                _merge(self._memory, changes)
            elif changes:
                _append(self._path, changes)

    def changes(self) -> dict[str, Document | None]:
        """Everything that waits, by id, oldest last word first."""
        with self._lock:
            return dict(self._memory) if self._path is None else _read(self._path)

    def done(self, changes: Mapping[str, Document | None]) -> None:
        """Forget what was indexed, unless it changed again in the meantime.

        Raises:
            StorageError: The file cannot be written.
        """
        with self._lock:
            rest = {name: found for name, found in self.changes().items() if changes.get(name, _NEVER) != found}
            if self._path is None:
                self._memory = rest
            else:
                _replace(self._path, rest)


def pending_of(index: Index) -> Pending:
    """What waits for an index; shared by all retrievers over the same object, configured copies included."""
    with _lock:
        if index not in _known:
            path = index.path
            _known[index] = Pending(None if path is None else path / "pending.jsonl")
        return _known[index]


def _line(name: str, document: Document | None) -> str:
    if document is None:
        return json.dumps({"id": name, "gone": True}) + "\n"
    row = {
        "id": name,
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
        "chunks": [chunk if isinstance(chunk, str) else asdict(chunk) for chunk in document.chunks],
    }
    return json.dumps(row) + "\n"


def _merge(known: dict[str, Document | None], changes: Mapping[str, Document | None]) -> None:
    for name, document in changes.items():
        known.pop(name, None)  # the order is that of the last word
        known[name] = document


def _append(path: Path, changes: Mapping[str, Document | None]) -> None:
    # The empty line in front closes one that a process left unfinished when it was killed.
    text = "\n" + "".join(_line(name, document) for name, document in changes.items())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as lines:
            lines.write(text)
            lines.flush()
            os.fsync(lines.fileno())
    except OSError as error:
        raise _unwritable(path, error) from error


def _replace(path: Path, changes: Mapping[str, Document | None]) -> None:
    try:
        if not changes:
            path.unlink(missing_ok=True)
            return
        partial = path.with_suffix(".partial")
        partial.write_text("".join(_line(name, document) for name, document in changes.items()), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"Cannot write {path} ({error.strerror}). Make room or fix the permissions, and do it again.")


def _read(path: Path) -> dict[str, Document | None]:
    changes: dict[str, Document | None] = {}
    if not path.exists():
        return changes
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # an empty line, or one whose writer was killed: nobody was promised that it is safe
            continue
        _merge(changes, {row["id"]: None if row.get("gone", False) else _document(row)})
    return changes


def _document(row: Mapping[str, Any]) -> Document:
    chunks = tuple(chunk if isinstance(chunk, str) else Passage(**chunk) for chunk in row["chunks"])
    return Document(row["id"], row["text"], row["title"], row["metadata"], chunks)
