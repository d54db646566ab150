"""`GraphTable`: what a knowledge graph remembers of its passages between changes, as arrays of hashes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.organize.array_notes import pack_arrays, unpack_arrays
from sire_core.organize.facts.aggregates import hash64
from sire_core.organize.graph.elements import Elements
from sire_core.organize.graph.ragged import Ragged
from sire_core.organize.passage_versions import outdated_passages, passage_version

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.graph.passage_names import PassageNames
    from sire_core.types import Unit

    Claims = Mapping[str, Sequence[tuple[str, ...]]]

__all__ = ["MENTION", "STATEMENT", "TABLE_NOTE", "GraphTable"]

TABLE_NOTE = "table-1"
"""Key of the note that holds the table; its number changes with the layout."""
_RAW = {"keys": np.uint64, "types": np.int32}
MENTION = {"keys": np.uint64, "titles": np.bool_, "own": np.bool_, "lengths": np.int32, "lists": np.uint64}
"""Columns of the mentions of a passage: entity; whether it is the title; whether the entity's own name is spelt out;
length of the longest name that is; hash of the names (see `list_hash`)."""
STATEMENT = {"keys": np.uint64, "heads": np.uint64, "tails": np.uint64}
"""Columns of the statements of a passage: relation, and its ends."""


def _none() -> NDArray[np.uint64]:
    return np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class GraphTable:
    """Names, mentions and statements of all passages, in corpus order, and what became of them.

    Attributes:
        extractor: Fingerprint of who made the records.
        passages: Ids of the chunk units, `[passages]`.
        versions: Hash of the chunks that each passage stands for, `[passages]`.
        titles: Hash of the key of each passage's title, 0 for none, `[passages]`.
        types: Names of the entity types.
        raw: Keys and types (numbers into `types`) of the entities of each passage's record.
        claims: Entity key and keys of its aliases, by passage, for those that claim any.
        merged: Hash of the canonical key by hash of every key that has another one.
        mentions: See `MENTION`.
        statements: See `STATEMENT`.
        triples: Number of triples of each passage, `[passages]`.
        entities: Units or nodes of the entities.
        relations: Units of the relations.
        silent: Ids of units whose summary is missing.
    """

    extractor: str = ""
    passages: tuple[str, ...] = ()
    versions: NDArray[np.uint64] = field(default_factory=_none)
    titles: NDArray[np.uint64] = field(default_factory=_none)
    types: tuple[str, ...] = ()
    raw: Ragged = field(default_factory=lambda: Ragged.of((), _RAW))
    claims: Claims = field(default_factory=dict)
    merged: Mapping[int, int] = field(default_factory=dict)
    mentions: Ragged = field(default_factory=lambda: Ragged.of((), MENTION))
    statements: Ragged = field(default_factory=lambda: Ragged.of((), STATEMENT))
    triples: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    entities: Elements = field(default_factory=Elements)
    relations: Elements = field(default_factory=Elements)
    silent: tuple[str, ...] = ()

    def outdated(self, units: Sequence[Unit], redone: Collection[str], extractor: str) -> list[Unit]:
        """Passages whose records have to be read.

        Args:
            units: All chunk units after a change.
            redone: Ids of chunks whose records changed.
            extractor: Fingerprint of who made the records.
        """
        if extractor != self.extractor:
            return list(units)
        return outdated_passages(units, self.passages, self.versions, redone)

    def places(self, units: Sequence[Unit], fresh: Collection[str]) -> NDArray[np.int64]:
        """Number of each passage in this table; those that were read anew are numbered behind it, in their order."""
        number = {found: place for place, found in enumerate((*self.passages, *fresh))}
        return np.array([number[unit.id] for unit in units], dtype=np.int64)

    def with_names(self, units: Sequence[Unit], fresh: Mapping[str, PassageNames], extractor: str) -> GraphTable:
        """The table after a change; merges and all that follows from them are as before.

        Args:
            units: All chunk units, in corpus order.
            fresh: The passages that were read anew.
            extractor: Fingerprint of who made the records.
        """
        told = (entity.type for said in fresh.values() for entity in said.entities)
        types = tuple(dict.fromkeys((*self.types, *told)))
        number = {name: place for place, name in enumerate(types)}
        rows = [[(hash64(e.key), number[e.type]) for e in said.entities] for said in fresh.values()]
        titles = [hash64(said.title_key) if said.title_key else 0 for said in fresh.values()]
        chosen = self.places(units, fresh)
        raw = self.raw.chosen(Ragged.of(rows, _RAW), chosen)
        used = np.unique(raw["types"])  # nothing of passages that are gone stays
        claims = dict(self.claims)
        for passage, said in fresh.items():
            claims[passage] = [(entity.key, *entity.aliases) for entity in said.entities if entity.aliases]
        return replace(
            self,
            extractor=extractor,
            passages=tuple(unit.id for unit in units),
            versions=np.array([passage_version(unit) for unit in units], dtype=np.uint64),
            titles=np.concatenate([self.titles, np.array(titles, dtype=np.uint64)])[chosen],
            types=tuple(types[code] for code in used.tolist()),
            raw=Ragged(
                raw.counts, {"keys": raw["keys"], "types": np.searchsorted(used, raw["types"]).astype(np.int32)}
            ),
            claims={unit.id: claims[unit.id] for unit in units if claims.get(unit.id)},
        )

    def to_note(self) -> bytes:
        """Bytes for the store."""
        merged = [list(self.merged), list(self.merged.values())]
        texts = [self.extractor, self.types, self.claims, self.silent]
        arrays: dict[str, NDArray[Any]] = {
            "passages": np.array(self.passages, dtype="S24"),
            "versions": self.versions,
            "titles": self.titles,
            "triples": self.triples,
            "merged": np.array(merged, dtype=np.uint64),
            "texts": np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8),
            **self.raw.arrays("raw"),
            **self.mentions.arrays("mentions"),
            **self.statements.arrays("statements"),
            **self.entities.arrays("entities"),
            **self.relations.arrays("relations"),
        }
        return pack_arrays(arrays)

    @classmethod
    def from_note(cls, note: bytes | None) -> GraphTable:
        """What `to_note` wrote; an empty table at first."""
        if note is None:
            return cls()
        arrays = unpack_arrays(note)
        extractor, types, claims, silent = json.loads(arrays["texts"].tobytes())
        return cls(
            extractor=extractor,
            passages=tuple(arrays["passages"].astype(str).tolist()),
            versions=arrays["versions"],
            titles=arrays["titles"],
            types=tuple(types),
            raw=Ragged.from_arrays("raw", arrays),
            claims={passage: [tuple(claim) for claim in found] for passage, found in claims.items()},
            merged=dict(zip(*arrays["merged"].tolist(), strict=True)),
            mentions=Ragged.from_arrays("mentions", arrays),
            statements=Ragged.from_arrays("statements", arrays),
            triples=arrays["triples"],
            entities=Elements.from_arrays("entities", arrays),
            relations=Elements.from_arrays("relations", arrays),
            silent=tuple(silent),
        )
