"""Documents that an index was given and that are not indexed yet; the next search in any process indexes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.errors import StorageError
from sire_core.types import Document, Passage

if TYPE_CHECKING:
    from sire_core.storage.call_cache import CallStore


class PendingChanges(dict[str, Document | None]):
    """Changes by id of the document, the oldest first; `last` is the number of the last one."""

    last = 0


class PendingDocuments:
    """The latest change of each document: its new content, or None if it is deleted.

    Safe between threads and processes. Every change is committed before `put` returns: a record manager that notes a
    document as indexed must not be wrong because the process ended before the next search. `open_calls` gives the open
    cache of model calls, which holds the changes; None where nothing was built, unless told to begin one (`create`).
    """

    def __init__(self, open_calls: Callable[..., CallStore | None]) -> None:
        self._open_calls = open_calls

    def __bool__(self) -> bool:
        calls = self._open_calls()
        return calls is not None and calls.has_pending()

    def put(self, changes: Mapping[str, Document | None]) -> None:
        """Note documents by id; None deletes."""
        calls = self._open_calls(create=True)
        assert calls is not None
        calls.put_pending({name: json.dumps(_row(document)) for name, document in changes.items()})

    def changes(self) -> PendingChanges:
        """Everything that waits."""
        calls, changes = self._open_calls(), PendingChanges()
        for name, body, changes.last in calls.pending() if calls is not None else ():
            changes[name] = _document(name, body)
        return changes

    def done(self, changes: PendingChanges) -> None:
        """Forget what was indexed, unless it changed again in the meantime."""
        calls = self._open_calls()
        if calls is not None:
            calls.drop_pending(changes.last)


def is_any_pending(folder: Path) -> bool:
    """True if documents wait in an index folder."""
    from sire_core.storage.call_cache import CallStore

    file = folder / "calls.sqlite"
    if not file.exists():
        return False
    with closing(CallStore(file)) as calls:
        return calls.has_pending()


def _row(document: Document | None) -> dict[str, Any] | None:
    if document is None:
        return None
    return {
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
        "chunks": [chunk if isinstance(chunk, str) else asdict(replace(chunk, blocks=())) for chunk in document.chunks],
    }


def _document(name: str, body: str) -> Document | None:
    try:
        row = json.loads(body)
        if row is None:
            return None
        chunks = tuple(chunk if isinstance(chunk, str) else Passage(**chunk) for chunk in row["chunks"])
        return Document(name, row["text"], row["title"], row["metadata"], chunks)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StorageError(
            f"The change of the document {name!r} that waits is not what was written. Hand in that document again."
        ) from error
