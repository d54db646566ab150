"""`RelatednessTree`: facts grouped by entity, and a tree over the groups: SiReRAG's right tree (ALGORITHMS 2.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import count_tokens, name_key
from sire_core.organize.facts.aggregates import Aggregate, FactLine, split_aggregate
from sire_core.organize.facts.change import FactChange, Remade
from sire_core.organize.trees.settings import TreeSettings
from sire_core.organize.trees.tree import Tree, grow
from sire_core.protocols import Delta
from sire_core.types import Chunk, ExtractionRecord, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.protocols import BuildView, Change

__all__ = ["RelatednessTree"]


@dataclass(frozen=True, slots=True)
class RelatednessTree:
    """Aggregates of facts that share an entity, clustered and summarised recursively.

    Attributes:
        tree: How the tree grows.
        singleton_rule: See `group_facts`.
        entity_key: See `name_key`.
        dup_facts: See `group_facts`.
        split_tokens: Longer aggregates become several units; None never splits.
        copy_share: An aggregate whose facts all come from one passage and hold at least this share of its tokens says
            what the passage says; it is left out. None keeps it, as the paper does.
        skip_types: Entity types that form no aggregate. Dates and quantities join facts that have nothing else in
            common; the paper does not say what it does with them.
        aggregates: Whether aggregates are retrievable (variant C and D: no).
        summaries: Whether their summaries are (variant A and D: no).
        propositions: Whether single facts are (variants B, C and D: yes).
    """

    tree: TreeSettings = field(default_factory=TreeSettings)
    singleton_rule: str = "safe"
    entity_key: str = "norm"
    dup_facts: str = "drop"
    split_tokens: int | None = 1024
    copy_share: float | None = 0.8
    skip_types: tuple[str, ...] = ("Date", "Quantity")
    aggregates: bool = True
    summaries: bool = True
    propositions: bool = False

    @property
    def name(self) -> str:
        """Short name."""
        return "relatedness_tree"

    @property
    def requires(self) -> tuple[str, ...]:
        """Reads no other organizer."""
        return ()

    @property
    def needs_records(self) -> bool:
        """Reads facts and entities."""
        return True

    @property
    def needs_summaries(self) -> bool:
        """Whether summaries are written."""
        return self.summaries

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        return {
            "tree": self.tree.as_mapping(),
            "singleton_rule": self.singleton_rule,
            "entity_key": self.entity_key,
            "dup_facts": self.dup_facts,
            "split_tokens": self.split_tokens,
            "copy_share": self.copy_share,
            "skip_types": list(self.skip_types),
            "aggregates": self.aggregates,
            "summaries": self.summaries,
            "propositions": self.propositions,
        }

    def describe(self) -> str:
        """What is built, and what it costs."""
        return (
            "Facts grouped by the entities they name, and up to "
            f"{self.tree.depth} levels of summaries over the groups; with a language model one extraction call per "
            "passage and about 165-175 summary calls per 1,000 passages, without one no calls."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the aggregates up to date, and the tree over them; what did not change is neither read nor written."""
        if not change:
            return Delta()
        import asyncio

        found = await asyncio.to_thread(self._remake, {chunk.id for chunk in change.added}, view)
        state = {} if found.first else view.state()
        hidden = set() if self.aggregates else set(found.aggregates.ids)
        tree = Tree()
        if self.summaries:
            leaves = [found.aggregates.fresh.get(leaf, leaf) for leaf in found.aggregates.ids]
            anew = len(change.added) == len(view.chunks)
            known = state.get("tree")
            tree = await grow(
                leaves, UnitKind.REL_SUMMARY, "rel", self.tree, view, known=known, anew=anew, heirs=found.heirs
            )
        units = (found.aggregates.fresh | found.statements.fresh).values()
        return Delta(
            put_units=(*(unit for unit in units if unit.id not in hidden), *tree.put_units),
            drop_units=(*found.gone, *tree.drop_units, *(unit.id for unit in (() if state else view.units()))),
            put_edges=tuple(edge for edge in tree.put_edges if edge.target not in hidden),
            drop_edges=(*tree.drop_edges, *(() if state else view.edges())),
            state={
                "facts": found.facts,
                "aggregates": len(found.aggregates.ids),
                "tree": tree.state,
                "figures": tree.figures,
            },
            notes=found.notes,
        )

    def _remake(self, redone: set[str], view: BuildView) -> _Found:
        """Aggregates and propositions after a change."""
        facts = FactChange(view, redone, self._lines, self.entity_key)
        names = _StatedNames(view.chunks)
        known = facts.before.made if self.aggregates else {}
        groups = facts.groups(self.singleton_rule, merge_equal=self.dup_facts == "drop")
        passages = {unit.chunk_ids: unit for unit in view.chunk_units}
        remade = facts.aggregates(
            groups, known, lambda aggregate: self._units(aggregate, names, passages, view.fingerprint)
        )
        single = Remade([], {}, {}, {})
        if self.propositions:
            merged = facts.groups("paper", merge_equal=True)
            single = facts.statements(merged, facts.before.made, lambda fact: [_proposition(fact, view.fingerprint)])
        there = {*remade.ids, *single.ids}
        gone = dict.fromkeys(unit for ids in facts.before.made.values() for unit in ids if unit not in there)
        return _Found(
            first=not facts.before.passages,
            aggregates=remade,
            statements=single,
            gone=tuple(gone),
            heirs=facts.heirs(remade),
            facts=len(facts.table.lines),
            notes=facts.notes(remade, single),
        )

    def _lines(self, unit: Unit, records: Mapping[str, ExtractionRecord]) -> list[FactLine]:
        """Facts of a passage, in the record's order."""
        record = records.get(unit.id)
        if record is None:
            return []
        names = {e.id: e.name for e in record.entities if e.type not in self.skip_types}
        return [
            FactLine(fact.text, tuple(names[found] for found in fact.entities if found in names), unit.chunk_ids)
            for fact in record.facts
        ]

    def _restates(self, aggregate: Aggregate, passages: Mapping[tuple[str, ...], Unit]) -> bool:
        """Whether an aggregate hardly says anything but what one passage says."""
        passage = passages.get(aggregate.chunk_ids)
        if self.copy_share is None or passage is None:
            return False
        return count_tokens(aggregate.text) >= self.copy_share * count_tokens(passage.text)

    def _units(
        self, aggregate: Aggregate, names: _StatedNames, passages: Mapping[tuple[str, ...], Unit], fingerprint: str
    ) -> list[Unit]:
        if self._restates(aggregate, passages):
            return []
        return [
            Unit(
                id=unit_id(UnitKind.AGGREGATE.value, fingerprint, chunk_ids, text),
                kind=UnitKind.AGGREGATE,
                text=text,
                chunk_ids=chunk_ids,
                tree="rel",
                entity_keys=tuple(key for key in aggregate.keys if names.stated(chunk_ids, key)),
                title=aggregate.name if names.stated(chunk_ids, aggregate.name) else "",
            )
            for text, chunk_ids in split_aggregate(aggregate, self.split_tokens, names.stated)
        ]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a change does to aggregates.

    Attributes:
        first: Whether nothing is known of units that may be there: another version of the package left no notes.
        aggregates: All of them.
        statements: All propositions.
        gone: Ids of units that are gone.
        heirs: Which aggregates replace which.
        facts: How many there are.
        notes: What to remember.
    """

    first: bool
    aggregates: Remade
    statements: Remade
    gone: tuple[str, ...]
    heirs: Mapping[str, str]
    facts: int
    notes: Mapping[str, bytes | None]


def _proposition(fact: FactLine, fingerprint: str) -> Unit:
    return Unit(
        id=unit_id(UnitKind.PROPOSITION.value, fingerprint, fact.chunk_ids, fact.text),
        kind=UnitKind.PROPOSITION,
        text=fact.text,
        chunk_ids=fact.chunk_ids,
        tree="rel",
    )


class _StatedNames:
    """Which names some chunks state.

    A fact may be linked to an entity by a name that only another document spells out, say its title. That name must
    not show: a filter that lets the fact through may hide the other document.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = {chunk.id: chunk for chunk in chunks}
        self._keys: dict[str, str] = {}

    def stated(self, chunk_ids: Sequence[str], name: str) -> bool:
        """Whether one of the chunks has the name in its title or text."""
        wanted = name_key(name)
        return any(wanted in self._key(chunk) for chunk in chunk_ids)

    def _key(self, chunk: str) -> str:
        if chunk not in self._keys:
            self._keys[chunk] = name_key(self._chunks[chunk].index_text)
        return self._keys[chunk]
