"""The steps of `KnowledgeGraph`: who names an entity, and what is stated of two."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from sire_core.algorithms.text import cached_key, name_key
from sire_core.derive.rows import Entry, Group, Item, Output, Row, StoredOutput, document_of
from sire_core.derive.step import Context, Step
from sire_core.knowledge.name_claims import CLAIMS
from sire_core.knowledge.name_merging import VALUE, NameMerging
from sire_core.knowledge.passage_names import PassageNames
from sire_core.types import Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.derive.tables import Table

__all__ = ["Entities", "Relations", "entity_id"]

_ENTITY, _LITERAL = "e:", "l:"
"""What an end of a statement is, if no `VALUE`: an entity; a text. In front of its key."""

_END = "\x1f"


def entity_id(fingerprint: str, key: str) -> str:
    """Id of an entity, with or without a unit: it stays whatever passages come to name the entity."""
    return unit_id(UnitKind.ENTITY.value, fingerprint, (), key)


@dataclass(frozen=True, slots=True)
class Entities(Step):
    """Who names an entity, under which names.

    Attributes:
        fingerprint: Build fingerprint of the organizer.
        skip_types: See `KnowledgeGraph`, as for `literals` and `index_units`.
        limit: An entity with more passages keeps only those it titles.
        merging: Which names mean one entity; None keeps every name apart.
        literals: Whether all ends of triples are entities.
        index_units: Whether entities are units.
    """

    fingerprint: str
    skip_types: tuple[str, ...]
    limit: int
    merging: NameMerging | None
    literals: bool
    index_units: bool
    name = "entities"
    merged_by = "entities"
    independent = True
    without_output = (CLAIMS,)

    def map(self, item: Item) -> Iterable[Row]:
        """A row per name of an entity: names that the passage spells out, type, whether it is the title, chunks.

        And one per entity that the passage gives aliases, with their keys.
        """
        said, chunks = _names(item), list(item.value.unit.chunk_ids)
        if said.title_key:
            yield Row(said.title_key, [list(said.title_names), "", True, chunks])
        for entity in said.entities:
            if entity.key and entity.key != CLAIMS:
                yield Row(entity.key, [list(entity.names), entity.type, False, chunks])
            if entity.aliases:
                yield Row(CLAIMS, [entity.key, *entity.aliases])
        if self.literals:
            for key, names in said.literals().items():
                yield Row(key, [names, "", False, chunks])

    def size_limit(self) -> int | None:
        """Of passages that name an entity."""
        return self.limit

    async def resolve(self, table: Table, context: Context) -> Mapping[str, str]:
        """Names that mean one entity."""
        return {} if self.merging is None else await self.merging.resolve(table, context)

    def keys_of(self, group: str, members: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """The names of an entity."""
        return [name for name in members.get(group, (group,)) if not name.startswith(VALUE)]

    @property
    def settles(self) -> bool:  # type: ignore[override] # a unit names all of its passages
        """Whether some entities need not be looked at again."""
        return not self.index_units

    def settled(
        self,
        came: Mapping[str, Sequence[Entry]],
        went: Mapping[str, Sequence[Entry]],
        stored: Mapping[str, StoredOutput],
    ) -> Iterable[str]:
        """Entities above the limit that title no passage, and names of skipped types: both may have many rows."""
        for group in {*came, *went}:
            rows, output = [*came.get(group, ()), *went.get(group, ())], stored.get(group)
            if group == CLAIMS:
                yield group  # these rows are for `resolve` and have no output
                continue
            titled = any(row.body[2] for row in rows) or any(edge[3] for edge in (output.data if output else ()))
            if titled or (output is not None and min(row.place for row in rows) <= output.place):
                continue
            # Without edges an output can only be of an entity above the limit.
            above = output is not None and not output.data and group not in went
            if above or all(row.body[1] in self.skip_types for row in rows):
                yield group

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """The entity's name, and the passages that keep their edge: id, document, names, whether it is the title."""
        del context
        return [None if group.key == CLAIMS else self._output(group) for group in groups]

    def _output(self, group: Group) -> Output | None:
        titled = {entry.key for entry in group.entries if entry.body[2]}
        mentions: dict[str, tuple[Entry, dict[str, None], list[bool]]] = {}
        for entry in group.entries:
            names, kind, is_title, _ = entry.body
            if is_title or kind not in self.skip_types or entry.key in titled:
                found = mentions.setdefault(entry.item, (entry, {}, []))
                found[1].update(dict.fromkeys(names))
                found[2].append(is_title)
        if not mentions:
            return None
        text = _spelled(group.key, [list(names) for _, names, _ in mentions.values()])
        edges = [
            [passage, document_of(entry.place), list(names), any(titles)]
            for passage, (entry, names, titles) in mentions.items()
            if len(mentions) <= self.limit or any(titles)
        ]
        units: tuple[Unit, ...] = ()
        if self.index_units and text:
            chunks = tuple(chunk for entry, _, _ in mentions.values() for chunk in entry.body[3])
            found_id = entity_id(self.fingerprint, group.key)
            units = (Unit(found_id, UnitKind.ENTITY, text, chunks, entity_keys=(name_key(text),), title=text),)
        return Output(edges, units)


