"""`LazyReader`: edges and notes that a view reads when it needs them, of the generation that it shows."""

from __future__ import annotations

from collections.abc import Sequence

from sire_core.errors import SnapshotExpiredError
from sire_core.storage.store import Store
from sire_core.types import Edge

__all__ = ["LazyReader"]


class LazyReader:
    """Reads of one commit.

    Args:
        store: The store.
        commit: Name of the commit; see `Store.commits`.
        owners: Owners of the pool.
    """

    def __init__(self, store: Store, commit: str, owners: Sequence[str]) -> None:
        self._store = store
        self._commit = commit
        self._owners = list(owners)
        self._known: tuple[list[Edge], dict[str, bytes]] | None = None

    def read_now(self) -> None:
        """Read everything now: no later commit makes a difference any more."""
        self._known = (self.edges(), self.notes(""))

    def edges(self) -> list[Edge]:
        """Edges of the pool.

        Raises:
            SnapshotExpiredError: The index has changed.
        """
        if self._known is not None:
            return self._known[0]
        with self._store.snapshot():
            self._check()
            return self._store.edges(self._owners) if self._owners else []

    def notes(self, prefix: str) -> dict[str, bytes]:
        """Notes of the pool whose keys begin with a text; of equal keys the first owner's.

        Raises:
            SnapshotExpiredError: The index has changed.
        """
        if self._known is not None:
            return {key: note for key, note in self._known[1].items() if key.startswith(prefix)}
        found: dict[str, bytes] = {}
        with self._store.snapshot():
            self._check()
            for owner in self._owners:
                found = {**self._store.notes_with(owner, prefix), **found}
        return dict(sorted(found.items()))

    def _check(self) -> None:
        if self._store.commits()[0] != self._commit:
            raise SnapshotExpiredError(
                "The index has changed since this snapshot of it was taken. Take a new one: Index.snapshot()."
            )
