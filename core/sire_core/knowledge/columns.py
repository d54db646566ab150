"""`EdgeColumns`: edges of one kind as arrays, in blocks, so that a change rewrites those it touches and no others."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sire_core.knowledge.kinds import MENTIONS
from sire_core.knowledge.name_lists import NameLists, list_hash
from sire_core.knowledge.ragged import pack_arrays, unpack_arrays
from sire_core.types import Edge

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EdgeChange", "EdgeColumns", "block_of", "updated_blocks"]

_DOCUMENTS = 256
"""Documents whose edges share a block."""
_AT_ONCE = 1 << 16
"""Changes that are objects at the same time."""


class EdgeChange(NamedTuple):
    """An edge that is put or dropped.

    Attributes:
        source: Id of what it comes from.
        target: Id of what it leads to.
        document: Sequence number of the document that it belongs to; it decides about the block.
        put: Whether it is put, perhaps in the place of one with the same ends, or dropped.
        names: Names under which the source knows the target.
        title: Whether the target titles the source.
    """

    source: str
    target: str
    document: int
    put: bool
    names: Sequence[str] = ()
    title: bool = False

    def edge(self, kind: str) -> Edge:
        """As an edge of a kind."""
        return _edge(kind, self.source, self.target, self.names, self.title)


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """Edges of one kind.

    Attributes:
        sources: Ids, `[m]`.
        targets: Ids, `[m]`.
        titles: Whether the target titles the source, `[m]`.
        numbers: Number of the list of names of every edge, int64 `[m]`.
        lists: Names under which sources know targets.
    """

    sources: NDArray[np.bytes_]
    targets: NDArray[np.bytes_]
    titles: NDArray[np.bool_]
    numbers: NDArray[np.int64]
    lists: NameLists

    @classmethod
    def empty(cls) -> EdgeColumns:
        """No edges."""
        ids = np.empty(0, dtype="S24")
        return cls(ids, ids, np.empty(0, dtype=bool), np.empty(0, dtype=np.int64), NameLists())

    @classmethod
    def of_blocks(cls, blocks: Iterable[bytes]) -> EdgeColumns:
        """All edges of some blocks, one block after the other."""
        parts = [cls.from_bytes(block, in_place=True) for block in blocks]
        if not parts:
            return cls.empty()
        starts = np.cumsum([0, *(len(part.lists.hashes) for part in parts)])
        return cls(
            np.concatenate([part.sources for part in parts]),
            np.concatenate([part.targets for part in parts]),
            np.concatenate([part.titles for part in parts]),
            np.concatenate([part.numbers + start for part, start in zip(parts, starts[:-1], strict=True)]),
            NameLists.joined([part.lists for part in parts]),
        )

    def updated(self, changes: Sequence[EdgeChange]) -> EdgeColumns:
        """With some edges put and others dropped."""
        ends = {(c.source.encode(), c.target.encode()) for c in changes}
        sources = np.array(sorted({source for source, _ in ends}), dtype="S24")
        near = np.flatnonzero(np.isin(self.sources, sources))
        pairs = zip(self.sources[near].tolist(), self.targets[near].tolist(), strict=True)
        kept = np.ones(len(self.sources), dtype=bool)
        kept[near] = [pair not in ends for pair in pairs]
        last = {(c.source, c.target): c for c in changes}  # the last word on an edge counts
        put = [change for change in last.values() if change.put]
        names = [tuple(change.names) for change in put]
        new = np.array([list_hash(found) for found in names], dtype=np.uint64)
        hashes = np.concatenate([self.lists.hashes[self.numbers[kept]], new])
        lists = self.lists.updated(np.unique(hashes), dict(zip(new.tolist(), names, strict=True)))
        return EdgeColumns(
            np.concatenate([self.sources[kept], np.array([change.source for change in put], dtype="S24")]),
            np.concatenate([self.targets[kept], np.array([change.target for change in put], dtype="S24")]),
            np.concatenate([self.titles[kept], np.array([change.title for change in put], dtype=bool)]),
            lists.places(hashes),
            lists,
        )

    def edges(self, kind: str) -> list[Edge]:
        """The edges one by one, for exports."""
        names = self.lists.all_names()
        found = []
        for source, target, title, number in zip(
            self.sources.tolist(), self.targets.tolist(), self.titles.tolist(), self.numbers.tolist(), strict=True
        ):
            found.append(_edge(kind, source.decode(), target.decode(), names[number], title))
        return found

    def to_bytes(self) -> bytes:
        """As a block."""
        arrays: dict[str, NDArray[Any]] = {
            "sources": self.sources,
            "targets": self.targets,
            "titles": self.titles,
            "numbers": self.numbers.astype(np.int32),
            **self.lists.arrays(),
        }
        return pack_arrays(arrays)

    @classmethod
    def from_bytes(cls, block: bytes, *, in_place: bool = False) -> EdgeColumns:
        """What `to_bytes` wrote."""
        arrays = unpack_arrays(block, in_place=in_place)
        numbers = arrays["numbers"].astype(np.int64)
        return cls(arrays["sources"], arrays["targets"], arrays["titles"], numbers, NameLists.from_arrays(arrays))


def block_of(kind: str, document: int) -> str:
    """Key of the block that holds the edges of a document."""
    return f"{kind}/{document // _DOCUMENTS:08d}"


def updated_blocks(
    kind: str, changes: Iterable[EdgeChange], read: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> dict[str, bytes | None]:
    """Blocks after a change of edges; None for one that is left without any.

    Args:
        kind: Of the edges.
        changes: What changes; a block's changes become objects when it is made.
        read: Blocks of these edges before the change by key, as far as there are any.
    """
    waiting: dict[str, list[bytes]] = {}
    rest = iter(changes)
    while part := list(islice(rest, _AT_ONCE)):
        by_block: dict[str, list[tuple[object, ...]]] = {}
        for change in part:
            by_block.setdefault(block_of(kind, change.document), []).append(tuple(change))
        for key, rows in by_block.items():
            waiting.setdefault(key, []).append(marshal.dumps(rows))
    stored = read(sorted(waiting)) if waiting else {}
    found: dict[str, bytes | None] = {}
    for key in sorted(waiting):
        own = [EdgeChange(*row) for rows in waiting.pop(key) for row in marshal.loads(rows)]  # noqa: S302 - of this process
        before = EdgeColumns.from_bytes(stored[key]) if key in stored else EdgeColumns.empty()
        after = before.updated(own)
        found[key] = after.to_bytes() if len(after.sources) else None
    return found


def _edge(kind: str, source: str, target: str, names: Sequence[str], title: bool) -> Edge:
    metadata: dict[str, Any] = {"names": names} if kind == MENTIONS else {}
    return Edge(kind, source, target, 1.0, metadata | ({"title": True} if title else {}))
