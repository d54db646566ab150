"""Edges and notes of one generation, read when a search needs them."""

from __future__ import annotations

from collections.abc import Sequence

from sire_core.errors import SnapshotExpiredError
from sire_core.storage.store import Store
from sire_core.types import Edge

__all__ = ["LazyReader"]


class LazyReader:
    """Reads edges and notes lazily from one generation."""

    def __init__(self, store: Store, commit: str, owners: Sequence[str]) -> None:
        self._store = store
        self._commit = commit
        self._owners = list(owners)
        self._content: tuple[list[Edge], dict[str, bytes]] | None = None

    def materialize(self) -> None:
        """Load everything, so that later commits cannot change it."""
        self._content = (self.edges(), self.notes(""))

    def edges(self) -> list[Edge]:
        """Return the edges of the pool."""
        if self._content is not None:
            return self._content[0]
        with self._store.snapshot():
            self._check()
            return self._store.edges(self._owners) if self._owners else []

    def notes(self, prefix: str) -> dict[str, bytes]:
        """Return notes of the pool whose keys begin with a prefix; of equal keys the first owner's."""
        if self._content is not None:
            return {key: note for key, note in self._content[1].items() if key.startswith(prefix)}
        notes: dict[str, bytes] = {}
        with self._store.snapshot():
            self._check()
            for owner in self._owners:
                notes = {**self._store.notes_with(owner, prefix), **notes}
        return dict(sorted(notes.items()))

    def _check(self) -> None:
        if self._store.commits()[0] != self._commit:
            raise SnapshotExpiredError(
                "The index has changed since this snapshot of it was taken. Take a new one: Index.snapshot()."
            )
