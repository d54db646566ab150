"""Units that are not yet written to the user's vector stores."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sire_core.storage.store import CORPUS, Store

if TYPE_CHECKING:
    from sire_core.storage.index_files import IndexFiles

__all__ = ["PendingUnits", "pending_unit_ids"]

_logger = logging.getLogger(__name__)


def pending_unit_ids(store: Store, name: str, owners: Sequence[str]) -> list[str]:
    """Return ids of units, of the corpus and some owners, that a vector store has not got yet in their present form."""
    return store.outbox(name).pending_of([CORPUS, *owners])


class PendingUnits:
    """Units of a pool that some of the user's vector stores have not got yet; read again after a change."""

    def __init__(self, files: IndexFiles, store_names: Sequence[str]) -> None:
        self._files = files
        self._store_names = store_names
        self._lock = threading.Lock()
        self._connection: Store | None = None
        self._last_state: tuple[object, ...] = ()
        self._last_pending: frozenset[str] = frozenset()

    def ids(self, owners: tuple[str, ...]) -> frozenset[str]:
        """Return the ids of pending units of the corpus and some owners; the first time there are some, log it."""
        with self._lock:
            store = self._open()
            with store.snapshot():
                state = (owners, *(store.outbox(name).state() for name in self._store_names))
                if state != self._last_state:
                    pending = {name: pending_unit_ids(store, name, owners) for name in self._store_names}
                    if not self._last_pending:
                        self._log_pending({name: len(ids) for name, ids in pending.items() if ids})
                    self._last_state = state
                    self._last_pending = frozenset(unit for ids in pending.values() for unit in ids)
            return self._last_pending

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _open(self) -> Store:
        """For a folder, a connection of its own, so that a change by this process does not block it."""
        if self._files.folder is None:
            return self._files.store
        if self._connection is None:
            self._connection = Store(self._files.folder.index_file)
        return self._connection

    def _log_pending(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            _logger.warning(
                "%s units wait for the vector store %r, and are compared one by one until Index.push() has sent them.",
                f"{count:,}",
                name,
            )
