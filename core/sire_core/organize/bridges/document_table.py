"""Which document lists which entity, as arrays: what bridging facts remember of documents between changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import chained_hashes, ranges
from sire_core.organize.array_notes import pack_arrays, unpack_arrays
from sire_core.organize.facts.aggregates import hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.bridges.entities import SourceDocument
    from sire_core.organize.bridges.source_documents import DocumentPassages

    Hashes = NDArray[np.uint64]
    Numbers = NDArray[np.int64]

__all__ = ["DocumentTable", "Listings", "positions"]


def _no_hashes() -> Hashes:
    return np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Listings:
    """Entities, and what all documents together say of each.

    Attributes:
        keys: Hashes of the entity keys, ascending, uint64 `[entities]`.
        frequencies: In how many documents each is listed, `[entities]`.
        signatures: Of all that its evidence may be made from, `[entities]`.
        first: Its first row in the table, `[entities]`.
        entity_of: Entity of each row, `[rows]`.
    """

    keys: Hashes
    frequencies: Numbers
    signatures: Hashes
    first: Numbers
    entity_of: Numbers

    def unlike(self, other: Listings) -> NDArray[np.bool_]:
        """Which entities the other does not know, or knows something else of, `[entities]`."""
        place = positions(other.keys, self.keys)
        signatures = np.append(other.signatures, np.uint64(0))[place]
        return np.asarray((place < 0) | (signatures != self.signatures))

    def frequencies_of(self, keys: Hashes) -> list[int]:
        """In how many documents some entities are listed."""
        found: list[int] = np.append(self.frequencies, 0)[positions(self.keys, keys)].tolist()
        return found


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """Documents in corpus order, and a row for each entity that each of them lists.

    Names and facts themselves stand in notes, one per document; only those of entities of which something changed are
    read.

    Attributes:
        extractor: Fingerprint of who made the records.
        heads: Names of the documents, see `DocumentPassages.head`.
        versions: Hashes of their passages, uint64 `[documents]`.
        counts: Rows of each, int64 `[documents]`.
        keys: Hashes of the entity keys, uint64 `[rows]`.
        signatures: Of what the document says of the entity and calls it, uint64 `[rows]`.
    """

    extractor: str = ""
    heads: tuple[str, ...] = ()
    versions: Hashes = field(default_factory=_no_hashes)
    counts: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    keys: Hashes = field(default_factory=_no_hashes)
    signatures: Hashes = field(default_factory=_no_hashes)

    def outdated(
        self, documents: Sequence[DocumentPassages], versions: Sequence[int], redone: Collection[str], extractor: str
    ) -> list[DocumentPassages]:
        """Documents whose records have to be read.

        Args:
            documents: All after a change.
            versions: Of these.
            redone: Ids of chunks whose records changed.
            extractor: Fingerprint of who made the records.
        """
        if extractor != self.extractor:
            return list(documents)
        known = dict(zip(self.heads, self.versions.tolist(), strict=True))
        return [
            document
            for document, version in zip(documents, versions, strict=True)
            if known.get(document.head) != version or any(unit.id in redone for unit in document.units)
        ]

    def with_documents(
        self,
        documents: Sequence[DocumentPassages],
        versions: Sequence[int],
        fresh: Mapping[str, SourceDocument],
        extractor: str,
    ) -> DocumentTable:
        """The table after a change.

        Args:
            documents: All, in corpus order.
            versions: Of these.
            fresh: Those that were read, by head.
            extractor: Fingerprint of who made the records.
        """
        rows = {head: _rows(document) for head, document in fresh.items()}
        pairs = np.array([pair for part in rows.values() for pair in part], dtype=np.uint64).reshape(-1, 2)
        counts = np.concatenate([self.counts, np.array([len(part) for part in rows.values()], dtype=np.int64)])
        starts = np.cumsum(counts) - counts
        place = {head: number for number, head in enumerate((*self.heads, *rows))}  # what was read comes last and wins
        chosen = np.array([place[document.head] for document in documents], dtype=np.int64)
        source = ranges(starts[chosen], counts[chosen])
        return DocumentTable(
            extractor=extractor,
            heads=tuple([document.head for document in documents]),
            versions=np.array(versions, dtype=np.uint64),
            counts=counts[chosen],
            keys=np.concatenate([self.keys, pairs[:, 0]])[source],
            signatures=np.concatenate([self.signatures, pairs[:, 1]])[source],
        )

    def listings(self) -> Listings:
        """The rows by entity."""
        order = np.argsort(self.keys, kind="stable")
        keys, starts, frequencies = np.unique(self.keys[order], return_index=True, return_counts=True)
        entity_of = np.empty(len(order), dtype=np.int64)
        entity_of[order] = np.repeat(np.arange(len(keys)), frequencies)
        return Listings(
            keys=keys,
            frequencies=frequencies.astype(np.int64),
            signatures=chained_hashes(self.signatures[order], frequencies.astype(np.int64)),
            first=order[starts].astype(np.int64),
            entity_of=entity_of,
        )

    def to_note(self) -> bytes:
        """Bytes for the store."""
        arrays: dict[str, NDArray[Any]] = {
            "extractor": np.array([self.extractor.encode()]),
            "heads": np.array(self.heads, dtype="S24"),
            "versions": self.versions,
            "counts": self.counts,
            "keys": self.keys,
            "signatures": self.signatures,
        }
        return pack_arrays(arrays)

    @classmethod
    def from_note(cls, note: bytes | None) -> DocumentTable:
        """What `to_note` wrote; an empty table at first."""
        if note is None:
            return cls()
        arrays = unpack_arrays(note)
        return cls(
            arrays["extractor"][0].decode(),
            tuple(np.char.decode(arrays["heads"], "ascii").tolist()),
            *(arrays[name] for name in ("versions", "counts", "keys", "signatures")),
        )


def positions(known: Hashes, wanted: Hashes) -> Numbers:
    """Where values stand in an ascending array; -1 for those that do not."""
    place = np.searchsorted(known, wanted)
    there = np.append(known, np.uint64(0))[place] == wanted
    return np.where(there & (place < len(known)), place, -1).astype(np.int64)


def _rows(document: SourceDocument) -> list[tuple[int, int]]:
    """Hash of the key and signature of each entity."""
    linked = document.linked
    said = [part for fact in document.facts for part in (fact.text, *fact.chunk_ids, "")]
    whole = str(hash64("\0".join([document.title, *said])))
    return [
        (hash64(key), hash64("\0".join([whole, *forms, "", *map(str, linked.get(key, ()))])))
        for key, forms in document.names.items()
    ]
