"""`RelatednessTree`: facts grouped by entity, and a tree over the groups: SiReRAG's right tree (ALGORITHMS 2.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import count_tokens, name_key
from sire_core.organize.aggregates import Aggregate, FactLine, group_facts, split_aggregate
from sire_core.organize.tree import Tree, TreeSettings, grow
from sire_core.protocols import Delta
from sire_core.types import Chunk, Unit, UnitKind, unit_id

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
        """Group all facts anew after any change and grow the tree over the groups."""
        if not change:
            return Delta()
        facts = list(self._facts(view))
        grouped = self._not_copies(group_facts(facts, self.singleton_rule, self.entity_key, self.dup_facts), view)
        names = _StatedNames(view.chunks)
        aggregates = [unit for aggregate in grouped for unit in self._units(aggregate, names, view.fingerprint)]
        grown = await grow(aggregates, UnitKind.REL_SUMMARY, "rel", self.tree, view) if self.summaries else Tree()
        units = [*(aggregates if self.aggregates else ()), *grown.units]
        if self.propositions:
            units += self._propositions(facts, view.fingerprint)
        put = {unit.id: unit for unit in units}
        return Delta(
            put_units=tuple(put.values()),
            drop_units=tuple(unit.id for unit in view.units()),
            put_edges=tuple(edge for edge in grown.edges if edge.target in put),
            drop_edges=tuple(view.edges()),
            state={"facts": len(facts), "aggregates": len(aggregates)},
        )

    def _facts(self, view: BuildView) -> Iterator[FactLine]:
        """Walk documents, chunks and facts in corpus order."""
        records = view.records()
        chunks_of = {unit.chunk_ids[0]: unit.chunk_ids for unit in view.chunk_units}
        for chunk in view.chunks:
            record = records.get(chunk.id)
            if record is None or chunk.id not in chunks_of:
                continue
            names = {e.id: e.name for e in record.entities if e.type not in self.skip_types}
            for fact in record.facts:
                entities = tuple(names[found] for found in fact.entities if found in names)
                yield FactLine(fact.text, entities, chunks_of[chunk.id])

    def _not_copies(self, aggregates: list[Aggregate], view: BuildView) -> list[Aggregate]:
        """Leave out what only restates one passage."""
        if self.copy_share is None:
            return aggregates
        passages = {unit.chunk_ids: count_tokens(unit.text) for unit in view.chunk_units}
        return [
            aggregate
            for aggregate in aggregates
            if aggregate.chunk_ids not in passages
            or count_tokens(aggregate.text) < self.copy_share * passages[aggregate.chunk_ids]
        ]

    def _units(self, aggregate: Aggregate, names: _StatedNames, fingerprint: str) -> Iterator[Unit]:
        for text, chunk_ids in split_aggregate(aggregate, self.split_tokens, names.stated):
            yield Unit(
                id=unit_id(UnitKind.AGGREGATE.value, fingerprint, chunk_ids, text),
                kind=UnitKind.AGGREGATE,
                text=text,
                chunk_ids=chunk_ids,
                tree="rel",
                entity_keys=tuple(key for key in aggregate.keys if names.stated(chunk_ids, key)),
                title=aggregate.name if names.stated(chunk_ids, aggregate.name) else "",
            )

    def _propositions(self, facts: list[FactLine], fingerprint: str) -> list[Unit]:
        merged: dict[str, tuple[str, ...]] = {}
        for fact in facts:
            merged[fact.text] = tuple(dict.fromkeys(merged.get(fact.text, ()) + fact.chunk_ids))
        return [
            Unit(
                id=unit_id(UnitKind.PROPOSITION.value, fingerprint, chunk_ids, text),
                kind=UnitKind.PROPOSITION,
                text=text,
                chunk_ids=chunk_ids,
                tree="rel",
            )
            for text, chunk_ids in merged.items()
        ]


class _StatedNames:
    """Which names some chunks state.

    A fact may be linked to an entity by a name that only another document spells out, say its title. That name must
    not show: a filter that lets the fact through may hide the other document.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._texts = {chunk.id: chunk.index_text for chunk in chunks}
        self._keys: dict[str, str] = {}

    def stated(self, chunk_ids: Sequence[str], name: str) -> bool:
        """Whether one of the chunks has the name in its title or text."""
        wanted = name_key(name)
        return any(wanted in self._key(chunk) for chunk in chunk_ids)

    def _key(self, chunk: str) -> str:
        if chunk not in self._keys:
            self._keys[chunk] = name_key(self._texts[chunk])
        return self._keys[chunk]
