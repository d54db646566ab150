"""`ReportTable`: reports, what they were written from and what stands below them, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import id_hashes, ranges
from sire_core.graph.kinds import MENTIONS
from sire_core.graph.ragged import pack_arrays, unpack_arrays
from sire_core.types import Edge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.types import Unit

    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]
    Ids = NDArray[np.bytes_]

__all__ = ["REPORTS", "EdgeList", "ReportTable", "tree_name"]

REPORTS = "perspective_reports"
"""Key of the note that a table is stored in; queries read it, too."""

_KINDS = ("child", MENTIONS)
_SOURCE, _TARGET = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


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
class EdgeList:
    """Edges as arrays.

    Attributes:
        kinds: 0 for `child`, 1 for `mentions`.
        sources: Ids of reports.
        targets: Ids of reports or entities.
        codes: Hashes of all three.
    """

    kinds: NDArray[np.uint8]
    sources: Ids
    targets: Ids
    codes: Hashes

    @classmethod
    def of(cls, edges: Sequence[Edge]) -> EdgeList:
        """From edges as they are stored."""
        kinds = np.array([_KINDS.index(edge.kind) for edge in edges], dtype=np.uint8)
        sources = np.array([edge.source for edge in edges], dtype="S24")
        targets = np.array([edge.target for edge in edges], dtype="S24")
        return cls(kinds, sources, targets, _codes(kinds, id_hashes(sources), id_hashes(targets)))

    def without(self, others: EdgeList) -> tuple[Edge, ...]:
        """Those that the others do not have, each once."""
        there = np.sort(others.codes)
        at = np.searchsorted(there, self.codes)
        fresh = np.flatnonzero(np.append(there, np.uint64(0))[at] != self.codes)
        kept = np.sort(fresh[np.unique(self.codes[fresh], return_index=True)[1]])
        ids = (found[kept].astype(str).tolist() for found in (self.sources, self.targets))
        return tuple(Edge(_KINDS[kind], *ends) for kind, *ends in zip(self.kinds[kept].tolist(), *ids, strict=True))


def _codes(kinds: NDArray[np.uint8], sources: Hashes, targets: Hashes) -> Hashes:
    return np.asarray((sources * _SOURCE ^ targets) * _TARGET + kinds.astype(np.uint64), dtype=np.uint64)


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

    def edges(self) -> EdgeList:
        """The edges from reports to what is right below them."""
        kinds = np.repeat(np.arange(2, dtype=np.uint8), (len(self.children), len(self.mentions)))
        above = np.concatenate([self.children[:, 0], self.mentions[:, 0]])
        # Reports and entities are numbered in one row: each id is hashed once.
        below = np.concatenate([self.children[:, 1], self.mentions[:, 1] + len(self.reports)])
        ids = np.concatenate([self.reports, self.entities])
        hashes = id_hashes(ids)
        return EdgeList(kinds, ids[above], ids[below], _codes(kinds, hashes[above], hashes[below]))

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
