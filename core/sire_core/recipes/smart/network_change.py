"""From a change of the corpus to the graph between its entities; no other passages are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.knowledge.kinds import MENTIONS, RELATES
from sire_core.recipes.smart.network_table import NETWORK, NetworkTable, passage_version
from sire_core.recipes.smart.passage_rows import mentioned_rows, stated_rows
from sire_core.recipes.smart.passage_statements import EntityMention, PassageTexts, read_passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BuildView
    from sire_core.recipes.smart.network_table import PassageRows
    from sire_core.types import Edge

__all__ = ["NetworkChange"]

_GRAPH = "knowledge_graph"
_PART = 512
"""Passages whose records are held at once."""


class NetworkChange:
    """What passages name and state, before and after a change.

    Args:
        view: Of the organizer whose notes tell of before.
        redone: Ids of chunks whose records changed.

    Attributes:
        table: All passages after the change.
        first: Whether nothing was known before.
    """

    def __init__(self, view: BuildView, redone: Collection[str]) -> None:
        self._view = view
        self._units = {unit.id: unit for unit in view.chunk_units}
        self._known_texts: dict[str, PassageTexts] = {}
        self._starts: dict[str, NDArray[np.int64]] = {}
        before = NetworkTable.from_note(view.notes([NETWORK]).get(NETWORK))
        if before.extractor != view.fingerprints[1]:
            before = NetworkTable()
        self.first = not before.passages
        self._before = before
        self._places = before.known()
        changed = self._changed({*redone, *(() if self.first else view.stale_links())})
        edges, gone = self._edges()
        mentions, unnamed = self._namings(edges, gone, changed)
        self._fresh, said = self._read(mentions, changed)
        mentioned = {
            passage: mentioned_rows(
                found, unnamed[passage], None if passage in said else self._rows(passage, "named", "keys").tolist()
            )
            for passage, found in mentions.items()
        }
        self.table = replace(
            before.updated(view.chunk_units, mentioned, said),
            extractor=view.fingerprints[1],
            relations=_related(before.relations, edges, gone),
        )

    def texts(self, passages: Iterable[int]) -> dict[int, PassageTexts]:
        """The words of some passages, by their numbers."""
        names = {number: self.table.passages[number] for number in passages}
        missing = [name for name in names.values() if name not in self._fresh and name not in self._known_texts]
        for name, note in self._view.notes(missing).items() if missing else ():
            self._known_texts[name] = PassageTexts.from_note(note)
        return {number: self._fresh.get(name) or self._known_texts[name] for number, name in names.items()}

    def notes(self) -> dict[str, bytes | None]:
        """Everything to remember."""
        notes: dict[str, bytes | None] = dict.fromkeys(sorted(self._places.keys() - self._units.keys()))
        notes |= {passage: texts.to_note() for passage, texts in self._fresh.items()}
        return notes | {NETWORK: self.table.to_note()}

    def _changed(self, redone: Collection[str]) -> set[str]:
        """Passages whose records have to be read."""
        return {
            unit.id
            for unit in self._units.values()
            if unit.id in redone or self._places.get(unit.id, (0, -1))[1] != passage_version(unit)
        }

    def _edges(self) -> tuple[list[Edge], list[Edge]]:
        """Edges of the knowledge graph that are new or changed, and those that are gone."""
        if self.first:
            return list(self._view.required(_GRAPH)[1]), []
        edges = self._view.required_delta(_GRAPH).in_blocks
        return list(edges.put), list(edges.drop)

    def _namings(
        self, edges: Sequence[Edge], gone: Sequence[Edge], changed: set[str]
    ) -> tuple[dict[str, list[EntityMention]], dict[str, list[str]]]:
        """What the passages whose mentions changed spell out, in order, and what else they mention."""
        put: dict[str, dict[str, Edge]] = {passage: {} for passage in self._units if passage in changed}
        for edge in edges:
            if edge.kind == MENTIONS and edge.source in self._units:
                put.setdefault(edge.source, {})[edge.target] = edge
        dropped: dict[str, set[str]] = {passage: set() for passage in put}
        for edge in gone:
            if edge.kind == MENTIONS and edge.source in self._units:
                dropped.setdefault(edge.source, set()).add(edge.target)
        touched = {passage: dropped[passage] | put.get(passage, {}).keys() for passage in dropped | put}
        mentions, unnamed = self._staying(touched)
        for passage, found in put.items():
            for edge in found.values():
                if edge.metadata["names"]:
                    mentions[passage].append(EntityMention.of(edge))
                else:
                    unnamed[passage].append(edge.target)
        for passage in touched:
            mentions[passage].sort()
            unnamed[passage].sort()
        return mentions, unnamed

    def _staying(
        self, touched: Mapping[str, Collection[str]]
    ) -> tuple[dict[str, list[EntityMention]], dict[str, list[str]]]:
        """Mentions of before of some passages, without some entities."""
        mentions: dict[str, list[EntityMention]] = {passage: [] for passage in touched}
        unnamed: dict[str, list[str]] = {passage: [] for passage in touched}
        old = [passage for passage in touched if passage in self._places]
        notes = self._view.notes(old) if old else {}
        for passage in old:
            self._known_texts[passage] = PassageTexts.from_note(notes[passage])
            without = touched[passage]
            ids = self._rows(passage, "named", "ids").astype(str).tolist()
            titles = self._rows(passage, "named", "titles").tolist()
            for entity, (first, name), title in zip(ids, self._known_texts[passage].names, titles, strict=True):
                if entity not in without:
                    mentions[passage].append(EntityMention(name, first, entity, title))
            others = self._rows(passage, "unnamed", "ids").astype(str).tolist()
            unnamed[passage] = [entity for entity in others if entity not in without]
        return mentions, unnamed

    def _rows(self, passage: str, part: str, column: str) -> NDArray[Any]:
        """What the table of before has of a passage."""
        place = self._places[passage][0]
        if part not in self._starts:
            self._starts[part] = self._before.parts[part].starts()
        start = int(self._starts[part][place])
        return self._before.parts[part][column][start : start + int(self._before.parts[part].counts[place])]

    def _spelt(self, passage: str) -> list[tuple[str, str, bool]]:
        """First names, names and titles of before of a passage, in order."""
        titles = self._rows(passage, "named", "titles").tolist()
        names = self._known_texts[passage].names
        return [(first, name, title) for (first, name), title in zip(names, titles, strict=True)]

    def _read(
        self, mentions: Mapping[str, Sequence[EntityMention]], changed: set[str]
    ) -> tuple[dict[str, PassageTexts], dict[str, PassageRows]]:
        """What passages say whose records changed, or whose entities go by other names."""
        stale = [
            passage
            for passage, found in mentions.items()
            if passage in changed or self._spelt(passage) != [(n.first, n.name, n.title) for n in found]
        ]
        texts, rows = {}, {}
        for start in range(0, len(stale), _PART):
            part = [self._units[passage] for passage in stale[start : start + _PART]]
            records = self._view.records({unit.chunk_ids[0] for unit in part})
            for unit in part:
                said = read_passage(records.get(unit.chunk_ids[0]), mentions[unit.id], unit.title)
                texts[unit.id] = PassageTexts.of(mentions[unit.id], said)
                rows[unit.id] = stated_rows(said, mentions[unit.id], unit)
        return texts, rows


def _related(before: NDArray[np.bytes_], edges: Iterable[Edge], gone: Iterable[Edge]) -> NDArray[np.bytes_]:
    """Edges from relations to their ends after a change."""
    new = [(edge.source, edge.target) for edge in edges if edge.kind == RELATES]
    old = [(edge.source, edge.target) for edge in gone if edge.kind == RELATES]
    if not new and not old:
        return before
    there = dict.fromkeys(map(tuple, before.astype(str).tolist()))
    for pair in old:
        there.pop(pair, None)
    there.update(dict.fromkeys(new))
    return np.array(list(there), dtype="S24").reshape(-1, 2)
