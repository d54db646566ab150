"""`RelatednessTree`: facts grouped by entity, and a tree over the groups: SiReRAG's right tree (section 4.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sire_core.extend import (
    Context,
    Derivation,
    Entry,
    Group,
    Item,
    Output,
    Row,
    Step,
    Unit,
    UnitKind,
    check_settings,
    count_tokens,
    digest,
    hash64,
    name_key,
    part_starts,
    setting,
    unit_id,
)
from sire_core.papers.trees.tree import SummaryTree, TreeSettings

if TYPE_CHECKING:
    from sire_core.extend import BuildView, Change, Delta, OutputChange, Result, Table


_RULES = ("safe", "code", "paper")


@dataclass(frozen=True, slots=True)
class RelatednessTree(Derivation):
    """Aggregates of facts that share an entity, clustered and summarised recursively.

    Attributes:
        tree: How the tree grows.
        singleton_rule: `paper` keeps every group; `code` drops a group of one fact that is linked to another entity too
            (the released code); `safe` is like `code`, but keeps a fact that would be lost once, under its first
            entity.
        entity_key: See `name_key`.
        dup_facts: `drop` merges equal facts of different passages; `keep` repeats them, as the released code does.
        split_tokens: Longer aggregates are split into several units; None never splits.
        copy_share: Leave out an aggregate whose facts all come from one passage and make up at least this share of its
            tokens, because it repeats the passage. None keeps it, as in the paper.
        skip_types: Entity types without aggregates. Dates and quantities would connect unrelated facts; the paper does
            not mention them.
        aggregates: Whether aggregates are retrievable (variant C and D: no).
        summaries: Whether their summaries are (variant A and D: no).
        propositions: Whether single facts are (variants B, C and D: yes).

    Raises:
        ConfigurationError: Unknown rule.
    """

    name: ClassVar[str] = "relatedness_tree"

    tree: TreeSettings = field(default_factory=TreeSettings)
    singleton_rule: str = setting("safe", choices=_RULES)
    entity_key: str = setting("norm", choices=("norm", "lower", "exact"))
    dup_facts: str = setting("drop", choices=("drop", "keep"))
    split_tokens: int | None = setting(1024, low=1)
    copy_share: float | None = setting(0.8, low=0.0, high=1.0)
    skip_types: tuple[str, ...] = ("Date", "Quantity")
    aggregates: bool = True
    summaries: bool = True
    propositions: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def needs_summaries(self) -> bool:
        """True if summaries are written."""
        return self.summaries

    def describe(self) -> str:
        """Describe what is built, and what it costs."""
        return (
            f"Facts grouped by entity, and up to {self.tree.depth} levels of summaries over the groups. Model calls: "
            "one extraction per passage and about 165-175 summaries per 1,000 passages with a language model, none "
            "without."
        )

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Facts by their text, entities by their key, aggregates by their facts."""
        return (
            _Facts(view.fingerprint, self.skip_types, self.entity_key, self.dup_facts, self.propositions),
            _EntityFacts(self.singleton_rule),
            _Aggregates(self, view.fingerprint),
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the aggregates up to date, and the tree over them."""
        from sire_core.extend import run_steps

        result = await run_steps(self.steps(view), change, view)
        entities = result.tables[_EntityFacts.name].all_outputs().values()
        state = {**(result.delta.state or {}), "figures": _figures([len(entity.data[1]) for entity in entities])}
        if not self.summaries:
            return replace(result.delta, state=state)
        leaves = self._leaves(result)
        tree = await SummaryTree(UnitKind.REL_SUMMARY, "rel", self.tree, view).grow(
            leaves,
            full=result.is_new or len(change.added) == len(view.chunks),
            replacements=_replacements(result.outputs[_Aggregates.name]),
        )
        grown = tree.state or {}
        hidden = set() if self.aggregates else {leaf if isinstance(leaf, str) else leaf.id for leaf in leaves}
        return replace(
            result.delta,
            put_units=(*result.delta.put_units, *tree.put_units),
            drop_units=(*result.delta.drop_units, *tree.drop_units),
            put_edges=tuple(edge for edge in tree.put_edges if edge.target not in hidden),
            drop_edges=tree.drop_edges,
            state={**state, **grown, "figures": {**grown["figures"], **state["figures"]}},
        )

    def _leaves(self, result: Result) -> list[Unit | str]:
        """Return the units of all aggregates in corpus order; unchanged ones by id."""
        outputs = result.tables[_Aggregates.name].all_outputs()
        if not self.aggregates:
            return [Unit(**part) for output in outputs.values() for part in map(_from_json, output.data["hidden"])]
        fresh = {unit.id: unit for unit in result.delta.put_units}
        return [fresh.get(unit, unit) for output in outputs.values() for unit in output.units]


def _figures(counts: Sequence[int]) -> dict[str, Any]:
    """Return what `Index.stats` shows of the numbers of facts of entities (table 3)."""
    if not counts:
        return {}
    each = {"mean": round(sum(counts) / len(counts), 2), "max": max(counts), "min": min(counts)}
    return {"facts_per_entity": {"entities": len(counts), **each}}


@dataclass(frozen=True, slots=True)
class _Aggregates(Step):
    """Texts of entities that have exactly the same facts."""

    settings: RelatednessTree
    fingerprint: str
    name = "aggregates"
    source = "entities"

    def map(self, item: Item) -> Iterable[Row]:
        """Yield an entity under the facts that it has."""
        name, facts = item.value
        yield Row(digest(*(fact for fact, *_ in facts), size=8), [name, facts])

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        wanted = {fact for group in groups for entry in group.entries for fact, *_ in entry.body[1]}
        facts = context.tables[_Facts.name].data(wanted)
        return [self._output(group, facts) for group in groups]

    def _output(self, group: Group, facts: Mapping[str, Any]) -> Output:
        lines = [[facts[fact][number] for fact, number, _ in entry.body[1]] for entry in group.entries]
        stated: dict[str, set[str]] = {}
        for entry, entity_lines in zip(group.entries, lines, strict=True):
            stated[entry.item] = {chunk for line in entity_lines for chunk in line["entities"][entry.item][1]}
        head = group.entries[0]
        # The same words may come from other passages under another key; all of them are the source.
        aggregate = Aggregate(
            tuple(entry.item for entry in group.entries),
            head.body[0],
            tuple(_fact_line(equal_lines) for equal_lines in zip(*lines, strict=True)),
        )
        if self._repeats_passage(aggregate, lines[0]):
            return Output({"head": head.item, "hidden": []})
        units = tuple(self._units(group.key, aggregate, stated))
        if self.settings.aggregates:
            return Output({"head": head.item}, units)
        return Output({"head": head.item, "hidden": [_to_json(unit) for unit in units]})

    def _repeats_passage(self, aggregate: Aggregate, lines: Sequence[Mapping[str, Any]]) -> bool:
        """True if an aggregate says hardly more than one passage."""
        tokens = lines[0]["passage"]
        if (
            self.settings.copy_share is None
            or any(line["chunks"] != lines[0]["chunks"] for line in lines)
            or not tokens
        ):
            return False
        return bool(count_tokens(aggregate.text) >= self.settings.copy_share * tokens)

    def _units(self, key: str, aggregate: Aggregate, stated: Mapping[str, set[str]]) -> Iterable[Unit]:
        head = aggregate.keys[0]
        for text, chunk_ids in split_aggregate(aggregate, self.settings.split_tokens, stated[head]):
            yield Unit(
                id=unit_id(UnitKind.AGGREGATE.value, f"{self.fingerprint}:{key}", chunk_ids, text),
                kind=UnitKind.AGGREGATE,
                text=text,
                chunk_ids=chunk_ids,
                tree="rel",
                entity_keys=tuple(entity for entity in aggregate.keys if not stated[entity].isdisjoint(chunk_ids)),
                title=aggregate.name if not stated[head].isdisjoint(chunk_ids) else "",
            )


def _fact_line(lines: Sequence[Mapping[str, Any]]) -> FactLine:
    chunks = tuple(dict.fromkeys(chunk for line in lines for chunk in line["chunks"]))
    return FactLine(lines[0]["text"], tuple(name for name, _ in lines[0]["entities"].values()), chunks)


def _to_json(unit: Unit) -> dict[str, Any]:
    return {
        "id": unit.id,
        "text": unit.text,
        "chunk_ids": list(unit.chunk_ids),
        "entity_keys": list(unit.entity_keys),
        "title": unit.title,
    }


def _from_json(values: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: tuple(values[name]) for name in ("chunk_ids", "entity_keys")}
    return {**values, **lists, "kind": UnitKind.AGGREGATE, "tree": "rel"}


def _replacements(changes: Iterable[OutputChange]) -> dict[str, str]:
    """Return new units by the units of the same entity that they replace."""
    old = {change.before.data["head"]: change.before.units for change in changes if change.before}
    replacements: dict[str, str] = {}
    for change in changes:
        if change.after:
            old_units = old.get(change.after.data["head"], {})
            dropped = [unit for unit in old_units if unit not in change.after.units]
            new = [unit for unit in change.after.units if unit not in old_units]
            replacements.update(zip(dropped, new, strict=False))
    return replacements


@dataclass(frozen=True, slots=True)
class _Facts(Step):
    """Equal facts of all passages: text, entities, passages."""

    fingerprint: str  # build fingerprint of the organizer
    skip_types: tuple[str, ...]  # see `RelatednessTree`, as for the rest
    entity_key: str  # how names are compared
    dup_facts: str  # whether equal facts are merged
    propositions: bool  # whether facts are units
    name = "facts"
    independent = True

    def map(self, item: Item) -> Iterable[Row]:
        """Yield one row per fact: text, entities, chunks, tokens of the passage."""
        unit, record = item.value.unit, item.value.record
        if record is None:
            return
        names = {e.id: e.name for e in record.entities if e.type not in self.skip_types}
        passage_key = name_key(unit.index_text)
        tokens = count_tokens(unit.text)
        keyed = {name: (name_key(name, self.entity_key), name_key(name) in passage_key) for name in names.values()}
        for fact in record.facts:
            spelled = dict.fromkeys(names[entity] for entity in fact.entities if entity in names)
            entities = [[keyed[name][0], name, keyed[name][1]] for name in spelled if keyed[name][0]]
            yield Row(digest(fact.text, size=8), [fact.text, entities, list(unit.chunk_ids), tokens])

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Return a fact as its lines: one, or one per passage if duplicates are kept."""
        del context
        outputs: list[Output | None] = []
        for group in groups:
            merged = _merge_rows(group.entries)
            lines = [merged] if self.dup_facts == "drop" else [_merge_rows([entry]) for entry in group.entries]
            units = (self._proposition(group.key, merged),) if self.propositions else ()
            outputs.append(Output(lines, units))
        return outputs

    def _proposition(self, key: str, line: Mapping[str, Any]) -> Unit:
        text, chunk_ids = line["text"], tuple(line["chunks"])
        return Unit(
            id=unit_id(UnitKind.PROPOSITION.value, f"{self.fingerprint}:{key}", chunk_ids, text),
            kind=UnitKind.PROPOSITION,
            text=text,
            chunk_ids=chunk_ids,
            tree="rel",
        )


def _merge_rows(entries: Sequence[Entry]) -> dict[str, Any]:
    """Merge the rows of one fact into one line."""
    entities: dict[str, tuple[str, list[str]]] = {}
    bodies = [entry.body for entry in entries]
    for _, named, chunks, _ in bodies:
        for key, name, stated in named:
            spelled = entities.setdefault(key, (name, []))[1]
            spelled += [chunk for chunk in chunks if stated and chunk not in spelled]
    return {
        "text": bodies[0][0],
        "entities": {key: list(value) for key, value in entities.items()},
        "chunks": list(dict.fromkeys(chunk for body in bodies for chunk in body[2])),
        "passage": bodies[0][3] if len(bodies) == 1 else 0,
        "at": [entries[0].place, entries[0].number],
    }


@dataclass(frozen=True, slots=True)
class _EntityFacts(Step):
    """The facts of every entity, without those that the singleton rule drops."""

    singleton_rule: str
    name = "entities"
    source = "facts"

    def map(self, item: Item) -> Iterable[Row]:
        """Yield one row per line and entity: number of the line, name, and a digest of the line's content."""
        for number, line in enumerate(item.value):
            version = digest(*line["chunks"], "", *line["entities"], size=4)
            position, inside = line["at"]
            for offset, (key, (name, _)) in enumerate(line["entities"].items()):
                yield Row(key, [number, name, version], (position, inside + offset))

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Return name and facts of an entity; nothing for a group that the singleton rule drops."""
        dropped = self._dropped(groups, context)
        return [
            None
            if group.key in dropped
            else Output([group.entries[0].body[1], [[e.item, e.body[0], e.body[2]] for e in group.entries]])
            for group in groups
        ]

    def dependents(self, keys: Collection[str], table: Table, context: Context) -> Iterable[str]:
        """Return entities of one fact whose other entities crossed the line between one fact and several."""
        if self.singleton_rule == "paper":
            return ()
        sizes, sizes_before = table.sizes(keys), table.sizes_before(keys)
        changed = [key for key in keys if (sizes.get(key) == 1) != (sizes_before.get(key) == 1)]
        facts = {entry.item for entries in table.entries(changed).values() for entry in entries}
        lines_by_fact = context.tables[_Facts.name].data(facts)
        others = {key for lines in lines_by_fact.values() for line in lines for key in line["entities"]}
        return [key for key, size in table.sizes(others).items() if size == 1]

    def _dropped(self, groups: Sequence[Group], context: Context) -> set[str]:
        alone = {group.key: group.entries[0] for group in groups if len(group.entries) == 1}
        if self.singleton_rule == "paper" or not alone:
            return set()
        facts = context.tables[_Facts.name].data({entry.item for entry in alone.values()})
        # Links of a fact are those of all its lines, also where duplicates stay.
        linked = {
            key: entry for key, entry in alone.items() if sum(len(line["entities"]) for line in facts[entry.item]) > 1
        }
        if self.singleton_rule == "code":
            return set(linked)
        others = {key: list(facts[e.item][e.body[0]]["entities"]) for key, e in linked.items()}
        sizes = context.tables[self.name].sizes({key for entities in others.values() for key in entities})
        return {
            key
            for key, entities in others.items()
            if key != entities[0] or any(sizes.get(other, 0) > 1 for other in entities)
        }


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact of an aggregate."""

    text: str  # the fact
    entities: tuple[str, ...]  # names as written, in the order of the record
    chunk_ids: tuple[str, ...]  # chunks that state it


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Facts about one entity, or about several that have exactly the same facts."""

    keys: tuple[str, ...]  # entity keys, in order of appearance
    name: str  # the first entity's name as first written
    facts: tuple[FactLine, ...]  # in corpus order

    @property
    def text(self) -> str:
        """The facts, a line each."""
        return "\n".join(fact.text for fact in self.facts)

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """Chunks of the facts, in order, each once."""
        return tuple(dict.fromkeys(chunk for fact in self.facts for chunk in fact.chunk_ids))


def split_aggregate(
    aggregate: Aggregate, max_tokens: int | None, stating: set[str]
) -> list[tuple[str, tuple[str, ...]]]:
    """Cut an aggregate into (text, chunk ids) of at most `max_tokens`, never inside a fact.

    Parts that cite one of the chunks `stating` its name begin with the name.
    """
    if max_tokens is None or count_tokens(aggregate.text) <= max_tokens:
        return [(aggregate.text, aggregate.chunk_ids)]
    room = max(1, max_tokens - count_tokens(aggregate.name))
    facts = aggregate.facts
    starts = part_starts([count_tokens(fact.text) for fact in facts], [hash64(fact.text) for fact in facts], room)
    parts = [replace(aggregate, facts=facts[at:end]) for at, end in zip(starts, [*starts[1:], len(facts)], strict=True)]
    headings = ["" if stating.isdisjoint(part.chunk_ids) else f"{aggregate.name}\n" for part in parts]
    return [(heading + part.text, part.chunk_ids) for heading, part in zip(headings, parts, strict=True)]
