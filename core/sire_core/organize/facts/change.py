"""From a change of the corpus to the aggregates that it changes; no other facts are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sire_core.organize.facts.aggregates import Aggregate, FactLine, aggregate_of, fact_of
from sire_core.organize.facts.groups import Groups, group_lines
from sire_core.organize.facts.table import FactTable, facts_from_note, facts_to_note

if TYPE_CHECKING:
    from sire_core.protocols import BuildView
    from sire_core.types import ExtractionRecord, Unit

__all__ = ["FactChange", "Remade"]

_TABLE = "table"
_STATEMENT = np.uint64(0x5BD1E9955BD1E995)
"""Tells the signature of a single fact from that of an aggregate of it."""


@dataclass(frozen=True, slots=True)
class Remade:
    """What aggregates (or single facts) became.

    Attributes:
        ids: Of all their units, in order.
        fresh: Units that were made now, by id.
        made: See `FactTable`.
        heads: See `FactTable`.
    """

    ids: list[str]
    fresh: dict[str, Unit]
    made: dict[int, tuple[str, ...]]
    heads: dict[int, int]


class FactChange:
    """The facts of a corpus before and after a change.

    Args:
        view: Of the organizer whose notes the facts are.
        redone: Ids of chunks whose records changed.
        read: Facts of a chunk unit, from its record.
        entity_key: See `name_key`.
    """

    def __init__(
        self,
        view: BuildView,
        redone: Collection[str],
        read: Callable[[Unit, Mapping[str, ExtractionRecord]], list[FactLine]],
        entity_key: str,
    ) -> None:
        self._view = view
        self._key = entity_key
        self._units = view.chunk_units
        self.before = FactTable.from_note(view.notes([_TABLE]).get(_TABLE))
        changed = {*redone, *(view.relinked() if self.before.passages else ())}
        outdated = self.before.outdated(self._units, changed, view.makers[1])
        records = view.records(None if len(outdated) == len(self._units) else {unit.id for unit in outdated})
        self._fresh = {unit.id: read(unit, records) for unit in outdated}
        self.table = self.before.with_facts(self._units, self._fresh, view.makers[1], entity_key)
        self._passages = np.repeat(np.arange(len(self._units)), self.table.counts)

    def groups(self, singleton_rule: str, *, merge_equal: bool) -> Groups:
        """Which facts go into which aggregate; see `group_lines`."""
        return group_lines(self.table.lines, singleton_rule, merge_equal=merge_equal)

    def aggregates(
        self, groups: Groups, known: Mapping[int, tuple[str, ...]], make: Callable[[Aggregate], Sequence[Unit]]
    ) -> Remade:
        """Units of all aggregates; only those that are not known are made.

        Args:
            groups: Of the facts.
            known: Ids of units by signature of aggregates that are stored.
            make: Units of an aggregate.
        """
        signatures = groups.signatures.tolist()
        todo = [number for number, signature in enumerate(signatures) if signature not in known]
        lines = self._read(groups, {int(fact) for n in todo for facts in groups.members_of(n) for fact in facts})
        fresh = {signatures[n]: make(aggregate_of(groups, n, lines, self._key)) for n in todo}
        heads = dict(zip(signatures, groups.heads.tolist(), strict=True))
        return _remade(signatures, known, fresh, heads)

    def statements(
        self, groups: Groups, known: Mapping[int, tuple[str, ...]], make: Callable[[FactLine], Sequence[Unit]]
    ) -> Remade:
        """Units of all facts, those of equal text as one; only those that are not known are made."""
        signatures = (groups.facts ^ _STATEMENT).tolist()
        todo = [number for number, signature in enumerate(signatures) if signature not in known]
        lines = self._read(groups, todo)
        fresh = {signatures[n]: make(fact_of(groups, n, lines)) for n in todo}
        return _remade(signatures, known, fresh, dict.fromkeys(signatures, 0))

    def heirs(self, remade: Remade) -> dict[str, str]:
        """Units of changed aggregates by those of the aggregates under the same key before the change."""
        old = {self.before.heads[signature]: ids for signature, ids in self.before.made.items()}
        heirs: dict[str, str] = {}
        for signature, ids in remade.made.items():
            if signature not in self.before.made:
                known = old.get(remade.heads[signature], ())
                gone, new = ([i for i in one if i not in other] for one, other in ((known, ids), (ids, known)))
                heirs.update(zip(gone, new, strict=False))
        return heirs

    def notes(self, *remade: Remade) -> dict[str, bytes | None]:
        """Everything to remember."""
        made = {signature: ids for part in remade for signature, ids in part.made.items()}
        heads = {signature: head for part in remade for signature, head in part.heads.items()}
        gone = set(self.before.passages).difference(self.table.passages)
        notes: dict[str, bytes | None] = dict.fromkeys(sorted(gone))
        notes |= {unit: facts_to_note(lines) for unit, lines in self._fresh.items()}
        return notes | {_TABLE: replace(self.table, made=made, heads=heads).to_note()}

    def _read(self, groups: Groups, facts: Collection[int]) -> list[FactLine | None]:
        """All lines in corpus order, those of some facts filled in."""
        wanted = [line for fact in facts for line in groups.lines_of(fact)]
        places = dict.fromkeys(int(self._passages[line]) for line in wanted)
        notes = self._view.notes(
            [self._units[place].id for place in places if self._units[place].id not in self._fresh]
        )
        starts = np.cumsum(self.table.counts) - self.table.counts
        lines: list[FactLine | None] = [None] * len(self.table.lines)
        for place in places:
            unit = self._units[place]
            found = self._fresh[unit.id] if unit.id in self._fresh else facts_from_note(notes[unit.id], unit)
            lines[starts[place] : starts[place] + len(found)] = found
        return lines


def _remade(
    signatures: Sequence[int],
    known: Mapping[int, tuple[str, ...]],
    fresh: Mapping[int, Sequence[Unit]],
    heads: Mapping[int, int],
) -> Remade:
    made = {s: tuple(unit.id for unit in fresh[s]) if s in fresh else known[s] for s in signatures}
    units = {unit.id: unit for part in fresh.values() for unit in part}
    return Remade(list(dict.fromkeys(found for ids in made.values() for found in ids)), units, made, dict(heads))
