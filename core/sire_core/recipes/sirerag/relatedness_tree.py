"""`RelatednessTree`: facts grouped by entity, and a tree over the groups: SiReRAG's right tree (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sire_core.algorithms.text import count_tokens
from sire_core.derive.derivation import Derivation
from sire_core.derive.rows import Group, Item, Output, Row
from sire_core.derive.step import Context, Step
from sire_core.recipes.sirerag.entity_facts import Facts, FactsOfEntities
from sire_core.settings import check_settings, setting
from sire_core.trees.settings import TreeSettings
from sire_core.types import Unit, UnitKind, digest, unit_id

if TYPE_CHECKING:
    from sire_core.derive.engine import Result
    from sire_core.derive.rows import OutputChange
    from sire_core.protocols import BuildView, Change, Delta
    from sire_core.recipes.sirerag.aggregates import Aggregate, FactLine

__all__ = ["RelatednessTree"]

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
        """Whether summaries are written."""
        return self.summaries

    def describe(self) -> str:
        """What is built, and what it costs."""
        return (
            f"Facts grouped by entity, and up to {self.tree.depth} levels of summaries over the groups. Model calls: "
            "one extraction per passage and about 165-175 summaries per 1,000 passages with a language model, none "
            "without."
        )

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Facts by their text, entities by their key, aggregates by the facts they are made of."""
        return (
            Facts(view.fingerprint, self.skip_types, self.entity_key, self.dup_facts, self.propositions),
            FactsOfEntities(self.singleton_rule),
            _Aggregates(self, view.fingerprint),
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the aggregates up to date, and the tree over them."""
        from sire_core.derive.engine import run_steps
        from sire_core.trees.tree import grow

        found = await run_steps(self.steps(view), change, view)
        if not self.summaries:
            return found.delta
        leaves = self._leaves(found)
        tree = await grow(
            leaves,
            UnitKind.REL_SUMMARY,
            "rel",
            self.tree,
            view,
            known=view.state().get("tree"),
            full=found.is_new or len(change.added) == len(view.chunks),
            replacements=_replacements(found.outputs[_Aggregates.name]),
        )
        hidden = set() if self.aggregates else {leaf if isinstance(leaf, str) else leaf.id for leaf in leaves}
        return replace(
            found.delta,
            put_units=(*found.delta.put_units, *tree.put_units),
            drop_units=(*found.delta.drop_units, *tree.drop_units),
            put_edges=tuple(edge for edge in tree.put_edges if edge.target not in hidden),
            drop_edges=tree.drop_edges,
            state={**(found.delta.state or {}), "tree": tree.state, "figures": tree.figures},
        )

    def _leaves(self, found: Result) -> list[Unit | str]:
        """Units of all aggregates in corpus order: new ones as they are, others by id."""
        outputs = found.tables[_Aggregates.name].all_outputs()
        if not self.aggregates:
            return [Unit(**part) for output in outputs.values() for part in map(_from_json, output.data["hidden"])]
        fresh = {unit.id: unit for unit in found.delta.put_units}
        return [fresh.get(unit, unit) for output in outputs.values() for unit in output.units]


@dataclass(frozen=True, slots=True)
class _Aggregates(Step):
    """Entities that have exactly the same facts, as texts.

    Attributes:
        settings: How long they may be, and which are left out.
        fingerprint: Build fingerprint of the organizer.
    """

    settings: RelatednessTree
    fingerprint: str
    name = "aggregates"
    source = "entities"

    def map(self, item: Item) -> Iterable[Row]:
        """An entity under the facts that it has."""
        name, facts = item.value
        yield Row(digest(*(fact for fact, *_ in facts), size=8), [name, facts])

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Units of the aggregates."""
        wanted = {fact for group in groups for entry in group.entries for fact, *_ in entry.body[1]}
        facts = context.tables[Facts.name].data(wanted)
        return [self._output(group, facts) for group in groups]

    def _output(self, group: Group, facts: Mapping[str, Any]) -> Output:
        from sire_core.recipes.sirerag.aggregates import Aggregate

        lines = [[facts[fact][number] for fact, number, _ in entry.body[1]] for entry in group.entries]
        stated: dict[str, set[str]] = {}
        for entry, found in zip(group.entries, lines, strict=True):
            stated[entry.item] = {chunk for line in found for chunk in line["entities"][entry.item][1]}
        head = group.entries[0]
        # The same words may come from other passages under another key; all of them are the source.
        made = Aggregate(
            tuple(entry.item for entry in group.entries),
            head.body[0],
            tuple(_fact_line(same) for same in zip(*lines, strict=True)),
        )
        if self._restates(made, lines[0]):
            return Output({"head": head.item, "hidden": []})
        units = tuple(self._units(group.key, made, stated))
        if self.settings.aggregates:
            return Output({"head": head.item}, units)
        return Output({"head": head.item, "hidden": [_to_json(unit) for unit in units]})

    def _restates(self, aggregate: Aggregate, lines: Sequence[Mapping[str, Any]]) -> bool:
        """Whether an aggregate hardly says anything but what one passage says."""
        tokens = lines[0]["passage"]
        if (
            self.settings.copy_share is None
            or any(line["chunks"] != lines[0]["chunks"] for line in lines)
            or not tokens
        ):
            return False
        return bool(count_tokens(aggregate.text) >= self.settings.copy_share * tokens)

    def _units(self, key: str, aggregate: Aggregate, stated: Mapping[str, set[str]]) -> Iterable[Unit]:
        from sire_core.recipes.sirerag.aggregates import split_aggregate

        head = aggregate.keys[0]
        for text, chunk_ids in split_aggregate(
            aggregate, self.settings.split_tokens, lambda chunks, _: not stated[head].isdisjoint(chunks)
        ):
            yield Unit(
                id=unit_id(UnitKind.AGGREGATE.value, f"{self.fingerprint}:{key}", chunk_ids, text),
                kind=UnitKind.AGGREGATE,
                text=text,
                chunk_ids=chunk_ids,
                tree="rel",
                entity_keys=tuple(found for found in aggregate.keys if not stated[found].isdisjoint(chunk_ids)),
                title=aggregate.name if not stated[head].isdisjoint(chunk_ids) else "",
            )


def _fact_line(lines: Sequence[Mapping[str, Any]]) -> FactLine:
    from sire_core.recipes.sirerag.aggregates import FactLine

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


def _from_json(found: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: tuple(found[name]) for name in ("chunk_ids", "entity_keys")}
    return {**found, **lists, "kind": UnitKind.AGGREGATE, "tree": "rel"}


def _replacements(changes: Sequence[OutputChange]) -> dict[str, str]:
    """Units that are new by the units of the same entity whose places they take."""
    old = {change.before.data["head"]: change.before.units for change in changes if change.before}
    found: dict[str, str] = {}
    for change in changes:
        if change.after:
            known = old.get(change.after.data["head"], {})
            gone = [unit for unit in known if unit not in change.after.units]
            new = [unit for unit in change.after.units if unit not in known]
            found.update(zip(gone, new, strict=False))
    return found
