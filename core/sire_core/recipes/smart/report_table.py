"""`ReportTable`: reports, what they were written from and what stands below them, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.knowledge.kinds import MENTIONS
from sire_core.knowledge.ragged import pack_arrays, unpack_arrays
from sire_core.types import Edge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.types import Unit

    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]
    Ids = NDArray[np.bytes_]

__all__ = ["ReportTable", "tree_name"]


def _numbers() -> Ints:
    return np.empty(0, dtype=np.int64)


def _hashes() -> Hashes:
    return np.empty(0, dtype=np.uint64)


def _ids() -> Ids:
    return np.empty(0, dtype="S24")


def _pairs() -> Ints:
    return np.empty((0, 2), dtype=np.int64)


def tree_name(tree: int) -> str:
    """What the units of a tree call it, counted from 1."""
    return f"perspective {tree + 1}"


@dataclass(frozen=True, slots=True)
class ReportTable:
    """What is known of all reports.

    Attributes:
        entities: Ids of the entities, by vertex.
        reports: Ids of the report units, ascending.
        trees: Number of the tree of each report.
        evidence: Digest of what a model was shown, per report; empty without one.
        signatures: Per node of the trees, hash of what its report is made of; 0 where it could not be written.
        nodes: Per node the number of its report, -1 where it has none.
        codes: Per node a hash of its report and of the statements that it gives to the node above.
        counts: How many these are, per node: those of its report, or all that it knows where it has none.
        statements: Their codes (`Statements.codes`): those of node 0, then those of node 1, and so on.
        children: Numbers of a report and of a report right below it, `[n, 2]`.
        mentions: Numbers of a report and of an entity with no report in between, `[n, 2]`.
    """

    entities: Ids = field(default_factory=_ids)
    reports: Ids = field(default_factory=_ids)
    trees: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, dtype=np.uint8))
    evidence: Ids = field(default_factory=_ids)
    signatures: Hashes = field(default_factory=_hashes)
    nodes: Ints = field(default_factory=_numbers)
    codes: Hashes = field(default_factory=_hashes)
    counts: Ints = field(default_factory=_numbers)
    statements: Hashes = field(default_factory=_hashes)
    children: Ints = field(default_factory=_pairs)
    mentions: Ints = field(default_factory=_pairs)

    def __iter__(self) -> Iterator[Edge]:
        """The edges from reports to what is right below them, each once; made as they are asked for."""
        reports, entities = self.reports.astype(str).tolist(), self.entities.astype(str).tolist()
        for kind, pairs, below in (("child", self.children, reports), (MENTIONS, self.mentions, entities)):
            for report, number in np.unique(pairs, axis=0).tolist():
                yield Edge(kind, reports[report], below[number])

    def find(self, signatures: Hashes) -> Ints:
        """Numbers of the nodes that have these signatures, -1 where none has."""
        if not len(self.signatures):
            return np.full(len(signatures), -1, dtype=np.int64)
        order = np.argsort(self.signatures)
        place = np.minimum(np.searchsorted(self.signatures[order], signatures), len(order) - 1)
        found = order[place]
        return np.where((self.signatures[found] == signatures) & (signatures != 0), found, -1)

    def statements_of(self, nodes: Ints) -> tuple[Hashes, Ints]:
        """Codes of the statements that some nodes give to those above, one after the other, and how many each has."""
        starts = np.cumsum(self.counts) - self.counts
        return self.statements[ranges(starts[nodes], self.counts[nodes])], self.counts[nodes]

    def by_evidence(self) -> dict[str, str]:
        """Ids of the reports that a model wrote, by the digest of what it was shown."""
        known = np.flatnonzero(self.evidence != b"")
        return dict(
            zip(self.evidence[known].astype(str).tolist(), self.reports[known].astype(str).tolist(), strict=True)
        )

    @classmethod
    def of_units(cls, units: Sequence[Unit]) -> ReportTable:
        """Reports of which only the units are known."""
        ordered = sorted(units, key=lambda unit: unit.id)
        return cls(
            reports=np.array([unit.id for unit in ordered], dtype="S24"),
            evidence=np.array([unit.metadata.get("evidence", "") for unit in ordered], dtype="S24"),
        )

    def to_note(self) -> bytes:
        """Bytes for the store."""
        arrays: dict[str, NDArray[Any]] = {part.name: getattr(self, part.name) for part in fields(self)}
        small = {name: array.astype(np.int32) for name, array in arrays.items() if array.dtype == np.int64}
        return pack_arrays({**arrays, **small})

    @classmethod
    def from_note(cls, note: bytes) -> ReportTable:
        """What `to_note` wrote."""
        arrays = unpack_arrays(note)
        found: dict[str, Any] = {part.name: arrays[part.name] for part in fields(cls)}
        return cls(**{name: a.astype(np.int64) if a.dtype == np.int32 else a for name, a in found.items()})
