"""From a change of the corpus to the bridging facts that it changes; no other documents are read (ALGORITHMS 4.5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.text import name_key
from sire_core.organize.bridges.document_table import DocumentTable, positions
from sire_core.organize.bridges.entities import Evidence, affected_entities, gather_evidence
from sire_core.organize.bridges.source_documents import (
    document_from_note,
    document_to_note,
    passages_by_document,
    source_document,
)
from sire_core.organize.bridges.table import Bridge, BridgeTable, bridge_from_note, bridge_name
from sire_core.organize.facts.aggregates import hash64
from sire_core.protocols import Delta
from sire_core.types import Failure, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.organize.bridges.document_table import Listings
    from sire_core.organize.bridges.entities import SourceDocument
    from sire_core.organize.bridges.joined_facts import BridgeFact
    from sire_core.organize.bridges.source_documents import DocumentPassages
    from sire_core.organize.bridges.table import SharedTexts
    from sire_core.protocols import BuildView

__all__ = ["BridgeChange", "BridgeRules"]

_DOCUMENTS = "documents"
_BRIDGES = "bridges"


@dataclass(frozen=True, slots=True)
class BridgeRules:
    """What decides which entities bridge what; see `BridgingFacts`."""

    tau: int
    max_docs: int
    max_facts: int
    cap_order: str
    entity_key: str
    skip_types: tuple[str, ...]


class BridgeChange:
    """Bridge entities before and after a change.

    Args:
        view: Of the organizer.
        redone: Ids of chunks whose records changed.
        rules: What bridges what.

    Attributes:
        todo: Evidence of the entities whose bridging facts have to be written.
    """

    def __init__(self, view: BuildView, redone: Collection[str], rules: BridgeRules) -> None:
        self._view = view
        self._rules = rules
        notes = view.notes([_DOCUMENTS, _BRIDGES])
        self._anew = not notes
        before = DocumentTable.from_note(notes.get(_DOCUMENTS))
        self._bridges = BridgeTable.from_note(notes.get(_BRIDGES))
        self._documents = passages_by_document(view.chunks, view.chunk_units)
        self._passages, self._fresh, self._table = self._read(
            before, {*redone, *(view.relinked() if before.heads else ())}
        )
        self._gone = sorted(set(before.heads).difference(self._table.heads))
        self._listings = self._table.listings()
        old = before.listings()
        bridging = (self._listings.frequencies >= 2) & (self._listings.frequencies <= rules.tau)
        failed = np.isin(self._listings.keys, self._bridges.failed)
        doubtful = bridging & (self._listings.unlike(old) | failed)
        evidence = self._evidence(doubtful)
        self._hashes = {key: hash64(key) for key in evidence}
        self._digests = {key: found.digest for key, found in evidence.items()}
        written = self._written(old)
        self.todo = [found for key, found in evidence.items() if key in written]
        self._kept = self._staying(bridging & ~doubtful, [self._hashes[key] for key in evidence if key not in written])

    def delta(self, answers: Sequence[tuple[BridgeFact, ...] | Failure]) -> Delta:
        """What the change does to the organizer's part of the pool.

        Args:
            answers: Bridging facts of `todo`, or why there are none.
        """
        written = {
            self._hashes[found.key]: Bridge(found.key, "", ())  # a failed entity is asked about again
            if isinstance(answer, Failure)
            else Bridge.of(found.key, self._digests[found.key], answer)
            for found, answer in zip(self.todo, answers, strict=True)
        }
        after = self._bridges.with_bridges(self._kept, list(written.values()))
        shared = after.shared(self._listings)
        place = positions(self._bridges.made_texts, shared.texts)
        new = np.append(self._bridges.made_signatures, np.uint64(0))[place] != shared.signatures
        chosen = np.flatnonzero((place < 0) | new)
        fresh = self._units(after, shared, chosen, written)
        ids = np.append(self._bridges.made_ids, np.array([b""], dtype="S24"))[place]
        ids[chosen] = [unit.id.encode() for unit in fresh]
        after = replace(after, made_texts=shared.texts, made_signatures=shared.signatures, made_ids=ids)
        there = self._there(fresh)
        kept = set(np.char.decode(ids, "ascii").tolist())
        return Delta(
            put_units=tuple(unit for unit in fresh if there.get(unit.id) != unit),
            drop_units=tuple(unit for unit in there if unit not in kept),
            state={} if self._anew else None,
            notes=self._notes(after, written),
            failures=tuple(answer for answer in answers if isinstance(answer, Failure)),
        )

    def _read(
        self, before: DocumentTable, changed: Collection[str]
    ) -> tuple[dict[str, DocumentPassages], dict[str, SourceDocument], DocumentTable]:
        """Documents that changed, as passages and as what their records say; and the table with them."""
        versions = [document.version for document in self._documents]
        extractor = self._view.makers[1]
        outdated = before.outdated(self._documents, versions, changed, extractor)
        everything = len(outdated) == len(self._documents)
        records = self._view.records(None if everything else {unit.id for found in outdated for unit in found.units})
        key_of = cache(lambda name: name_key(name, self._rules.entity_key))
        fresh = {found.head: source_document(found, records, self._rules.skip_types, key_of) for found in outdated}
        table = before.with_documents(self._documents, versions, fresh, extractor)
        return {found.head: found for found in outdated}, fresh, table

    def _evidence(self, wanted: NDArray[np.bool_]) -> dict[str, Evidence]:
        """Evidence of some entities."""
        rows = wanted[self._listings.entity_of]
        ends = np.cumsum(self._table.counts)
        numbers = np.unique(np.searchsorted(ends, np.flatnonzero(rows), side="right")).tolist()
        chosen = [self._documents[number] for number in numbers]
        notes = self._view.notes([found.head for found in chosen if found.head not in self._fresh])
        sources = [
            self._fresh[found.head] if found.head in self._fresh else document_from_note(notes[found.head], found)
            for found in chosen
        ]
        keys = {
            key
            for number, source in zip(numbers, sources, strict=True)
            for key, is_wanted in zip(
                source.names, rows[ends[number] - len(source.names) : ends[number]].tolist(), strict=True
            )
            if is_wanted
        }
        rules = self._rules
        return gather_evidence(sources, keys, rules.max_docs, rules.max_facts, rules.cap_order, rules.entity_key)

    def _written(self, old: Listings) -> frozenset[str]:
        """Entities with evidence whose bridging facts have to be written."""
        known = self._bridges.known()
        changed = {key for key, digest in self._digests.items() if known.get(self._hashes[key]) != digest}
        hashes = np.array(list(self._hashes.values()), dtype=np.uint64)
        before, after = (
            dict(zip(self._hashes, listings.frequencies_of(hashes), strict=True)) for listings in (old, self._listings)
        )
        return affected_entities(before, after, changed, self._rules.tau).written

    def _staying(self, settled: NDArray[np.bool_], confirmed: Collection[int]) -> NDArray[np.bool_]:
        """Which stored bridges stay as they are.

        Args:
            settled: Entities of which nothing changed.
            confirmed: Hashes of those whose evidence was looked at and is the same.
        """
        place = positions(self._listings.keys, self._bridges.keys)
        stays = np.append(settled, np.False_)[place] & (place >= 0)
        return np.asarray(stays | np.isin(self._bridges.keys, np.array(list(confirmed), dtype=np.uint64)))

    def _units(
        self, table: BridgeTable, shared: SharedTexts, chosen: NDArray[np.int64], written: Mapping[int, Bridge]
    ) -> list[Unit]:
        """Units of some texts."""
        entities = np.repeat(table.keys, table.counts).tolist()
        first = np.repeat(np.cumsum(table.counts) - table.counts, table.counts).tolist()
        groups = [shared.facts_of(int(number)) for number in chosen]
        unread = {entities[fact] for facts in groups for fact in facts if entities[fact] not in written}
        notes = self._view.notes([bridge_name(key) for key in sorted(unread)])
        bridges = {**written, **{key: bridge_from_note(notes[bridge_name(key)]) for key in unread}}
        said = _Said(self._view)
        return [
            _unit([(bridges[entities[fact]], fact - first[fact]) for fact in facts], said, self._view.fingerprint)
            for facts in groups
        ]

    def _there(self, fresh: Sequence[Unit]) -> dict[str, Unit | None]:
        """Units that were stored; only those are read that are written again."""
        if self._anew:
            return {unit.id: unit for unit in self._view.units()}
        there: dict[str, Unit | None] = dict.fromkeys(np.char.decode(self._bridges.made_ids, "ascii").tolist())
        again = [unit.id for unit in fresh if unit.id in there]
        there.update((unit.id, unit) for unit in self._view.units(again))
        return there

    def _notes(self, after: BridgeTable, written: Mapping[int, Bridge]) -> dict[str, bytes | None]:
        """Everything to remember."""
        lost = np.setdiff1d(self._bridges.keys, after.keys).tolist()
        notes: dict[str, bytes | None] = dict.fromkeys([*self._gone, *(bridge_name(key) for key in lost)])
        notes |= {head: document_to_note(found, self._passages[head]) for head, found in self._fresh.items()}
        notes |= {bridge_name(key): bridge.to_note() for key, bridge in written.items()}
        return notes | {_DOCUMENTS: self._table.to_note(), _BRIDGES: after.to_note()}


class _Said(dict[str, str]):
    """What chunks say, as name keys."""

    def __init__(self, view: BuildView) -> None:
        super().__init__()
        self._chunks = {chunk.id: chunk for chunk in view.chunks}

    def __missing__(self, chunk: str) -> str:
        self[chunk] = said = name_key(self._chunks[chunk].index_text)
        return said


def _unit(facts: Sequence[tuple[Bridge, int]], said: Mapping[str, str], fingerprint: str) -> Unit:
    """The unit of bridging facts of one text, each given as a bridge and a place in it."""
    text = facts[0][0].facts[facts[0][1]][0]
    chunks = tuple(dict.fromkeys(chunk for bridge, place in facts for chunk in bridge.facts[place][1]))
    keys = dict.fromkeys(bridge.key for bridge, _ in facts)
    return Unit(
        id=unit_id(UnitKind.BRIDGE.value, fingerprint, chunks, text),
        kind=UnitKind.BRIDGE,
        text=text,
        chunk_ids=chunks,
        # A record may know an entity by a name that only another, perhaps hidden, document spells out.
        entity_keys=tuple(key for key in keys if any(name_key(key) in said[chunk] for chunk in chunks)),
    )
