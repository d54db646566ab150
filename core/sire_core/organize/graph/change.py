"""From a change of the corpus to the passages whose part of the knowledge graph may differ; no others are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extraction.names import cached_key
from sire_core.organize.facts.aggregates import hash64
from sire_core.organize.graph.mentions import Mention, StatedTriple, merge_names, resolved
from sire_core.organize.graph.name_lists import list_hash
from sire_core.organize.graph.passage_names import PassageNames
from sire_core.organize.graph.ragged import Ragged
from sire_core.organize.graph.table import MENTION, STATEMENT, TABLE_NOTE, GraphTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.aliases import AliasMerges
    from sire_core.protocols import BuildView, Change
    from sire_core.types import Unit

    Passage = tuple[Mapping[str, Mention], Sequence[StatedTriple]]

__all__ = ["GraphChange", "relation_hash"]


def relation_hash(triple: StatedTriple) -> int:
    """Hash of what makes two statements one relation."""
    return hash64(f"{triple.head}\0{cached_key(triple.predicate)}\0{triple.tail}")


class GraphChange:
    """The passages of a corpus before and after a change.

    Merges of names are found anew, on hashes and the few names that are claimed; what a passage says is worked out
    again only where it was read anew or where what one of its names stands for has changed.

    Args:
        change: The change.
        view: Of the organizer whose notes the passages are.
        skip_types: Entity types that are no entities unless a passage is titled by one.
        relations: Whether statements matter beyond their number.

    Attributes:
        before: The table before the change; empty when everything has to be made anew.
        after: The table after it, all but `entities`, `relations` and `silent`; complete once `resolve` was called.
        refreshed: What passages that were worked out again name and state, by id.
    """

    def __init__(self, change: Change, view: BuildView, skip_types: Sequence[str], *, relations: bool) -> None:
        self._view = view
        self._skip_types = skip_types
        self._relations = relations
        units = view.chunk_units
        before = GraphTable.from_note(view.notes([TABLE_NOTE]).get(TABLE_NOTE))
        self.before = before if _in_order(before.passages, units) else GraphTable()
        gone = {chunk.id for chunk in change.removed}
        redone = {chunk.id for chunk in change.added if chunk.id in gone}
        changed = {*redone, *(view.relinked() if self.before.passages else ())}
        outdated = self.before.outdated(units, changed, view.makers[1])
        records = view.records(None if len(outdated) == len(units) else {unit.id for unit in outdated})
        self._fresh = {unit.id: PassageNames.of(unit, records.get(unit.id)) for unit in outdated}
        self.after = self.before.with_names(units, self._fresh, view.makers[1])
        self.refreshed: dict[str, Passage] = {}
        self._canonical: Mapping[str, str] = {}
        self._titles = frozenset(self.after.titles.tolist())

    def everyone(self) -> list[PassageNames]:
        """All passages in corpus order; reads all notes."""
        return list(self._said(self.after.passages).values())

    def merges(self, synonyms: Sequence[tuple[str, str]], max_names: int) -> AliasMerges:
        """Names that mean one entity; see `find_mentions`."""
        table = self.after
        keys, first = np.unique(table.raw["keys"], return_index=True)
        claims = [claim for found in table.claims.values() for claim in found]
        aliases = np.array([hash64(alias) for claim in claims for alias in claim[1:]], dtype=np.uint64)
        known = iter((np.isin(aliases, keys) | np.isin(aliases, table.titles)).tolist())
        groups = [(claim[0], *(alias for alias in claim[1:] if next(known))) for claim in claims]
        names = list(dict.fromkeys(name for group in (*groups, *synonyms) if len(group) > 1 for name in group))
        hashes = np.array([hash64(name) for name in names], dtype=np.uint64)
        typed = np.isin(hashes, keys)
        codes = table.raw["types"][first[np.searchsorted(keys, hashes[typed])]].tolist()
        found = [name for name, there in zip(names, typed.tolist(), strict=True) if there]
        types = {name: table.types[code] for name, code in zip(found, codes, strict=True)}
        return merge_names(groups, types, synonyms, max_names)

    def resolve(self, canonical: Mapping[str, str]) -> None:
        """Work out what changed passages name and state.

        Args:
            canonical: Key of the entity by key of a merged name.
        """
        self._canonical = canonical
        merged = {hash64(name): hash64(key) for name, key in canonical.items() if name != key}
        self.after = replace(self.after, merged=merged)
        chosen = self._affected().union(self._fresh)
        said = self._said([passage for passage in self.after.passages if passage in chosen])
        self.refreshed = {passage: self._resolved(names) for passage, names in said.items()}
        rows = [_mention_rows(mentions) for mentions, _ in self.refreshed.values()]
        stated = [_statement_rows(triples) if self._relations else [] for _, triples in self.refreshed.values()]
        counts = np.array([len(triples) for _, triples in self.refreshed.values()], dtype=np.int64)
        places = self.before.places(self._view.chunk_units, self.refreshed)
        self.after = replace(
            self.after,
            mentions=self.before.mentions.chosen(Ragged.of(rows, MENTION), places),
            statements=self.before.statements.chosen(Ragged.of(stated, STATEMENT), places),
            triples=np.concatenate([self.before.triples, counts])[places],
        )

    def differing(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of the passages that are gone or were worked out again, before the change and after it."""
        staying = set(self.after.passages).difference(self.refreshed)
        return tuple(  # type: ignore[return-value]  # two of them
            np.flatnonzero([passage not in staying for passage in table.passages])
            for table in (self.before, self.after)
        )

    def passages(self, places: Iterable[int]) -> dict[int, Passage]:
        """What some passages name and state, by their numbers after the change."""
        ids = {place: self.after.passages[place] for place in places}
        said = self._said([passage for passage in ids.values() if passage not in self.refreshed])
        found = {passage: self._resolved(names) for passage, names in said.items()} | self.refreshed
        return {place: found[passage] for place, passage in ids.items()}

    def name_lists(self) -> dict[int, list[str]]:
        """Names of mentions in passages that were worked out again, by hash."""
        mentions = (mention for found, _ in self.refreshed.values() for mention in found.values())
        return {list_hash(mention.names): list(mention.names) for mention in mentions}

    def notes(self) -> dict[str, bytes | None]:
        """Notes of the passages that were read anew, and of those that are gone."""
        gone = set(self.before.passages).difference(self.after.passages)
        notes: dict[str, bytes | None] = dict.fromkeys(sorted(gone))
        return notes | {passage: said.to_note() for passage, said in self._fresh.items()}

    def _affected(self) -> set[str]:
        """Passages with a name that stands for something else than before, or is an entity now and was none."""
        old, new = self.before.merged, self.after.merged
        moved = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        titled = np.setxor1d(self.before.titles, self.after.titles)
        keys = np.array(moved, dtype=np.uint64)
        raw = self.after.raw
        skipped = [code for code, name in enumerate(self.after.types) if name in self._skip_types]
        hit = np.isin(raw["keys"], keys) | (np.isin(raw["types"], skipped) & np.isin(raw["keys"], titled))
        places = np.union1d(raw.groups()[hit], np.flatnonzero(np.isin(self.after.titles, keys)))
        return {self.after.passages[place] for place in places.tolist()}

    def _resolved(self, said: PassageNames) -> Passage:
        return resolved(said, self._canonical, lambda key: hash64(key) in self._titles, self._skip_types)

    def _said(self, passages: Sequence[str]) -> dict[str, PassageNames]:
        notes = self._view.notes([passage for passage in passages if passage not in self._fresh])
        return {
            passage: self._fresh[passage] if passage in self._fresh else PassageNames.from_note(passage, notes[passage])
            for passage in passages
        }


def _in_order(passages: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether passages that stay stand in the order in which they stood."""
    number = {passage: place for place, passage in enumerate(passages)}
    places = [number[unit.id] for unit in units if unit.id in number]
    return all(one < other for one, other in pairwise(places))


def _mention_rows(mentions: Mapping[str, Mention]) -> list[tuple[int, ...]]:
    rows: list[tuple[int, ...]] = []
    for key, mention in mentions.items():
        own = any(cached_key(name) == key for name in mention.names)
        longest = max(map(len, mention.names), default=0)
        rows.append((hash64(key), mention.is_title, own, longest, list_hash(mention.names)))
    return rows


def _statement_rows(triples: Sequence[StatedTriple]) -> list[tuple[int, ...]]:
    return [(relation_hash(triple), hash64(triple.head), hash64(triple.tail)) for triple in triples]
