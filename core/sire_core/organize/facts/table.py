"""The facts of a corpus as arrays, and what was made of them: what aggregates remember between changes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.organize.array_notes import pack_arrays, unpack_arrays
from sire_core.organize.facts.aggregates import FactLine
from sire_core.organize.facts.groups import Lines
from sire_core.organize.passage_versions import outdated_passages, passage_version

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.types import Unit

__all__ = ["FactTable", "facts_from_note", "facts_to_note"]

_NO_LINES = Lines.of(())


@dataclass(frozen=True, slots=True)
class FactTable:
    """Hashes of all facts in corpus order, and the units that aggregates became.

    The facts themselves stand in notes, one per passage; only those that a changed aggregate is made of are read.

    Attributes:
        extractor: Fingerprint of who made the records.
        passages: Ids of the chunk units, in corpus order.
        versions: Hash of the chunks that each passage stands for, `[passages]`.
        counts: Facts of each passage, `[passages]`.
        lines: The facts.
        made: Ids of the units that an aggregate became, by its signature.
        heads: Hash of its first key, by its signature.
    """

    extractor: str = ""
    passages: tuple[str, ...] = ()
    versions: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    lines: Lines = _NO_LINES
    made: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    heads: Mapping[int, int] = field(default_factory=dict)

    def outdated(self, units: Sequence[Unit], redone: Collection[str], extractor: str) -> list[Unit]:
        """Passages whose facts have to be read.

        Args:
            units: All chunk units after a change.
            redone: Ids of chunks whose records changed.
            extractor: Fingerprint of who made the records.
        """
        if extractor != self.extractor:
            return list(units)
        return outdated_passages(units, self.passages, self.versions, redone)

    def with_facts(
        self, units: Sequence[Unit], fresh: Mapping[str, Sequence[FactLine]], extractor: str, entity_key: str
    ) -> FactTable:
        """The table after a change; aggregates are as before.

        Args:
            units: All chunk units, in corpus order.
            fresh: Facts of the passages that were read.
            extractor: Fingerprint of who made the records.
            entity_key: See `name_key`.
        """
        rows = [line.hashed(entity_key) for unit in fresh for line in fresh[unit]]
        both = self.lines.followed_by(Lines.of(rows))
        sizes = np.array([len(lines) for lines in fresh.values()], dtype=np.int64)
        starts = np.cumsum([0, *self.counts, *sizes])
        place = {found: i for i, found in enumerate((*self.passages, *fresh))}  # what was read comes last and wins
        chosen = np.array([place[unit.id] for unit in units], dtype=np.int64)
        counts = np.concatenate([self.counts, sizes])[chosen].astype(np.int64)
        return FactTable(
            extractor=extractor,
            passages=tuple(unit.id for unit in units),
            versions=np.array([passage_version(unit) for unit in units], dtype=np.uint64),
            counts=counts,
            lines=both.take(ranges(starts[:-1][chosen], counts)),
            made=self.made,
            heads=self.heads,
        )

    def passage_of(self, line: int) -> int:
        """Number of the passage that states a fact."""
        return int(np.searchsorted(np.cumsum(self.counts), line, side="right"))

    def to_note(self) -> bytes:
        """Bytes for the store."""
        arrays: dict[str, NDArray[Any]] = {
            "extractor": np.array([self.extractor.encode()]),
            "passages": np.array(self.passages, dtype="S24"),
            "versions": self.versions,
            "counts": self.counts,
            "made": np.array([list(self.made), [self.heads[found] for found in self.made]], dtype=np.uint64),
            "made_counts": np.array([len(ids) for ids in self.made.values()], dtype=np.int64),
            "made_ids": np.array([found for ids in self.made.values() for found in ids], dtype="S24"),
            **self.lines.as_arrays(),
        }
        return pack_arrays(arrays)

    @classmethod
    def from_note(cls, note: bytes | None) -> FactTable:
        """What `to_note` wrote; an empty table at first."""
        if note is None:
            return cls()
        arrays = unpack_arrays(note)
        ids = np.char.decode(arrays["made_ids"], "ascii").tolist()
        ends = np.cumsum(arrays["made_counts"]).tolist()
        signatures, heads = arrays["made"].tolist()
        return cls(
            extractor=arrays["extractor"][0].decode(),
            passages=tuple(np.char.decode(arrays["passages"], "ascii").tolist()),
            versions=arrays["versions"],
            counts=arrays["counts"],
            lines=Lines(*(arrays[name] for name in ("texts", "signatures", "pointers", "keys"))),
            made={s: tuple(ids[start:end]) for s, start, end in zip(signatures, [0, *ends], ends, strict=False)},
            heads=dict(zip(signatures, heads, strict=True)),
        )


def facts_to_note(lines: Sequence[FactLine]) -> bytes:
    """Facts of one passage as bytes for the store."""
    return json.dumps([[line.text, line.entities] for line in lines], ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def facts_from_note(note: bytes, unit: Unit) -> list[FactLine]:
    """What `facts_to_note` wrote."""
    rows = json.loads(note.decode("utf-8", "surrogatepass"))
    return [FactLine(text, tuple(entities), unit.chunk_ids) for text, entities in rows]
