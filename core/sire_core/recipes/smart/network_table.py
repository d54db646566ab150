"""`NetworkTable`: what every passage adds to the graph between entities, as arrays that outlive a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.knowledge.ragged import Ragged, pack_arrays, unpack_arrays
from sire_core.types import hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.types import Unit

    PassageRows = Mapping[str, Sequence[tuple[Any, ...]]]
    """Rows of one passage, by part of the table."""

__all__ = [
    "NETWORK",
    "NetworkTable",
    "passage_version",
]

NETWORK = "entity_network"
"""Key of the note that a table is stored in; queries read it, too."""
_NAMED = {"ids": "S24", "keys": np.uint64, "titles": np.bool_}
_UNNAMED = {"ids": "S24"}
_PAIRS = {"left": np.int32, "right": np.int32, "weights": np.float64, "families": np.uint64}
_STATEMENTS = {
    "codes": np.uint64,
    "words": np.uint64,
    "tokens": np.int32,
    "estimates": np.int32,
    "weights": np.float64,
    "sizes": np.int32,
}
_MEMBERS = {"places": np.int32}
_ABOUT = {"places": np.int32, "codes": np.uint64}
_TRAITS = {"places": np.int32, "kinds": np.uint8, "codes": np.uint64}
_MENTIONED: dict[str, Mapping[str, Any]] = {"named": _NAMED, "unnamed": _UNNAMED}
_SAID: dict[str, Mapping[str, Any]] = {
    "pairs": _PAIRS,
    "statements": _STATEMENTS,
    "members": _MEMBERS,
    "about": _ABOUT,
    "traits": _TRAITS,
}
_NOTHING = {name: Ragged.of((), types) for name, types in (_MENTIONED | _SAID).items()}


def passage_version(unit: Unit) -> int:
    """Tells chunk units of one id apart: most stand on the chunk whose id they have, and on no other."""
    return 0 if len(unit.chunk_ids) == 1 else hash64("\0".join(unit.chunk_ids))


@dataclass(frozen=True, slots=True)
class NetworkTable:
    """Rows of all passages in corpus order, one `Ragged` per part.

    Attributes:
        extractor: Fingerprint of who made the records.
        passages: Ids of the chunk units, in corpus order.
        versions: Hash of the chunks that each passage stands for, `[passages]`.
        parts: `named`: entities that passages spell out: ids, hashes of the key of their first name, whether they title
            the passage; `unnamed`: ids of others; `pairs`: numbers of two entities of a passage, their weight and the
            family of the predicate; `statements`: hashes of what is said and where, hashes of the normalized words,
            lengths, weights, numbers of entities; `members`: these entities, by their numbers in the passage;
            `about`: who is described, and a hash of how; `traits`: whose they are, kinds, hashes.
        relations: Edges of the knowledge graph from relations to their ends: ids, bytes `[n, 2]`.
    """

    extractor: str = ""
    passages: tuple[str, ...] = ()
    versions: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    parts: Mapping[str, Ragged] = field(default_factory=lambda: _NOTHING)
    relations: NDArray[np.bytes_] = field(default_factory=lambda: np.empty((0, 2), dtype="S24"))

    def known(self) -> dict[str, tuple[int, int]]:
        """Number and version of every passage, by its id."""
        versions = self.versions.tolist()
        return {passage: (number, versions[number]) for number, passage in enumerate(self.passages)}

    def updated(
        self,
        units: Sequence[Unit],
        mentioned: Mapping[str, PassageRows],
        said: Mapping[str, PassageRows],
    ) -> NetworkTable:
        """The table after a change.

        Args:
            units: All chunk units, in corpus order.
            mentioned: Rows of the passages whose mentions changed, new ones included.
            said: Rows of those that were read again.
        """
        parts = self._parts(units, mentioned, _MENTIONED) | self._parts(units, said, _SAID)
        return replace(
            self,
            passages=tuple(unit.id for unit in units),
            versions=np.array([passage_version(unit) for unit in units], dtype=np.uint64),
            parts=parts,
        )

    def _parts(
        self, units: Sequence[Unit], fresh: Mapping[str, PassageRows], types: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Ragged]:
        place = {found: number for number, found in enumerate((*self.passages, *fresh))}  # what is fresh wins
        groups = np.array([place[unit.id] for unit in units], dtype=np.int64)
        return {
            name: self.parts[name].chosen(Ragged.of([rows[name] for rows in fresh.values()], columns), groups)
            for name, columns in types.items()
        }

    def to_note(self) -> bytes:
        """Bytes for the store."""
        arrays: dict[str, NDArray[Any]] = {
            "extractor": np.array([self.extractor.encode()]),
            "passages": np.array(self.passages, dtype="S24"),
            "versions": self.versions,
            "relations": self.relations,
        }
        for name, part in self.parts.items():
            arrays[f"{name}.counts"] = part.counts.astype(np.int32)
            arrays |= {f"{name}.{column}": values for column, values in part.columns.items()}
        return pack_arrays(arrays)

    @classmethod
    def from_note(cls, note: bytes | None) -> NetworkTable:
        """What `to_note` wrote; an empty table at first."""
        if note is None:
            return cls()
        arrays = unpack_arrays(note)
        parts = {
            name: Ragged(
                arrays[f"{name}.counts"].astype(np.int64), {column: arrays[f"{name}.{column}"] for column in types}
            )
            for name, types in (_MENTIONED | _SAID).items()
        }
        return cls(
            extractor=arrays["extractor"][0].decode(),
            passages=tuple(arrays["passages"].astype(str).tolist()),
            versions=arrays["versions"],
            parts=parts,
            relations=arrays["relations"],
        )
