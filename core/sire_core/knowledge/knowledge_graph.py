"""`KnowledgeGraph`: passages, the entities they name and the relations they state (MS-RAG, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from sire_core.derive.derivation import Derivation
from sire_core.derive.rows import document_of
from sire_core.knowledge.kinds import MENTIONS, RELATES
from sire_core.knowledge.name_merging import NameMerging
from sire_core.knowledge.steps import Entities, Relations, entity_id
from sire_core.protocols import BlockEdges
from sire_core.settings import check_settings, refuse_unused, setting
from sire_core.storage.edge_notes import BLOCKS, register_edge_note
from sire_core.types import UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.derive.rows import OutputChange
    from sire_core.derive.step import Step
    from sire_core.knowledge.columns import EdgeChange
    from sire_core.protocols import BuildView, Change, Delta
    from sire_core.types import Edge

__all__ = ["KnowledgeGraph", "entity_id"]


@dataclass(frozen=True, slots=True)
class KnowledgeGraph(Derivation):
    """A graph over passages and entities.

    Attributes:
        index_units: Whether entities and relations are units with vectors, as in MS-RAG. Otherwise only the passages
            are embedded.
        disambiguate: Whether names of the same entity are merged (MS-RAG, Table 13: no).
        summaries: Whether a language model, where there is one, writes what the passages say about every entity and
            relation, into the unit's metadata `summary`: for answers, never for ranking.
        similar_names: With disambiguation, also merge names that share a word if their vectors have at least this
            cosine similarity; .92 is a good value. None merges only where passages say so.
        max_names: Maximum names of an entity; a merge that exceeds it is refused.
        skip_types: Entity types left out of the graph, unless they are the title of a passage; `[]` includes all, also
            dates and quantities, as in MS-RAG.
        literals: Whether common nouns in triples, such as "basketball", are entities, too, as in the graphs of HippoRAG
            and MS-RAG.
        max_df: Entities that more than this share of the passages name are ignored, except for passages with this
            title.
        hub_floor: `max_df` never ignores entities in at most this many passages.
    """

    name: ClassVar[str] = "knowledge_graph"

    index_units: bool = False
    disambiguate: bool = True
    similar_names: float | None = setting(None, above=0.0, high=1.0)
    summaries: bool = False
    max_names: int = setting(8, low=1)
    skip_types: tuple[str, ...] = ("Date", "Quantity")
    literals: bool = False
    max_df: float = setting(0.02, low=0.0, high=1.0)
    hub_floor: int = setting(10, low=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.disambiguate:
            refuse_unused(self, "disambiguate=False", ("similar_names", "max_names"))

    @property
    def needs_summaries(self) -> bool:
        """Writes those of its elements, when asked to."""
        return self.summaries

    def describe(self) -> str:
        """What is built, and what it costs."""
        units = "with entities and relations as units with vectors" if self.index_units else "without further vectors"
        return (
            f"A graph of passages and the entities they name, {units}. Model calls: one extraction per passage"
            f"{' and one per twenty units for their summaries' if self.summaries else ''} with a language model, none "
            "without."
        )

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Entities by name, relations by their ends."""
        limit = max(self.hub_floor, int(self.max_df * len(view.chunk_units)))
        merging = NameMerging(self.max_names, self.similar_names) if self.disambiguate else None
        entities = Entities(view.fingerprint, self.skip_types, limit, merging, self.literals, self.index_units)
        return (entities, Relations(view.fingerprint, self.skip_types)) if self.index_units else (entities,)

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the graph up to date with a change of the corpus."""
        import asyncio

        from sire_core.derive.engine import run_steps
        from sire_core.knowledge.columns import updated_blocks

        found = await run_steps(self.steps(view), change, view)
        changes: dict[str, Callable[[], Iterable[EdgeChange]]] = {
            MENTIONS: partial(_mentions, found.outputs[Entities.name], view.fingerprint),
            RELATES: partial(_relations, found.outputs.get(Relations.name, ()), view.fingerprint),
        }
        notes: dict[str, bytes | None] = {}
        for kind, made in changes.items():
            notes |= await asyncio.to_thread(updated_blocks, kind, made(), view.notes)
        edges = BlockEdges(_Edges(changes, put=True), _Edges(changes, put=False))
        delta = replace(found.delta, notes=notes, in_blocks=edges)
        if not self.summaries or view.language_model is None:
            return delta
        from sire_core.knowledge.element_summaries import with_summaries

        return await with_summaries(delta, view)


class _Edges:
    """Edges of the graph that a change puts, or drops: made whenever they are gone through, as few ask for them.

    Args:
        changes: By kind.
        put: Which of both.
    """

    def __init__(self, changes: Mapping[str, Callable[[], Iterable[EdgeChange]]], *, put: bool) -> None:
        self._changes, self._put = changes, put

    def __iter__(self) -> Iterator[Edge]:
        return (c.edge(kind) for kind, made in self._changes.items() for c in made() if c.put is self._put)


def _mentions(changes: Sequence[OutputChange], fingerprint: str) -> Iterable[EdgeChange]:
    """Edges from passages to the entities they name that differ."""
    from sire_core.knowledge.columns import EdgeChange

    for change in changes:
        target = entity_id(fingerprint, change.key)
        before, after = ({row[0]: row for row in (side.data if side else ())} for side in (change.before, change.after))
        for passage, row in before.items():
            if passage not in after:
                yield EdgeChange(passage, target, row[1], put=False)
        for passage, row in after.items():
            if before.get(passage) != row:
                yield EdgeChange(passage, target, row[1], put=True, names=row[2], title=bool(row[3]))


def _relations(changes: Sequence[OutputChange], fingerprint: str) -> Iterable[EdgeChange]:
    """Edges from relations to their ends that come or go; a relation belongs to the first document that states it."""
    from sire_core.knowledge.columns import EdgeChange

    for change in changes:
        for side, put in ((change.before, False), (change.after, True)):
            if side is not None:
                relation = unit_id(UnitKind.RELATION.value, fingerprint, (), change.key)
                for end in dict.fromkeys(side.data):
                    yield EdgeChange(relation, entity_id(fingerprint, end), document_of(side.place), put)


def _stored_edges(key: str, note: bytes) -> Iterable[Edge]:
    from sire_core.knowledge.columns import EdgeColumns  # works on arrays; naming a recipe needs none

    return EdgeColumns.from_bytes(note).edges(key.split("/", 1)[0])


register_edge_note(BLOCKS, _stored_edges)
