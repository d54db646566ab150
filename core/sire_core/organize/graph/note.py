"""`GraphNote`: a knowledge graph as arrays, for queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.organize.array_notes import pack_arrays, unpack_arrays
from sire_core.organize.graph.elements import id_codes
from sire_core.organize.graph.name_lists import NameLists

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.graph.table import GraphTable

__all__ = ["GRAPH_NOTE", "GraphNote"]

GRAPH_NOTE = "knowledge-1"
"""Key of the note; its number changes with the layout."""


@dataclass(frozen=True, slots=True)
class GraphNote:
    """The edges of a `KnowledgeGraph`.

    Attributes:
        passages: Ids of the passages, in corpus order.
        entities: Ids of the entities that have a mention here, in order of the mentions.
        places: Passage number of every mention, `[m]`; ascending, mentions of a passage by id of the entity.
        targets: Entity number of every mention, `[m]`.
        titles: Whether the passage is titled by the entity, `[m]`.
        names: Number of the list of names of every mention, `[m]`.
        relations: Ids of the relations.
        ends: Ids of all entities, those without a mention here among them.
        pairs: Numbers of a relation and of an entity at one of its ends, `[2, pairs]`; some may come twice.
        lists: The lists of names.
    """

    passages: NDArray[np.bytes_]
    entities: NDArray[np.bytes_]
    places: NDArray[np.int64]
    targets: NDArray[np.int64]
    titles: NDArray[np.bool_]
    names: NDArray[np.int64]
    relations: NDArray[np.bytes_]
    ends: NDArray[np.bytes_]
    pairs: NDArray[np.int64]
    lists: NameLists

    @classmethod
    def of(cls, table: GraphTable, lists: NameLists, limit: int) -> GraphNote:
        """From a complete table.

        Args:
            table: The table.
            lists: Names of its mentions.
            limit: An entity with more passages keeps only those it titles.
        """
        mentions = table.mentions
        owner = table.entities.places(mentions["keys"])
        kept = np.flatnonzero(
            mentions["titles"] | (np.bincount(owner, minlength=len(table.entities.keys))[owner] <= limit)
        )
        first = np.full(len(table.entities.keys), len(owner), dtype=np.int64)
        np.minimum.at(first, owner, np.arange(len(owner)))
        codes = id_codes(table.entities.ids)[owner[kept]]
        places = mentions.groups()[kept]
        order = np.lexsort((first[owner[kept]], codes, places))
        # Of several entities of one id in a passage the last one that comes up speaks.
        last = np.append((np.diff(places[order]) != 0) | (np.diff(codes[order]) != 0), True)
        rows = order[last] if len(order) else order
        found, begins, inverse = np.unique(codes[rows], return_index=True, return_inverse=True)
        by_first = np.argsort(begins)
        number = np.empty(len(found), dtype=np.int64)
        number[by_first] = np.arange(len(found))
        return cls(
            passages=np.array(table.passages, dtype="S24"),
            entities=table.entities.ids[owner[kept][rows[begins[by_first]]]],
            places=places[rows],
            targets=number[inverse.ravel()],
            titles=mentions["titles"][kept][rows],
            names=lists.places(mentions["lists"][kept][rows]),
            relations=table.relations.ids,
            ends=table.entities.ids if len(table.relations.ids) else table.entities.ids[:0],
            pairs=_pairs(table),
            lists=lists,
        )

    def to_note(self) -> bytes:
        """Bytes for the store."""
        arrays: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in _OWN}
        small = {name: arrays[name].astype(np.int32) for name in _NUMBERS}
        return pack_arrays(arrays | small | self.lists.arrays())

    @classmethod
    def from_note(cls, note: bytes | None) -> GraphNote | None:
        """What `to_note` wrote, if anything."""
        if note is None:
            return None
        arrays = unpack_arrays(note)
        large = {name: arrays[name].astype(np.int64) for name in _NUMBERS}
        return cls(**{name: (arrays | large)[name] for name in _OWN}, lists=NameLists.from_arrays(arrays))


_NUMBERS = ("places", "targets", "names", "pairs")
_OWN: Sequence[str] = [field.name for field in fields(GraphNote) if field.name != "lists"]


def _pairs(table: GraphTable) -> NDArray[np.int64]:
    """Numbers of relations and of the entities at their ends."""
    _, first = np.unique(table.statements["keys"], return_index=True)
    relations = np.tile(np.arange(len(first)), 2)
    ends = table.entities.places(np.concatenate([table.statements[name][first] for name in ("heads", "tails")]))
    known = ends >= 0
    known[known] = table.entities.named[ends[known]]
    return np.stack([relations[known], ends[known]])
