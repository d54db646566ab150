"""From chunks to the chunk units of the pool, and to the corpus after a change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sire_core.corpus.changes import CorpusChange, StoredDocument
from sire_core.filters import comparable
from sire_core.protocols import Delta
from sire_core.types import Chunk, Unit, UnitKind

__all__ = [
    "CorpusUpdate",
    "PassageChange",
    "chunk_units",
    "chunks_after",
    "differs",
    "documents_after",
    "passage_change",
]


def chunk_units(chunks: Sequence[Chunk]) -> list[Unit]:
    """One unit per distinct passage, in corpus order.

    Passages with the same title, text and metadata are one unit that stands on all of their chunks.
    Other metadata keeps them apart, so that a filter never has to choose between two owners of one text.
    """
    groups: dict[tuple[str, str, str], list[Chunk]] = {}
    for chunk in chunks:
        metadata = json.dumps(dict(chunk.metadata), sort_keys=True) if chunk.metadata else ""
        groups.setdefault((chunk.title, chunk.text, metadata), []).append(chunk)
    return [
        Unit(
            id=same[0].id,
            kind=UnitKind.CHUNK,
            text=same[0].text,
            chunk_ids=tuple(chunk.id for chunk in same),
            title=same[0].title,
            metadata=same[0].metadata,
            source_ids=tuple(chunk.source_id for chunk in same) if any(chunk.source_id for chunk in same) else (),
        )
        for same in groups.values()
    ]


def chunks_after(old: Sequence[Chunk], change: CorpusChange, stored: Mapping[str, StoredDocument]) -> list[Chunk]:
    """Chunks after a change, ordered by (document sequence, position, id)."""
    touched = {document.id for document in change.put_documents} | set(change.drop_documents)
    sequence = {document.id: document.sequence for document in (*stored.values(), *change.put_documents)}
    chunks = [chunk for chunk in old if chunk.doc_id not in touched] + list(change.put_chunks)
    return sorted(chunks, key=lambda chunk: (sequence[chunk.doc_id], chunk.position, chunk.id))


def documents_after(change: CorpusChange, stored: Mapping[str, StoredDocument]) -> list[StoredDocument]:
    """Documents after a change, ordered by sequence, then id."""
    documents = {**stored, **{document.id: document for document in change.put_documents}}
    gone = set(change.drop_documents)
    staying = (document for document in documents.values() if document.id not in gone)
    return sorted(staying, key=lambda document: (document.sequence, document.id))


@dataclass(frozen=True, slots=True)
class CorpusUpdate:
    """A corpus before and after one change.

    Attributes:
        stored: Documents before.
        change: What changes.
        old_chunks: Chunks before, in corpus order.
        chunks: Chunks after, in corpus order.
        hashes: Content hash of each of these by id.
    """

    stored: Mapping[str, StoredDocument]
    change: CorpusChange
    old_chunks: Sequence[Chunk]
    chunks: Sequence[Chunk]
    hashes: Mapping[str, str]

    @property
    def documents(self) -> int:
        """Number of documents after."""
        return len(self.stored) + self.change.added - len(self.change.drop_documents)


@dataclass(frozen=True, slots=True)
class PassageChange:
    """What a change of the corpus does to the chunk units.

    Attributes:
        delta: Units that come, change or go.
        regrouped: Ids of chunks that stay, but stand in one unit with others than before.
    """

    delta: Delta
    regrouped: frozenset[str]


def passage_change(update: CorpusUpdate) -> PassageChange:
    """Compare the chunk units before and after a change, of changed documents and of what is said in them."""
    touched = {document.id for document in update.change.put_documents} | set(update.change.drop_documents)
    both = (update.old_chunks, update.chunks)
    said = {(chunk.title, chunk.text) for chunks in both for chunk in chunks if chunk.doc_id in touched}
    old, new = (chunk_units([c for c in chunks if (c.title, c.text) in said]) for chunks in both)
    known = {unit.id: unit for unit in old}
    staying = {unit.id for unit in new}
    was, now = ({chunk: unit.chunk_ids for unit in units for chunk in unit.chunk_ids} for units in (old, new))
    delta = Delta(
        put_units=tuple(unit for unit in new if unit.id not in known or differs(unit, known[unit.id])),
        drop_units=tuple(unit for unit in known if unit not in staying),
    )
    return PassageChange(delta, frozenset(chunk for chunk in now if chunk in was and was[chunk] != now[chunk]))


def differs(unit: Unit, other: Unit) -> bool:
    """Whether two versions differ; `1` and `True` in metadata do, which Python takes for equal."""
    both = unit.metadata, other.metadata
    return unit != other or (both[0] is not both[1] and comparable(both[0]) != comparable(both[1]))
