"""`CorpusColumns`: the columns of a pool about chunks and documents, updated with changes of the corpus."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

    from sire_core.corpus.document_export import StoredDocument
    from sire_core.corpus.stored_corpus import CorpusUpdate, StoredCorpus
    from sire_core.types import Chunk

__all__ = ["ID_TYPE", "MOST_LETTERS", "CorpusColumns"]

MOST_LETTERS = 24
"""Of a unit's id, as `digest` makes them."""
ID_TYPE = f"S{MOST_LETTERS}"


@dataclass(frozen=True, slots=True)
class CorpusColumns:
    """Columns of a pool about the whole corpus. An `Incremental` of it.

    Attributes:
        chunk_ids: Ids of the chunks, in corpus order.
        chunk_documents: Document numbers of the chunks.
        chunk_metadata: Numbers of their metadata.
        documents: Ids of the documents, in corpus order, as JSON.
        titles: Titles of the documents, likewise.
        count: How many documents.
        metadata: The different metadata of chunks as JSON, with their numbers.
    """

    chunk_ids: NDArray[np.bytes_]
    chunk_documents: NDArray[np.int64]
    chunk_metadata: NDArray[np.int64]
    documents: bytes
    titles: bytes
    count: int
    metadata: Mapping[str, int]

    @classmethod
    def of(cls, corpus: StoredCorpus) -> Self:
        """Make the columns of all chunks and documents."""
        return cls.made(corpus.chunks, list(corpus.documents.values()))

    @classmethod
    def made(cls, chunks: Sequence[Chunk], documents: Sequence[StoredDocument]) -> Self:
        """Make the columns of chunks and documents, both in corpus order."""
        empty = np.empty(0, dtype=np.int64)
        nothing = cls(np.empty(0, dtype=ID_TYPE), empty, empty, b"[]", b"[]", 0, {})
        return nothing._followed_by(chunks, documents)

    def updated(self, update: CorpusUpdate) -> Self:
        """Return the columns after a change: extended if it only appends, else made again."""
        change, before, after = update.change, update.before, update.after
        documents = change.put_documents
        last = next(reversed(before.documents.values())).sequence if before.documents else -1  # type: ignore[call-overload] # a dict's
        ascending = all(
            one < other
            for one, other in zip(
                [last, *(d.sequence for d in documents)], (d.sequence for d in documents), strict=False
            )
        )
        if update.old_chunks or change.drop_documents or not ascending:
            return self.of(after)
        return self._followed_by(update.new_chunks, documents)

    def columns(self) -> dict[str, Any]:
        """Return the columns by the names of `Pool`."""
        return {
            "chunk_ids": self.chunk_ids,
            "chunk_documents": self.chunk_documents,
            "chunk_metadata": self.chunk_metadata,
            "documents": self.documents,
            "titles": self.titles,
            "metadata": f"[{','.join(self.metadata)}]".encode(),
        }

    def _followed_by(self, chunks: Sequence[Chunk], documents: Sequence[StoredDocument]) -> Self:
        """Return these columns with more documents and their chunks at the end."""
        number = {document.id: self.count + i for i, document in enumerate(documents)}
        numbers, metadata = dict(self.metadata), list[int]()
        last, metadata_number = None, 0
        for chunk in chunks:
            if chunk.metadata is not last:  # the chunks of a document mostly share one object
                last = chunk.metadata
                metadata_number = numbers.setdefault(
                    json.dumps(dict(last), sort_keys=True) if last else "{}", len(numbers)
                )
            metadata.append(metadata_number)
        owners = [number[chunk.doc_id] for chunk in chunks]
        return type(self)(
            np.concatenate([self.chunk_ids, np.array([chunk.id for chunk in chunks], dtype=ID_TYPE)]),
            np.concatenate([self.chunk_documents, np.array(owners, dtype=np.int64)]),
            np.concatenate([self.chunk_metadata, np.array(metadata, dtype=np.int64)]),
            _longer(self.documents, [document.id for document in documents]),
            _longer(self.titles, [document.title for document in documents]),
            self.count + len(documents),
            numbers,
        )


def _longer(known: bytes, names: Iterable[str]) -> bytes:
    """Return a JSON list with more texts at its end."""
    new = json.dumps(list(names)).encode()
    return new if known == b"[]" else known if new == b"[]" else known[:-1] + b", " + new[1:]
