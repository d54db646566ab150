"""What a change of an index means for the nodes in a vector store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_index.core.schema import NodeRelationship, ObjectType, RelatedNodeInfo, TextNode

from llama_index_sire.nodes import to_node
from sire_core.errors import IndexMissingError
from sire_core.storage.uuids import to_uuid
from sire_core.types import Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.index import Index

__all__ = ["NodeChange", "PoolSnapshot", "document_ids", "node_change", "read_pool"]


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """The pool of an index at one moment, in its order: passages first, then what was derived, by level.

    Attributes:
        units: By id, with the documents they stand on.
        metadata: Of a unit's node, by unit id: the passage's, or what all passages of a derived unit have in common.
        children: Ids one level below a summary.
        vectors: Rows of the index, by unit id.
        documents: Ids of all documents, those without text too.
    """

    units: Mapping[str, tuple[Unit, tuple[str, ...]]] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    children: Mapping[str, Sequence[str]] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    documents: tuple[str, ...] = ()

    @property
    def derived(self) -> list[str]:
        """Ids of everything but the passages."""
        return [name for name in self.units if not self.is_passage(name)]

    def is_passage(self, name: str) -> bool:
        """Whether a unit is a passage."""
        return self.units[name][0].kind is UnitKind.CHUNK

    def same(self, other: PoolSnapshot, name: str, *, embed: bool = False) -> bool:
        """Whether a unit of both would give the same node, vector included if asked for."""
        return (
            self.units[name] == other.units[name]
            and self.metadata[name] == other.metadata[name]
            and self.children.get(name) == other.children.get(name)
            and (not embed or np.array_equal(self.vectors[name], other.vectors[name]))
        )

    def node(self, name: str, *, embed: bool = False) -> TextNode:
        """The node of a unit; with the index's vector on it if asked for."""
        unit, documents = self.units[name]
        node = to_node(unit, documents, self.metadata[name])
        if name in self.children:
            node.relationships[NodeRelationship.CHILD] = [
                RelatedNodeInfo(node_id=to_uuid(child), node_type=ObjectType.TEXT) for child in self.children[name]
            ]
        if embed:
            node.embedding = self.vectors[name].tolist()
        return node


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What to do with a vector store.

    Attributes:
        drop: `ref_doc_id`s to delete first.
        nodes: To add, leaves first.
        retired: Ids among `drop` that have left the index.
    """

    drop: tuple[str, ...] = ()
    nodes: tuple[TextNode, ...] = ()
    retired: tuple[str, ...] = ()


def read_pool(index: Index, kinds: Collection[str] | None = None) -> PoolSnapshot:
    """Everything in an index; nothing when it was never built.

    Args:
        index: The index.
        kinds: Which kinds of units; None means all. Without passages the snapshot has no documents either: whatever
            a store holds under their ids is somebody else's.
    """
    try:
        view = index.view()
    except IndexMissingError:
        return PoolSnapshot()
    rows = [(position, *view.pool.unit(position)) for position in range(view.size)]
    rows = [row for row in rows if kinds is None or row[1].kind in kinds]
    handed = {unit.id for _, unit, _ in rows}
    children: dict[str, list[str]] = {}
    for edge in view.edges():
        if edge.kind == "child" and edge.target in handed:
            children.setdefault(edge.source, []).append(edge.target)
    return PoolSnapshot(
        units={unit.id: (unit, documents) for _, unit, documents in rows},
        metadata={unit.id: view.shared_metadata(position) for position, unit, _ in rows},
        children={parent: sorted(found) for parent, found in children.items()},
        vectors={unit.id: view.matrix[position] for position, unit, _ in rows},
        documents=tuple(view.pool.document_ids()) if kinds is None or UnitKind.CHUNK in kinds else (),
    )


def document_ids(index: Index) -> list[str]:
    """Ids of the documents in an index; none when it was never built."""
    try:
        return index.snapshot().document_ids()
    except IndexMissingError:
        return []


def node_change(
    before: PoolSnapshot,
    after: PoolSnapshot,
    given: Collection[str] = (),
    held: Collection[str] = (),
    *,
    again: bool = False,
    embed: bool = False,
) -> NodeChange:
    """Compare two states of an index.

    Args:
        before: The index before.
        after: The index now.
        given: Documents whose passages are put again.
        held: Derived units whose nodes the store may hold.
        again: Replace everything derived, for a store that may have missed the last change.
        embed: Put the index's vectors on the nodes.
    """
    changed = {name for name in before.units if name not in after.units or not before.same(after, name, embed=embed)}
    if again:
        changed |= {name for name in after.units if not after.is_passage(name)}
    # Vector stores delete passages by document only. A passage that two documents share may change hands or sources
    # when one of them changes: the document that owned it is put again.
    owners = [before.units[name][1][0] for name in before.units if name in changed and before.is_passage(name)]
    known = set(before.documents)
    fresh = dict.fromkeys((*(name for name in given if name in known), *owners))
    put = [
        name
        for name, (_, documents) in after.units.items()
        if name in changed or name not in before.units or (after.is_passage(name) and documents[0] in fresh)
    ]
    retired = tuple(to_uuid(name) for name in held if name not in after.units)
    stale = (to_uuid(name) for name in held if name in after.units and name in changed)
    return NodeChange(
        drop=(*fresh, *stale, *retired),
        nodes=tuple(after.node(name, embed=embed) for name in put),
        retired=retired,
    )
