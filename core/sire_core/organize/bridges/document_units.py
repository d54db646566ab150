"""Documents as their passages, and which unit stands for which: what `AtomicKnowledge` remembers between changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sire_core.organize.array_notes import pack_arrays, unpack_arrays
from sire_core.organize.facts.aggregates import hash64

if TYPE_CHECKING:
    from sire_core.types import Chunk, Unit

__all__ = ["DocumentUnits", "Written", "distinct_documents"]


@dataclass(frozen=True, slots=True)
class Written:
    """Documents of the same words and metadata, and what tells them apart from others.

    Attributes:
        chunks: Of the first of them.
        chunk_ids: Of all of them, one document after the other.
        signature: Hash of these.
    """

    chunks: tuple[Chunk, ...]
    chunk_ids: tuple[str, ...]
    signature: int


@dataclass(frozen=True, slots=True)
class DocumentUnits:
    """The units that documents became.

    Attributes:
        extractor: Fingerprint of who made the records.
        units: Ids of units by the signature of the documents.
        raw: Signatures of documents that stand as they are.
    """

    extractor: str = ""
    units: Mapping[int, str] = field(default_factory=dict)
    raw: frozenset[int] = frozenset()

    def to_note(self) -> bytes:
        """Bytes for the store."""
        return pack_arrays(
            {
                "extractor": np.array([self.extractor.encode()]),
                "signatures": np.array(list(self.units), dtype=np.uint64),
                "units": np.array(list(self.units.values()), dtype="S24"),
                "raw": np.array(sorted(self.raw), dtype=np.uint64),
            }
        )

    @classmethod
    def from_note(cls, note: bytes | None) -> DocumentUnits:
        """What `to_note` wrote; nothing at first."""
        if note is None:
            return cls()
        arrays = unpack_arrays(note)
        units = np.char.decode(arrays["units"], "ascii").tolist()
        return cls(
            arrays["extractor"][0].decode(),
            dict(zip(arrays["signatures"].tolist(), units, strict=True)),
            frozenset(arrays["raw"].tolist()),
        )


def distinct_documents(chunks: Sequence[Chunk], chunk_units: Sequence[Unit]) -> list[Written]:
    """Documents in corpus order, those of the same title, passages and metadata together.

    Args:
        chunks: In corpus order.
        chunk_units: One per distinct passage.
    """
    passage = {chunk: number for number, unit in enumerate(chunk_units) for chunk in unit.chunk_ids}
    by_document: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_document.setdefault(chunk.doc_id, []).append(chunk)
    # Passages of one title, text and metadata are one unit, so that the units of a document are its content.
    copies: dict[tuple[int, ...], list[list[Chunk]]] = {}
    for found in by_document.values():
        copies.setdefault(tuple([passage[chunk.id] for chunk in found]), []).append(found)
    documents = []
    for same in copies.values():
        chunk_ids = tuple([chunk.id for found in same for chunk in found])
        documents.append(Written(tuple(same[0]), chunk_ids, hash64("\0".join(chunk_ids))))
    return documents
