"""`KnowledgeGraph`: derives the entities that passages name and the relations they state (MS-RAG, section 3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from sire_core.changes.derivation import Derivation
from sire_core.changes.step import Context, Step
from sire_core.changes.step_rows import Entry, Group, Item, Output, OutputChange, Row, document_of
from sire_core.documents.heading_paths import naming_title
from sire_core.extraction.headings import base_title
from sire_core.knowledge import MENTIONS, RELATES
from sire_core.knowledge.same_names import CLAIMS, VALUE, NameMerging
from sire_core.settings import check_settings, refuse_unused, setting
from sire_core.text.words import cached_key, name_key
from sire_core.types import Chunk, ExtractionRecord, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.changes.step_table import Table
    from sire_core.knowledge.edge_columns import EdgeChange
    from sire_core.protocols import BuildView, Change, Delta


class NamedEntity(NamedTuple):
    """An entity of an extraction record."""

    id: str  # local to the record
    name: str  # as the record has it
    type: str  # entity type
    key: str  # of the name
    names: tuple[str, ...]  # name and aliases that the passage spells out, in order
    aliases: tuple[str, ...]  # keys of the aliases that have one


@dataclass(frozen=True, slots=True)
class PassageNames:
    """Names and statements of one passage, independent of other passages."""

    title_key: str = ""  # key of the title, or of a first line that is one, without its bracketed part; empty for none
    title_names: tuple[str, ...] = ()  # the title with and without that part
    entities: tuple[NamedEntity, ...] = ()  # of the record, in order
    # Triples of the record, in order: ends (ids of entities, or literals) and predicate, then the text that states them
    statements: tuple[tuple[str, str, str, str], ...] = ()

    def literals(self) -> dict[str, list[str]]:
        """Return, by key, ends of statements that are not entities of the record, spelled out or not."""
        entities = {entity.id for entity in self.entities if entity.key}
        names: dict[str, list[str]] = {}
        for end in dict.fromkeys(end for head, _, tail, _ in self.statements for end in (head, tail)):
            if end not in entities and (key := cached_key(end)):
                names.setdefault(key, []).append(end)
        return names

    @classmethod
    def of(cls, chunk: Chunk | Unit, record: ExtractionRecord | None) -> PassageNames:
        """Build it from a passage and its extraction record."""
        title = naming_title(chunk.title, chunk.text)
        base = base_title(title)
        key = cached_key(base) if title else ""
        names = tuple(dict.fromkeys((title, base))) if key else ()
        if record is None:
            return cls(key, names)
        text_key = name_key(chunk.index_text)
        entities = tuple(
            NamedEntity(
                entity.id,
                entity.name,
                entity.type,
                cached_key(entity.name),
                tuple(name for name in dict.fromkeys((entity.name, *entity.aliases)) if cached_key(name) in text_key),
                tuple(alias for alias in map(cached_key, entity.aliases) if alias),
            )
            for entity in record.entities
        )
        statements = tuple(
            (triple.head, triple.predicate, triple.tail, fact.text) for fact in record.facts for triple in fact.triples
        )
        return cls(key, names, entities, statements)


_ENTITY_PREFIX, _LITERAL = "e:", "l:"
"""Prefixes of the keys of ends of statements: an entity, a literal; see also `VALUE`."""

_END = "\x1f"


def entity_id(fingerprint: str, key: str) -> str:
    """Return the id of an entity, which does not depend on the passages that name it."""
    return unit_id(UnitKind.ENTITY.value, fingerprint, (), key)


@dataclass(frozen=True, slots=True)
class Entities(Step):
    """Groups the mentions of entities."""

    fingerprint: str  # build fingerprint of the organizer
    skip_types: tuple[str, ...]  # see `KnowledgeGraph`, as for `literals` and `index_units`
    limit: int  # an entity with more passages keeps only those it titles
    merging: NameMerging | None  # which names mean one entity; None keeps every name apart
    literals: bool  # whether all ends of triples are entities, and names that the passage does not spell out
    entity_source: str  # which names are entities; see `KnowledgeGraph`
    index_units: bool  # whether entities are units
    name = "entities"
    merged_by = "entities"
    independent = True
    without_output = (CLAIMS,)

    def map(self, item: Item) -> Iterable[Row]:
        """Yield a row per name of an entity: names that the passage spells out, type, whether it is the title.

        Behind these stand the passage's chunks where entities are units. And a row per entity that the passage gives
        aliases, with their keys.
        """
        spellings, chunks = _names(item), [list(item.value.unit.chunk_ids)] if self.index_units else []
        if spellings.title_key and self.entity_source == "all":
            yield Row(spellings.title_key, [list(spellings.title_names), "", True, *chunks])
        ends = {end for head, _, tail, _ in spellings.statements for end in (head, tail)}
        as_extracted = self.literals or self.entity_source != "all"  # names, too, that the passage does not spell out
        for entity in spellings.entities:
            if self.entity_source == "triples" and entity.id not in ends:
                continue
            if entity.key and entity.key != CLAIMS:
                names = entity.names or ((entity.name,) if as_extracted else ())
                yield Row(entity.key, [list(names), entity.type, False, *chunks])
            if entity.aliases:
                yield Row(CLAIMS, [entity.key, *entity.aliases])
        if self.literals:
            for key, ends_of_key in spellings.literals().items():
                yield Row(key, [ends_of_key, "", False, *chunks])

    def size_limit(self) -> int | None:
        """Return the maximum number of passages of an entity."""
        return self.limit

    async def resolve(self, table: Table, context: Context) -> Mapping[str, str]:
        """Merge names that mean one entity."""
        return {} if self.merging is None else await self.merging.resolve(table, context)

    def keys_of(self, group: str, members: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """Return the names of an entity."""
        return [name for name in members.get(group, (group,)) if not name.startswith(VALUE)]

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Return the entity's name, and its edges: id of the passage, document, names, whether it is the title."""
        del context
        return [self._output(group) for group in groups]

    def _output(self, group: Group) -> Output | None:
        titled = {entry.key for entry in group.entries if entry.body[2]}
        mentions: dict[str, tuple[Entry, dict[str, None], list[bool]]] = {}
        for entry in group.entries:
            names, kind, is_title, *_ = entry.body
            if is_title or kind not in self.skip_types or entry.key in titled:
                mention = mentions.setdefault(entry.item, (entry, {}, []))
                mention[1].update(dict.fromkeys(names))
                mention[2].append(is_title)
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
    """Groups statements about two entities, or an entity and a value, into relations."""

    fingerprint: str  # build fingerprint of the organizer
    skip_types: tuple[str, ...]  # entity types that are values here; see `KnowledgeGraph`
    literals: bool  # whether all ends of triples are entities, those that the passage does not spell out, too
    titles: bool  # whether a title is a name of what it stands for
    name = "relations"
    merged_by = "entities"
    independent = True

    def map(self, item: Item) -> Iterable[Row]:
        """Yield a row per statement: its text and chunks."""
        spellings, chunks = _names(item), list(item.value.unit.chunk_ids)
        entities = {entity.id: entity for entity in spellings.entities}
        titled = {spellings.title_key: spellings.title_names} if self.titles and spellings.title_key else {}
        for head, predicate, tail, fact in spellings.statements:
            ends: list[str] = []
            names: list[str] = []
            for end in (head, tail):
                entity = entities.get(end)
                if entity is not None and entity.key:
                    value = entity.type in self.skip_types
                    ends.append(f"{VALUE if value else _ENTITY_PREFIX}{entity.key}")
                    spelled = *titled.get(entity.key, ()), *entity.names, *((entity.name,) if self.literals else ())
                    names += [entity.name] if value else spelled[:1]
                else:
                    literal = entity.name if entity is not None else end
                    ends.append(f"{_LITERAL}{cached_key(literal)}")
                    names.append(literal)
            # A name that only another passage spells out must not show: the fact itself speaks instead.
            text = f"{names[0]} {predicate} {names[1]}" if len(names) == 2 else fact
            yield Row(_END.join((ends[0], cached_key(predicate), ends[1])), [text, chunks])

    def group_of(self, key: str, merged: Mapping[str, str]) -> str:
        """Return the relation between the entities to which the ends were resolved."""
        head, predicate, tail = key.split(_END)
        return _END.join((_resolved(head, merged), predicate, _resolved(tail, merged)))

    def keys_of(self, group: str, members: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """Return the keys of all statements of a relation."""
        head, predicate, tail = group.split(_END)
        return [
            _END.join((one, predicate, other)) for one, other in product(_ends(head, members), _ends(tail, members))
        ]

    def renamed(self, names: Collection[str], table: Table, context: Context) -> Iterable[str]:
        """Return the statements of passages that use one of these names."""
        plain = {name.removeprefix(VALUE) for name in names}
        rows = context.tables[Entities.name].entries(plain)
        return {entry.key for entry in table.entries_of({entry.item for row in rows.values() for entry in row})}

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Make a unit per relation with the text of the first statement and all sources; and its ends."""
        del context
        outputs = []
        for group in groups:
            head, _, tail = group.key.split(_END)
            text = group.entries[0].body[0]
            chunks = tuple(dict.fromkeys(chunk for entry in group.entries for chunk in entry.body[1]))
            relation = unit_id(UnitKind.RELATION.value, self.fingerprint, (), group.key)
            outputs.append(Output([head, tail], (Unit(relation, UnitKind.RELATION, text, chunks),)))
        return outputs


def _names(item: Item) -> PassageNames:
    return PassageNames.of(item.value.unit, item.value.record)


def _spelled(key: str, mentions: Sequence[Sequence[str]]) -> str:
    """The entity's own name if a passage spells it out, else the longest name; empty if there is none."""
    names = [name for mention in mentions for name in mention]
    return next((name for name in names if cached_key(name) == key), "") or max(names, key=len, default="")


def _resolved(end: str, merged: Mapping[str, str]) -> str:
    kind, key = end[:2], end[2:]
    if kind == _LITERAL:
        return key
    return merged.get(end if kind == VALUE else key, key)


def _ends(key: str, members: Mapping[str, Sequence[str]]) -> list[str]:
    names = members.get(key, (key,))
    end_keys = [name if name.startswith(VALUE) else f"{_ENTITY_PREFIX}{name}" for name in names]
    return list(dict.fromkeys([*end_keys, f"{VALUE}{key}", f"{_LITERAL}{key}"]))


@dataclass(frozen=True, slots=True)
class KnowledgeGraph(Derivation):
    """A graph over passages and entities.

    Attributes:
        index_units: Whether entities and relations are units with vectors, as in MS-RAG. Otherwise only the passages
            are embedded.
        index_relations: Whether relations are units, too, with `index_units`.
        disambiguate: Whether names of the same entity are merged (MS-RAG, Table 13: no).
        summaries: Whether a language model, where there is one, writes what the passages say about every entity and
            relation, into the unit's metadata `summary`: for answers, never for ranking.
        similar_names: With disambiguation, also merge names that share a word if their vectors have at least this
            cosine similarity; .92 is a good value. None merges only where passages say so.
        max_names: Maximum names of an entity; a merge that exceeds it is refused, and so is one of contradictory types
            or of a name that several entities claim. None merges whatever passages say, as in MS-RAG.
        skip_types: Entity types left out of the graph, unless they are the title of a passage; `[]` includes all, also
            dates and quantities, as in MS-RAG.
        literals: Whether all ends of triples are entities, as in the graphs of HippoRAG and MS-RAG: also common nouns,
            such as "basketball", and extracted names that the passage does not spell out.
        entity_source: Which names are entities: `all`, titles of passages and extracted entities; `extracted`, the
            latter alone; or `triples`, those alone that are ends of triples, as in HippoRAG 2.
        max_df: Entities that more than this share of the passages name are ignored, except for passages with this
            title.
        hub_floor: `max_df` never ignores entities in at most this many passages.
    """

    name: ClassVar[str] = "knowledge_graph"

    index_units: bool = False
    index_relations: bool = True
    disambiguate: bool = True
    similar_names: float | None = setting(None, above=0.0, high=1.0)
    summaries: bool = False
    max_names: int | None = setting(8, low=1)
    skip_types: tuple[str, ...] = ("Date", "Quantity")
    literals: bool = False
    entity_source: str = setting("all", choices=("all", "extracted", "triples"))
    max_df: float = setting(0.02, low=0.0, high=1.0)
    hub_floor: int = setting(10, low=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.disambiguate:
            refuse_unused(self, "disambiguate=False", ("similar_names", "max_names"))

    @property
    def needs_summaries(self) -> bool:
        """True if it writes summaries of its elements."""
        return self.summaries

    def describe(self) -> str:
        """Describe what is built and what it costs."""
        units = "with entities and relations as units with vectors" if self.index_units else "without further vectors"
        return (
            f"A graph of passages and the entities they name, {units}. Model calls: one extraction per passage"
            f"{' and one per twenty units for their summaries' if self.summaries else ''} with a language model, none "
            "without."
        )

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Group mentions into entities, and statements into relations."""
        limit = max(self.hub_floor, int(self.max_df * len(view.chunk_units)))
        merging = NameMerging(self.max_names, self.similar_names) if self.disambiguate else None
        entities = Entities(
            view.fingerprint, self.skip_types, limit, merging, self.literals, self.entity_source, self.index_units
        )
        has_relations = self.index_units and self.index_relations
        titles = self.entity_source == "all"
        relations = Relations(view.fingerprint, self.skip_types, self.literals, titles)
        return (entities, relations) if has_relations else (entities,)

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Update the graph after a change."""
        from sire_core.changes.engine import run_steps
        from sire_core.knowledge.edge_columns import updated_blocks

        results = await run_steps(self.steps(view), change, view)
        notes: dict[str, bytes | None] = {}
        for kind, changes in (
            (MENTIONS, _mentions(results.outputs[Entities.name], view.fingerprint)),
            (RELATES, _relations(results.outputs.get(Relations.name, ()), view.fingerprint)),
        ):
            notes |= await asyncio.to_thread(updated_blocks, kind, changes, view.notes, view.runner)
        delta = replace(results.delta, notes=notes)
        if not self.summaries or view.language_model is None:
            return delta
        from sire_core.knowledge.element_summaries import with_summaries

        return await with_summaries(delta, view)


def _mentions(changes: Iterable[OutputChange], fingerprint: str) -> Iterable[EdgeChange]:
    """Yield the changed edges from passages to entities."""
    from sire_core.knowledge.edge_columns import EdgeChange

    for change in changes:
        target = entity_id(fingerprint, change.key)
        before, after = ({row[0]: row for row in (side.data if side else ())} for side in (change.before, change.after))
        for passage, row in before.items():
            if passage not in after:
                yield EdgeChange(passage, target, row[1], put=False)
        for passage, row in after.items():
            if before.get(passage) != row:
                yield EdgeChange(passage, target, row[1], put=True, names=row[2], title=bool(row[3]))


def _relations(changes: Iterable[OutputChange], fingerprint: str) -> Iterable[EdgeChange]:
    """Yield the changed edges from relations to their ends; a relation belongs to the first document that states it."""
    from sire_core.knowledge.edge_columns import EdgeChange

    for change in changes:
        for side, is_put in ((change.before, False), (change.after, True)):
            if side is not None:
                relation = unit_id(UnitKind.RELATION.value, fingerprint, (), change.key)
                for end in dict.fromkeys(side.data):
                    yield EdgeChange(relation, entity_id(fingerprint, end), document_of(side.place), is_put)
