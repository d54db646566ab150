"""What the nodes of a picture are called: units by id, and entities, which need not be units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.wording import shorten
from sire_core.explore.picture import Node
from sire_core.search.explanation import text_below_title
from sire_core.search.rankers.entity_graph import EntityGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sire_core.protocols import BoolArray, IntArray
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Unit

__all__ = ["Names"]

_LABEL = 80
_TEXT = 200


@dataclass(frozen=True, slots=True)
class Names:
    """Looks up what is behind ids, as far as the snapshot's filter lets it be seen.

    Attributes:
        snapshot: The index.
        graph: Who names whom.
        allowed: Units that pass the filter, `[size]`; None for all.
        entities: Numbers of the entities of the graph, by id.
    """

    snapshot: SearchSnapshot
    graph: EntityGraph
    allowed: BoolArray | None
    entities: Mapping[str, int]

    @classmethod
    def of(cls, snapshot: SearchSnapshot) -> Names:
        """The names of a snapshot."""
        view = snapshot.view
        graph = EntityGraph.of(view)
        numbers = view.derived("entity numbers", lambda: {found: n for n, found in enumerate(graph.entity_ids)})
        return cls(snapshot, graph, view.allowed(snapshot.where), numbers)

    def position(self, unit_id: str) -> int | None:
        """Position of a unit that may be seen; None for what is none."""
        position = self.snapshot.view.places().get(unit_id)
        if position is None or (self.allowed is not None and not self.allowed[position]):
            return None
        return position

    def unit(self, unit_id: str) -> Unit | None:
        """A unit that may be seen."""
        position = self.position(unit_id)
        return None if position is None else self.snapshot.view.units([position])[0]

    def mentions(self, entity_id: str) -> IntArray:
        """Numbers of the mentions of an entity in passages that may be seen; empty for what is no entity."""
        number = self.entities.get(entity_id)
        if number is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero((self.graph.entities == number) & self.seen())

    def seen(self) -> BoolArray:
        """Mentions in passages that may be seen, `[m]`."""
        graph = self.graph
        if self.allowed is None:
            return np.ones(len(graph.passages), dtype=bool)
        return np.asarray(self.allowed[graph.chunk_positions[graph.passages]])

    def entity(self, entity_id: str, passage_id: str = "") -> str:
        """A name of an entity, as one passage or else most of those that may be seen spell it; empty for none."""
        number = self.entities.get(entity_id)
        position = self.position(passage_id) if passage_id else None
        if number is not None and position is not None:
            passage = int(np.searchsorted(self.graph.chunk_positions, position))
            known = self.graph.name_in(passage, number)
            if known:
                return known
        return next(iter(self.spellings(entity_id)), "")

    def spellings(self, entity_id: str) -> dict[str, int]:
        """All names by which passages that may be seen know an entity, with how many do; titles first."""
        mentions = self.mentions(entity_id)
        counts: dict[str, int] = {}
        for mention in mentions[np.argsort(~self.graph.titles[mentions], kind="stable")].tolist():
            for name in self.graph.names.names(mention):
                counts[name] = counts.get(name, 0) + 1
        return counts

    def node(self, found: str, *, near: str = "", place: int = 0) -> Node | None:
        """An id as a node; None for what is unknown or must not be seen.

        Args:
            found: Of a unit or an entity.
            near: A passage that names the entity.
            place: Among the hits.
        """
        unit = self.unit(found)
        if unit is not None:
            body = text_below_title(unit)
            label = unit.title or (shorten(body, _LABEL) if body else unit.id)
            return Node(found, unit.kind.value, shorten(label, _LABEL), shorten(body, _TEXT), place)
        name = self.entity(found, near)
        return Node(found, "entity", shorten(name, _LABEL)) if name else None
