"""`PendingUnits`: which units of a pool the user's own vector stores have not got yet."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sire_core.storage.store import CORPUS, Store

if TYPE_CHECKING:
    from sire_core.storage.index_files import IndexFiles

__all__ = ["PendingUnits", "behind"]

_logger = logging.getLogger(__name__)


def behind(store: Store, name: str, owners: Sequence[str]) -> list[str]:
    """Ids of a pool's units that one vector store has not got yet, or not as they are.

    Args:
        store: The open index.
        name: Of the vector store.
        owners: Owners of the pool beside the corpus.
    """
    return store.outbox(name).behind([CORPUS, *owners])


class PendingUnits:
    """The units of a pool that some vector stores have not got yet; read again when that has changed.

    Args:
        files: The open index.
        names: Of the stores.
    """

    def __init__(self, files: IndexFiles, names: Sequence[str]) -> None:
        self._files = files
        self._names = names
        self._lock = threading.Lock()
        self._own: Store | None = None
        self._known: tuple[tuple[object, ...], frozenset[str]] = ((), frozenset())

    def ids(self, owners: tuple[str, ...]) -> frozenset[str]:
        """Ids of the units; it is logged once that there are some.

        Args:
            owners: Owners of the pool beside the corpus.
        """
        with self._lock:
            store = self._opened()
            with store.snapshot():
                state = (owners, *(store.outbox(name).state() for name in self._names))
                if state != self._known[0]:
                    found = {name: behind(store, name, owners) for name in self._names}
                    if not self._known[1]:
                        self._tell({name: len(units) for name, units in found.items() if units})
                    self._known = (state, frozenset(unit for units in found.values() for unit in units))
            return self._known[1]

    def close(self) -> None:
        """Close the connection; a later request opens another one."""
        with self._lock:
            if self._own is not None:
                self._own.close()
            self._own = None

    def _opened(self) -> Store:
        """A connection of its own where there is a file: a change of this process does not hold it up."""
        if self._files.folder is None:
            return self._files.store
        if self._own is None:
            self._own = Store(self._files.folder.index_file)
        return self._own

    def _tell(self, waiting: dict[str, int]) -> None:
        for name, count in waiting.items():
            _logger.warning(
                "%s units wait for the vector store %r, and are compared one by one until Index.push() has sent them.",
                f"{count:,}",
                name,
            )