@dataclass(frozen=True, slots=True)
class Relations(Step):
    """What passages state of two entities, or of an entity and a value.

    Attributes:
        fingerprint: Build fingerprint of the organizer.
        skip_types: Entity types that are values here; see `KnowledgeGraph`.
    """

    fingerprint: str
    skip_types: tuple[str, ...]
    name = "relations"
    merged_by = "entities"
    independent = True

    def map(self, item: Item) -> Iterable[Row]:
        """A row per statement: its text and chunks."""
        said, chunks = _names(item), list(item.value.unit.chunk_ids)
        entities = {entity.id: entity for entity in said.entities}
        titled = {said.title_key: list(said.title_names)} if said.title_key else {}
        for head, predicate, tail, fact in said.statements:
            ends: list[str] = []
            names: list[str] = []
            for end in (head, tail):
                entity = entities.get(end)
                if entity is not None and entity.key:
                    value = entity.type in self.skip_types
                    ends.append(f"{VALUE if value else _ENTITY}{entity.key}")
                    names += [entity.name] if value else [*titled.get(entity.key, ()), *entity.names][:1]
                else:
                    literal = entity.name if entity is not None else end
                    ends.append(f"{_LITERAL}{cached_key(literal)}")
                    names.append(literal)
            # A name that only another passage spells out must not show: the fact itself speaks instead.
            text = f"{names[0]} {predicate} {names[1]}" if len(names) == 2 else fact
            yield Row(_END.join((ends[0], cached_key(predicate), ends[1])), [text, chunks])

    def group_of(self, key: str, merged: Mapping[str, str]) -> str:
        """The relation between what its ends were resolved to."""
        head, predicate, tail = key.split(_END)
        return _END.join((_resolved(head, merged), predicate, _resolved(tail, merged)))

    def keys_of(self, group: str, members: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """All ways to state a relation."""
        head, predicate, tail = group.split(_END)
        return [
            _END.join((one, predicate, other)) for one, other in product(_ends(head, members), _ends(tail, members))
        ]

    def renamed(self, names: Collection[str], table: Table, context: Context) -> Iterable[str]:
        """Statements of the passages that use one of these names."""
        plain = {name.removeprefix(VALUE) for name in names}
        rows = context.tables[Entities.name].entries(plain)
        return {entry.key for entry in table.entries_of({entry.item for found in rows.values() for entry in found})}

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """A unit with the text of the first statement, on all passages that state the relation; and its ends."""
        del context
        found = []
        for group in groups:
            head, _, tail = group.key.split(_END)
            text = group.entries[0].body[0]
            chunks = tuple(dict.fromkeys(chunk for entry in group.entries for chunk in entry.body[1]))
            relation = unit_id(UnitKind.RELATION.value, self.fingerprint, (), group.key)
            found.append(Output([head, tail], (Unit(relation, UnitKind.RELATION, text, chunks),)))
        return found


def _names(item: Item) -> PassageNames:
    return PassageNames.of(item.value.unit, item.value.record)


def _spelled(key: str, mentions: Sequence[Sequence[str]]) -> str:
    """The entity's own name where a passage spells it out, else the longest there is; nameless ones are nodes only."""
    names = [name for found in mentions for name in found]
    return next((name for name in names if cached_key(name) == key), "") or max(names, key=len, default="")


def _resolved(end: str, merged: Mapping[str, str]) -> str:
    kind, key = end[:2], end[2:]
    if kind == _LITERAL:
        return key
    return merged.get(end if kind == VALUE else key, key)


def _ends(key: str, members: Mapping[str, Sequence[str]]) -> list[str]:
    names = members.get(key, (key,))
    own = [name if name.startswith(VALUE) else f"{_ENTITY}{name}" for name in names]
    return list(dict.fromkeys([*own, f"{VALUE}{key}", f"{_LITERAL}{key}"]))
