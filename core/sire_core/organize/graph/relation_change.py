"""`RelationChange`: what a change does to the relations of a knowledge graph and to their edges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from sire_core.organize.graph.by_key import ByKey
from sire_core.organize.graph.kinds import RELATES
from sire_core.types import Edge, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.graph.change import GraphChange
    from sire_core.organize.graph.elements import Elements
    from sire_core.organize.graph.entity_change import EntityChange
    from sire_core.organize.graph.table import GraphTable

__all__ = ["RelationChange"]


class RelationChange:
    """Relations that a change touches: those stated in passages that differ, and those whose ends have other ids.

    Args:
        change: The passages, resolved.
        entities: What becomes of the entities.
        chunks: Chunks of every passage after the change.
        fingerprint: Build fingerprint of the organizer.

    Attributes:
        elements: All relations after the change.
    """

    def __init__(
        self, change: GraphChange, entities: EntityChange, chunks: Sequence[Sequence[str]], fingerprint: str
    ) -> None:
        self._change = change
        self._entities = entities
        self._fingerprint = fingerprint
        before, after = change.before, change.after
        self._then, self._now = ByKey.of(before.statements), ByKey.of(after.statements)
        old, new = (
            table.statements.take(places)["keys"]
            for table, places in zip((before, after), change.differing(), strict=True)
        )
        stated = before.relations.with_twins(np.unique(np.concatenate([old, new])))
        self._units: dict[str, Unit] = {}
        self.elements = before.relations.followed(stated, self._made(stated, chunks))
        ended = np.isin(after.statements["heads"], entities.moved) | np.isin(after.statements["tails"], entities.moved)
        touched = np.union1d(stated, after.statements["keys"][ended])
        self._touched = self.elements.with_twins(before.relations.with_twins(touched))

    def units(self) -> tuple[list[Unit], set[str], set[str]]:
        """Units of touched relations, and the ids of theirs before the change and after it."""
        was, now = (
            {found for found, _ in elements.among(self._touched).values()}
            for elements in (self._change.before.relations, self.elements)
        )
        return list(self._units.values()), was, now

    def edges(self) -> tuple[list[Edge], list[Edge]]:
        """Edges to put and to drop."""
        old, new = self._change.before, self._change.after
        was = self._pairs(old, self._then, old.relations, old.entities)
        now = self._pairs(new, self._now, self.elements, self._entities.elements)
        put = [Edge(RELATES, *pair) for pair in now if pair not in was]
        return put, [Edge(RELATES, *pair) for pair in was if pair not in now]

    def _made(self, stated: NDArray[np.uint64], chunks: Sequence[Sequence[str]]) -> dict[int, tuple[str, bool]]:
        """Ids of the relations; each stands on all passages that state it and has the text of the first statement."""
        statements = self._change.after.statements
        places = statements.groups().tolist()
        starts = (np.cumsum(statements.counts) - statements.counts).tolist()
        rows = self._now.rows(stated)
        passages = self._change.passages({places[found[0]] for found in rows.values()})
        made = {}
        for key, found in rows.items():
            place = places[found[0]]
            text = passages[place][1][found[0] - starts[place]].text
            sources = tuple(dict.fromkeys(chain.from_iterable(chunks[places[row]] for row in found)))
            unit = unit_id(UnitKind.RELATION.value, self._fingerprint, sources, text)
            self._units[unit] = Unit(unit, UnitKind.RELATION, text, sources)
            made[key] = (unit, True)
        return made

    def _pairs(
        self, table: GraphTable, by_key: ByKey, relations: Elements, entities: Elements
    ) -> dict[tuple[str, str], None]:
        """Ids of touched relations and of the entities that they join."""
        rows = by_key.rows(self._touched)
        first = np.array([found[0] for found in rows.values()], dtype=np.int64)
        heads, tails = (table.statements[name][first] for name in ("heads", "tails"))
        known = entities.among(np.union1d(heads, tails))
        ids = relations.among(self._touched)
        return {
            (ids[key][0], known[end][0]): None
            for key, head, tail in zip(rows, heads.tolist(), tails.tolist(), strict=True)
            for end in (head, tail)
            if end in known and known[end][1]
        }
