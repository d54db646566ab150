"""What entities were last told to bridge, as arrays, and the units that came of it (ALGORITHMS 4.3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import chained_hashes, ranges
from sire_core.organize.array_notes import pack_arrays, unpack_arrays
from sire_core.organize.bridges.document_table import positions
from sire_core.organize.facts.aggregates import hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.bridges.document_table import Hashes, Listings, Numbers
    from sire_core.organize.bridges.joined_facts import BridgeFact

__all__ = ["Bridge", "BridgeTable", "SharedTexts", "bridge_from_note", "bridge_name"]


def _no_hashes() -> Hashes:
    return np.empty(0, dtype=np.uint64)


def _no_ids() -> NDArray[np.bytes_]:
    return np.empty(0, dtype="S24")


@dataclass(frozen=True, slots=True)
class Bridge:
    """Bridging facts of one entity.

    Attributes:
        key: Entity key.
        digest: Of the evidence; empty when writing failed, so that it is asked for again.
        facts: Most telling first.
    """

    key: str
    digest: str
    facts: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, key: str, digest: str, facts: Sequence[BridgeFact]) -> Bridge:
        """From what was written."""
        return cls(key, digest, tuple((fact.text, fact.chunk_ids) for fact in facts))

    def hashed(self) -> list[tuple[int, int]]:
        """Hash of the text and of everything, of each fact."""
        return [(hash64(text), hash64("\0".join([self.key, text, *chunks]))) for text, chunks in self.facts]

    def to_note(self) -> bytes:
        """Bytes for the store."""
        return json.dumps([self.key, self.digest, self.facts], ensure_ascii=False).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class SharedTexts:
    """Bridging facts of equal text: what units are made of.

    Attributes:
        texts: Hashes of the texts, ascending, uint64 `[texts]`.
        signatures: Of the facts with their entities and passages, in order, `[texts]`.
        starts: Facts of text i are `order[starts[i]:starts[i + 1]]`, int64 `[texts + 1]`.
        order: Numbers of facts.
    """

    texts: Hashes
    signatures: Hashes
    starts: Numbers
    order: Numbers

    def facts_of(self, number: int) -> list[int]:
        """Facts of a text, in the order in which the corpus lists their entities."""
        return [int(fact) for fact in self.order[self.starts[number] : self.starts[number + 1]]]


@dataclass(frozen=True, slots=True)
class BridgeTable:
    """Entities with evidence, their bridging facts, and the units of these.

    The facts themselves stand in notes, one per entity.

    Attributes:
        keys: Hashes of the entity keys, ascending, uint64 `[entities]`.
        digests: Of their evidence, `[entities]`; empty where writing failed.
        counts: Bridging facts of each, int64 `[entities]`.
        texts: Hashes of the facts' texts, uint64 `[facts]`.
        signatures: Of text, entity and passages, uint64 `[facts]`.
        made_texts: Hashes of the texts of units, ascending, uint64 `[units]`.
        made_signatures: See `SharedTexts.signatures`, `[units]`.
        made_ids: Ids of the units, `[units]`.
    """

    keys: Hashes = field(default_factory=_no_hashes)
    digests: NDArray[np.bytes_] = field(default_factory=_no_ids)
    counts: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    texts: Hashes = field(default_factory=_no_hashes)
    signatures: Hashes = field(default_factory=_no_hashes)
    made_texts: Hashes = field(default_factory=_no_hashes)
    made_signatures: Hashes = field(default_factory=_no_hashes)
    made_ids: NDArray[np.bytes_] = field(default_factory=_no_ids)

    @property
    def failed(self) -> Hashes:
        """Hashes of the entities whose bridging facts could not be written."""
        return np.asarray(self.keys[self.digests == b""], dtype=np.uint64)

    def known(self) -> dict[int, str]:
        """Digests by hash of the entity key, of those that did not fail."""
        digests = np.char.decode(self.digests, "ascii").tolist()
        return {key: found for key, found in zip(self.keys.tolist(), digests, strict=True) if found}

    def with_bridges(self, kept: NDArray[np.bool_], written: Sequence[Bridge]) -> BridgeTable:
        """The table after a change; units are as before.

        Args:
            kept: Which entities stay as they are.
            written: The others that have evidence.
        """
        rows = [bridge.hashed() for bridge in written]
        pairs = np.array([pair for part in rows for pair in part], dtype=np.uint64).reshape(-1, 2)
        stay = np.flatnonzero(kept)
        keys = np.concatenate([self.keys[stay], np.array([hash64(b.key) for b in written], dtype=np.uint64)])
        digests = np.array([bridge.digest.encode() for bridge in written], dtype="S24")
        counts = np.concatenate([self.counts, np.array([len(part) for part in rows], dtype=np.int64)])
        starts = np.cumsum(counts) - counts
        source = np.concatenate([stay, len(self.keys) + np.arange(len(written))])
        order = np.argsort(keys)
        source = source[order]
        facts = ranges(starts[source], counts[source])
        return BridgeTable(
            keys=keys[order],
            digests=np.concatenate([self.digests[stay], digests])[order],
            counts=counts[source],
            texts=np.concatenate([self.texts, pairs[:, 0]])[facts],
            signatures=np.concatenate([self.signatures, pairs[:, 1]])[facts],
            made_texts=self.made_texts,
            made_signatures=self.made_signatures,
            made_ids=self.made_ids,
        )

    def shared(self, listings: Listings) -> SharedTexts:
        """Facts of equal text together, in the order in which the corpus lists their entities."""
        rank = np.repeat(listings.first[positions(listings.keys, self.keys)], self.counts)
        order = np.lexsort((rank, self.texts))
        texts, starts, sizes = np.unique(self.texts[order], return_index=True, return_counts=True)
        return SharedTexts(
            texts,
            chained_hashes(self.signatures[order], sizes.astype(np.int64)),
            np.append(starts, len(order)).astype(np.int64),
            order.astype(np.int64),
        )

    def to_note(self) -> bytes:
        """Bytes for the store."""
        arrays: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in self.__slots__}
        return pack_arrays(arrays)

    @classmethod
    def from_note(cls, note: bytes | None) -> BridgeTable:
        """What `to_note` wrote; an empty table at first."""
        if note is None:
            return cls()
        return cls(**unpack_arrays(note))


def bridge_name(key: int) -> str:
    """Key of the note that holds an entity's bridging facts."""
    return f"{key:016x}"


def bridge_from_note(note: bytes) -> Bridge:
    """What `Bridge.to_note` wrote."""
    key, digest, facts = json.loads(note.decode("utf-8", "surrogatepass"))
    return Bridge(key, digest, tuple((text, tuple(chunks)) for text, chunks in facts))
