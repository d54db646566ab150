"""The first steps of `RelatednessTree`: equal facts of all passages, and the facts of every entity."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import count_tokens, name_key
from sire_core.derive.rows import Entry, Group, Item, Output, Row
from sire_core.derive.step import Context, Step
from sire_core.types import Unit, UnitKind, digest, unit_id

if TYPE_CHECKING:
    from sire_core.derive.tables import Table

__all__ = ["Facts", "FactsOfEntities"]


@dataclass(frozen=True, slots=True)
class Facts(Step):
    """Equal facts of all passages: text, entities, passages.

    Attributes:
        fingerprint: Build fingerprint of the organizer.
        skip_types: See `RelatednessTree`, as for the rest.
        entity_key: How names are compared.
        dup_facts: What becomes of equal facts.
        propositions: Whether facts are units.
    """

    fingerprint: str
    skip_types: tuple[str, ...]
    entity_key: str
    dup_facts: str
    propositions: bool
    name = "facts"
    independent = True

    def map(self, item: Item) -> Iterable[Row]:
        """One row per fact: text, entities, chunks, tokens of the passage."""
        unit, record = item.value.unit, item.value.record
        if record is None:
            return
        names = {e.id: e.name for e in record.entities if e.type not in self.skip_types}
        said = name_key(unit.index_text)
        tokens = count_tokens(unit.text)
        keyed = {name: (name_key(name, self.entity_key), name_key(name) in said) for name in names.values()}
        for fact in record.facts:
            spelled = dict.fromkeys(names[found] for found in fact.entities if found in names)
            entities = [[keyed[name][0], name, keyed[name][1]] for name in spelled if keyed[name][0]]
            yield Row(digest(fact.text, size=8), [fact.text, entities, list(unit.chunk_ids), tokens])

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """A fact as its lines: one, or where duplicates stay as many as there are."""
        del context
        found: list[Output | None] = []
        for group in groups:
            merged = _merged(group.entries)
            lines = [merged] if self.dup_facts == "drop" else [_merged([entry]) for entry in group.entries]
            units = (self._proposition(group.key, merged),) if self.propositions else ()
            found.append(Output(lines, units))
        return found

    def _proposition(self, key: str, line: Mapping[str, Any]) -> Unit:
        text, chunk_ids = line["text"], tuple(line["chunks"])
        return Unit(
            id=unit_id(UnitKind.PROPOSITION.value, f"{self.fingerprint}:{key}", chunk_ids, text),
            kind=UnitKind.PROPOSITION,
            text=text,
            chunk_ids=chunk_ids,
            tree="rel",
        )


def _merged(entries: Sequence[Entry]) -> dict[str, Any]:
    """Rows of one fact as one line.

    `entities` has, by key, the name as first written and the chunks that spell it out; a name that only another
    document spells out, say as its title, must not show: a filter that lets the fact through may hide the other one.
    """
    entities: dict[str, tuple[str, list[str]]] = {}
    bodies = [entry.body for entry in entries]
    for _, named, chunks, _ in bodies:
        for key, name, stated in named:
            spelled = entities.setdefault(key, (name, []))[1]
            spelled += [chunk for chunk in chunks if stated and chunk not in spelled]
    return {
        "text": bodies[0][0],
        "entities": {key: list(found) for key, found in entities.items()},
        "chunks": list(dict.fromkeys(chunk for body in bodies for chunk in body[2])),
        "passage": bodies[0][3] if len(bodies) == 1 else 0,
        "at": [entries[0].place, entries[0].number],
    }


@dataclass(frozen=True, slots=True)
class FactsOfEntities(Step):
    """The facts of every entity, of those that say something of their own.

    Attributes:
        singleton_rule: See `RelatednessTree`.
    """

    singleton_rule: str
    name = "entities"
    source = "facts"

    def map(self, item: Item) -> Iterable[Row]:
        """One row per line and entity: number of the line, name, and a digest of all that is taken from the line."""
        for number, line in enumerate(item.value):
            version = digest(*line["chunks"], "", *line["entities"], size=4)
            place, inside = line["at"]
            for offset, (key, (name, _)) in enumerate(line["entities"].items()):
                yield Row(key, [number, name, version], (place, inside + offset))

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Name and facts of an entity; nothing for a group that the singleton rule drops."""
        dropped = self._dropped(groups, context)
        return [
            None
            if group.key in dropped
            else Output([group.entries[0].body[1], [[e.item, e.body[0], e.body[2]] for e in group.entries]])
            for group in groups
        ]

    def dependents(self, keys: Collection[str], table: Table, context: Context) -> Iterable[str]:
        """Entities of one fact whose other entities came to have one fact alone, or more than one."""
        if self.singleton_rule == "paper":
            return ()
        now, before = table.sizes(keys), table.sizes_before(keys)
        turned = [key for key in keys if (now.get(key) == 1) != (before.get(key) == 1)]
        facts = {entry.item for entries in table.entries(turned).values() for entry in entries}
        found = context.tables[Facts.name].data(facts)
        others = {key for lines in found.values() for line in lines for key in line["entities"]}
        return [key for key, size in table.sizes(others).items() if size == 1]

    def _dropped(self, groups: Sequence[Group], context: Context) -> set[str]:
        alone = {group.key: group.entries[0] for group in groups if len(group.entries) == 1}
        if self.singleton_rule == "paper" or not alone:
            return set()
        facts = context.tables[Facts.name].data({entry.item for entry in alone.values()})
        # Links of a fact are those of all its lines, also where duplicates stay.
        linked = {
            key: entry for key, entry in alone.items() if sum(len(line["entities"]) for line in facts[entry.item]) > 1
        }
        if self.singleton_rule == "code":
            return set(linked)
        others = {key: list(facts[e.item][e.body[0]]["entities"]) for key, e in linked.items()}
        sizes = context.tables[self.name].sizes({key for found in others.values() for key in found})
        return {
            key for key, found in others.items() if key != found[0] or any(sizes.get(other, 0) > 1 for other in found)
        }
