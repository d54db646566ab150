"""`EntityChange`: what a change does to the entities of a knowledge graph and to their edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.text import name_key
from sire_core.extraction.names import cached_key
from sire_core.organize.facts.aggregates import hash64
from sire_core.organize.graph.by_key import ByKey
from sire_core.organize.graph.kinds import MENTIONS
from sire_core.types import Edge, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.graph.change import GraphChange
    from sire_core.organize.graph.elements import Elements
    from sire_core.organize.graph.name_lists import NameLists
    from sire_core.organize.graph.table import GraphTable

    Pairs = dict[tuple[str, str], int]

__all__ = ["EntityChange"]

_OWN = 1 << 30
"""Worth of a mention that spells out the entity's own name; else the length of its longest name."""


class EntityChange:
    """Entities that a change touches: those named in passages that differ, and those that became or ceased to be hubs.

    Args:
        change: The passages, resolved.
        chunks: Chunks of every passage after the change.
        lists: Names of the mentions after it.
        told: Those of the passages that were resolved, by hash.
        limits: An entity with more passages keeps only those it titles: before the change and after it.
        fingerprint: Build fingerprint of the organizer.

    Attributes:
        elements: All entities after the change.
        moved: Keys of entities with another id than before, or with a text where they had none, or the reverse.
        count: Number of entities after the change.
    """

    def __init__(
        self,
        change: GraphChange,
        chunks: Sequence[Sequence[str]],
        lists: NameLists,
        told: Mapping[int, list[str]],
        limits: tuple[int, int],
        fingerprint: str,
    ) -> None:
        self._change = change
        self._chunks = chunks
        self._lists = lists
        self._told = told
        self._limits = limits
        self._fingerprint = fingerprint
        before, after = change.before, change.after
        self._then, self._now = ByKey.of(before.mentions), ByKey.of(after.mentions)
        self.count = len(self._now.keys)
        old, new = (
            table.mentions.take(places)["keys"]
            for table, places in zip((before, after), change.differing(), strict=True)
        )
        hubs = np.setxor1d(self._then.above(limits[0]), self._now.above(limits[1]))
        touched = np.unique(np.concatenate([old, new, hubs]))
        touched = before.entities.with_twins(touched)
        self._places = after.mentions.groups().tolist()
        self._texts: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.elements = before.entities.followed(touched, self._made(touched))
        self._touched = self.elements.with_twins(touched)
        was, now = before.entities.among(self._touched), self.elements.among(self._touched)
        self.moved = np.array([key for key in {**was, **now} if was.get(key) != now.get(key)], dtype=np.uint64)

    def units(self) -> tuple[list[Unit], set[str], set[str]]:
        """Units of touched entities, and the ids of theirs before the change and after it."""
        was, now = (
            {found for found, named in elements.among(self._touched).values() if named}
            for elements in (self._change.before.entities, self.elements)
        )
        put = [
            Unit(found, UnitKind.ENTITY, text, chunks, entity_keys=(name_key(text),), title=text)
            for found, (text, chunks) in self._texts.items()
            if text
        ]
        return put, was, now

    def edges(self) -> tuple[list[Edge], list[Edge]]:
        """Edges to put and to drop."""
        old, new = self._change.before, self._change.after
        was = self._pairs(old, self._then, old.entities, self._limits[0])
        now = self._pairs(new, self._now, self.elements, self._limits[1])
        columns = [(table.mentions["titles"], table.mentions["lists"]) for table in (old, new)]
        put = {
            pair: row
            for pair, row in now.items()
            if pair not in was or any(a[was[pair]] != b[row] for a, b in zip(*columns, strict=True))
        }
        names = self._names(list(put.values()))
        edges = [self._edge(pair, row, said) for (pair, row), said in zip(put.items(), names, strict=True)]
        return edges, [Edge(MENTIONS, *pair) for pair in was if pair not in now]

    def _made(self, touched: NDArray[np.uint64]) -> dict[int, tuple[str, bool]]:
        """Id, and whether there is a text, of touched entities that some passage names."""
        mentions = self._change.after.mentions
        rows = self._now.rows(touched)
        keys = np.fromiter(rows, dtype=np.uint64, count=len(rows))
        best = self._now.first(keys, np.where(mentions["own"], _OWN, mentions["lengths"]).astype(np.int64))
        names = self._names([best[key] for key in rows])
        texts = {key: _text(key, said) for key, said in zip(rows, names, strict=True)}
        nameless = self._keys({key: rows[key][0] for key, text in texts.items() if not text})
        made = {}
        for key, found in rows.items():
            chunks = tuple(chain.from_iterable(self._chunks[self._places[row]] for row in found))
            unit = unit_id(UnitKind.ENTITY.value, self._fingerprint, chunks, texts[key] or nameless[key])
            made[key] = (unit, bool(texts[key]))
            self._texts[unit] = (texts[key], chunks)
        return made

    def _names(self, rows: Sequence[int]) -> list[list[str]]:
        """Names of some mentions."""
        hashes = self._change.after.mentions["lists"][np.array(rows, dtype=np.int64)]
        places = self._lists.places(hashes).tolist()
        return [
            self._told[found] if found in self._told else self._lists.names(place)
            for found, place in zip(hashes.tolist(), places, strict=True)
        ]

    def _keys(self, rows: Mapping[int, int]) -> dict[int, str]:
        """Keys of entities by their hashes, from a passage that refers to each."""
        passages = self._change.passages({self._places[row] for row in rows.values()})
        known = {hash64(key): key for mentions, _ in passages.values() for key in mentions}
        return {found: known[found] for found in rows}

    def _pairs(self, table: GraphTable, by_key: ByKey, elements: Elements, limit: int) -> Pairs:
        """Rows by passage and entity; of several entities of one id the last one that comes up speaks."""
        titles, places = table.mentions["titles"].tolist(), table.mentions.groups().tolist()
        found = elements.among(self._touched)
        return {
            (table.passages[places[row]], found[key][0]): row
            for key, rows in by_key.rows(self._touched).items()
            for row in rows
            if len(rows) <= limit or titles[row]
        }

    def _edge(self, pair: tuple[str, str], row: int, names: Sequence[str]) -> Edge:
        metadata: dict[str, Any] = {"names": list(names)}
        if self._change.after.mentions["titles"][row]:
            metadata["title"] = True
        return Edge(MENTIONS, *pair, 1.0, metadata)


def _text(key: int, names: Sequence[str]) -> str:
    """The entity's own name where it is spelt out, else the longest there is; nameless ones are nodes only."""
    return next((name for name in names if hash64(cached_key(name)) == key), "") or max(names, key=len, default="")
