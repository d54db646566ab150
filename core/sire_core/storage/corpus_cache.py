"""`CorpusCache`: documents and passages of an index, read once and brought along with every commit of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Protocol

from sire_core.corpus.changes import CorpusChange
from sire_core.corpus.stored_corpus import StoredCorpus
from sire_core.errors import StorageError

if TYPE_CHECKING:
    from sire_core.corpus.changes import StoredDocument
    from sire_core.storage.commit import Commit
    from sire_core.types import Chunk

__all__ = ["CorpusCache"]

_MOST = 200_000
"""Passages that are kept between two changes: 1.7 kB each; reading more takes long, but less than a change of these."""
_FEW = 1000
"""Documents of a commit that are read again behind it; after larger ones the next change reads all."""


class CorpusTables(Protocol):
    """What is read of a store; its own methods say more."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything read inside is of one commit."""
        ...

    def commits(self) -> tuple[str, str]:
        """Names of the last commit and of the one before."""
        ...

    def documents(self, only: Sequence[str] | None = None) -> dict[str, StoredDocument]:
        """Documents by id."""
        ...

    def chunks(self, documents: Mapping[str, StoredDocument] | None = None) -> list[Chunk]:
        """All passages."""
        ...

    def chunks_of(self, documents: Mapping[str, StoredDocument]) -> list[Chunk]:
        """Passages of some documents."""
        ...


class CorpusCache:
    """Reads the corpus of a store. What was read is kept for the next change, which mostly comes from here, too.

    Args:
        store: The store.
    """

    def __init__(self, store: CorpusTables) -> None:
        self._store = store
        self._kept: tuple[str, StoredCorpus] | None = None

    def read(self) -> StoredCorpus:
        """The corpus as of the last commit, by any process."""
        with self._store.snapshot():
            commit, kept = self._store.commits()[0], self._kept
            if kept is not None and kept[0] == commit:
                return kept[1]
            documents = self._store.documents()
            chunks = self._store.chunks(documents)
        found = StoredCorpus.of(documents, chunks)
        self._keep(commit, found)
        return found

    def follow(self, commit: Commit) -> None:
        """Bring along what is kept behind a commit that was just made here."""
        kept, self._kept = self._kept, None
        if kept is None or len(commit.put_documents) > _FEW:
            return
        with suppress(StorageError), self._store.snapshot():  # it is committed; the next change reads all
            name, before = self._store.commits()
            if kept[0] == before:  # as stored: what the caller holds of its documents may change
                put = self._store.documents([document.id for document in commit.put_documents])
                change = CorpusChange(
                    tuple(put.values()), tuple(self._store.chunks_of(put)), tuple(commit.drop_documents)
                )
                self._keep(name, kept[1].updated(change).after)

    def _keep(self, commit: str, corpus: StoredCorpus) -> None:
        self._kept = (commit, corpus) if len(corpus.chunks) <= _MOST else None
