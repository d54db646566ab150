"""`KnowledgeGraph`: passages, the entities they name and the relations they state (ALGORITHMS 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import name_key
from sire_core.organize.mentions import Mentions, entity_names, find_mentions
from sire_core.protocols import Delta
from sire_core.types import Edge, Failure, Unit, UnitKind, digest, unit_id

if TYPE_CHECKING:
    from sire_core.protocols import BuildView, Change

__all__ = ["MENTIONS", "RELATES", "KnowledgeGraph"]

MENTIONS = "mentions"
"""Kind of the edges from a passage to the entities it names; metadata `names` and, for its title, `title`."""
RELATES = "relates"
"""Kind of the edges from a relation to its head and tail."""


@dataclass(frozen=True, slots=True)
class KnowledgeGraph:
    """A graph over passages and entities, made anew from the records after every change; only differences are stored.

    Attributes:
        index_units: Whether entities and relations are retrievable units with vectors (MS-RAG). Without them the graph
            lives in edges alone, whose targets are ids of entities: nothing is embedded beyond the passages.
        disambiguate: Whether aliases are merged (the paper's Table 13: no).
        summaries: Whether a language model, where there is one, writes what the passages say about every entity and
            relation, into the unit's metadata `summary`: for answers, never for ranking.
        similar_names: With disambiguation, names that share a word are merged when their vectors have at least this
            cosine; ALGORITHMS suggests .92. None: only what passages say themselves.
        max_names: A merge that would give an entity more names is refused.
        skip_types: Entity types that are no entities of the graph, unless a passage is titled by one.
        hub_share: An entity that more than this share of the passages name says nothing; only passages titled by it
            keep their edge.
        hub_floor: In a small corpus this many passages are always fine.
    """

    index_units: bool = False
    disambiguate: bool = True
    similar_names: float | None = None
    summaries: bool = False
    max_names: int = 8
    skip_types: tuple[str, ...] = ("Date", "Quantity")
    hub_share: float = 0.02
    hub_floor: int = 10

    @property
    def name(self) -> str:
        """Short name."""
        return "knowledge_graph"

    @property
    def requires(self) -> tuple[str, ...]:
        """Reads no other organizer."""
        return ()

    @property
    def needs_records(self) -> bool:
        """Reads entities and triples."""
        return True

    @property
    def needs_summaries(self) -> bool:
        """Writes those of its elements, when asked to."""
        return self.summaries

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        return {
            "index_units": self.index_units,
            "disambiguate": self.disambiguate,
            **({} if self.similar_names is None else {"similar_names": self.similar_names}),
            **({"summaries": True} if self.summaries else {}),
            "max_names": self.max_names,
            "skip_types": list(self.skip_types),
            "hub_share": self.hub_share,
            "hub_floor": self.hub_floor,
        }

    def describe(self) -> str:
        """What is built, and what it costs."""
        units = "entities and relations as units with vectors" if self.index_units else "no vectors beyond the passages"
        return (
            f"A graph of passages and the entities they name, {units}; with a language model one extraction call per "
            f"passage{' and one per twenty units for their summaries' if self.summaries else ''}, without one no calls."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Make the graph anew after any change."""
        if not change:
            return Delta()
        chunks_of = {unit.chunk_ids[0]: unit.chunk_ids for unit in view.chunk_units}
        records = view.records()
        passages = [(chunk, records.get(chunk.id)) for chunk in view.chunks if chunk.id in chunks_of]
        mentions = find_mentions(
            passages,
            disambiguate=self.disambiguate,
            synonyms=await self._synonyms(entity_names(passages), view),
            max_names=self.max_names,
            skip_types=self.skip_types,
        )
        made = _Graph(mentions, chunks_of, view.fingerprint)
        edges = {
            (edge.kind, edge.source, edge.target): edge for edge in made.mention_edges(self._limit(len(chunks_of)))
        }
        units = made.entity_units() if self.index_units else {}
        if self.index_units:
            relations, ends = made.relations()
            units.update(relations)
            edges.update(((edge.kind, edge.source, edge.target), edge) for edge in ends)
        failures: list[Failure] = []
        if self.summaries and view.language_model is not None:
            units, failures = await _with_summaries(units, view)
        return _difference(view, units, edges, _state(mentions, made), tuple(failures))

    async def _synonyms(self, names: Mapping[str, str], view: BuildView) -> list[tuple[str, str]]:
        """Keys of names whose vectors are alike, the longer name first."""
        if not self.disambiguate or self.similar_names is None:
            return []
        from sire_core.algorithms.similar_names import similar_names

        keys = list(names)
        units = [Unit(digest("name", name), UnitKind.ENTITY, name, ()) for name in names.values()]
        first, second, _ = similar_names(keys, await view.vectors(units), self.similar_names)
        pairs = [(keys[i], keys[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
        return [(max(pair, key=len), min(pair, key=len)) for pair in pairs if pair[0] != pair[1]]

    def _limit(self, passages: int) -> int:
        return max(self.hub_floor, int(self.hub_share * passages))


class _Graph:
    """Units and edges from mentions.

    Args:
        mentions: What the corpus names.
        chunks_of: All chunks of a passage by its first one.
        fingerprint: Build fingerprint of the organizer.
    """

    def __init__(self, mentions: Mentions, chunks_of: Mapping[str, Sequence[str]], fingerprint: str) -> None:
        self._mentions = mentions
        self._chunks_of = chunks_of
        self._fingerprint = fingerprint
        self.ids = {key: self._entity(key) for key in mentions.entities}

    def _entity(self, key: str) -> tuple[str, str, tuple[str, ...]]:
        """Id, longest name that a passage spells out, and chunks of an entity."""
        passages = self._mentions.entities[key]
        chunks = tuple(chunk for passage in passages for chunk in self._chunks_of[passage])
        names = [name for mention in passages.values() for name in mention.names]
        # The entity's own name where it is spelt out, else the longest there is; nameless ones are nodes only.
        text = next((name for name in names if name_key(name) == key), "") or max(names, key=len, default="")
        return unit_id(UnitKind.ENTITY.value, self._fingerprint, chunks, text or key), text, chunks

    def mention_edges(self, limit: int) -> Iterator[Edge]:
        """Edges from passages to entities; of a hub only those of passages that it titles."""
        for key, passages in self._mentions.entities.items():
            for passage, mention in passages.items():
                if mention.is_title or len(passages) <= limit:
                    metadata: dict[str, Any] = {"names": list(mention.names)}
                    if mention.is_title:
                        metadata["title"] = True
                    yield Edge(MENTIONS, passage, self.ids[key][0], 1.0, metadata)

    def entity_units(self) -> dict[str, Unit]:
        """One unit per entity that some passage spells out."""
        return {
            found: Unit(found, UnitKind.ENTITY, text, chunks, entity_keys=(name_key(text),), title=text)
            for found, text, chunks in self.ids.values()
            if text
        }

    def relations(self) -> tuple[dict[str, Unit], list[Edge]]:
        """One unit per distinct relation, standing on all passages that state it, and edges to its ends."""
        grouped: dict[tuple[str, str, str], tuple[str, dict[str, None]]] = {}
        for triple in self._mentions.triples:
            key = (triple.head, name_key(triple.predicate), triple.tail)
            _, chunks = grouped.setdefault(key, (triple.text, {}))
            chunks.update(dict.fromkeys(self._chunks_of[triple.chunk_id]))
        units: dict[str, Unit] = {}
        edges: list[Edge] = []
        for (head, _, tail), (text, found) in grouped.items():
            relation = unit_id(UnitKind.RELATION.value, self._fingerprint, found, text)
            units[relation] = Unit(relation, UnitKind.RELATION, text, tuple(found))
            ends = dict.fromkeys(self.ids[key][0] for key in (head, tail) if key in self.ids and self.ids[key][1])
            edges += [Edge(RELATES, relation, end) for end in ends]
        return units, edges


async def _with_summaries(units: Mapping[str, Unit], view: BuildView) -> tuple[dict[str, Unit], list[Failure]]:
    """Units with what the model says about them; those that stayed as they were keep what it said before."""
    assert view.language_model is not None
    from sire_core.organize.element_summaries import Element, summarize_elements

    known = {unit.id: str(unit.metadata.get("summary", "")) for unit in view.units()}
    missing = [Element(unit.id, unit.text, unit.chunk_ids) for unit in units.values() if not known.get(unit.id)]
    texts = {chunk.id: chunk.index_text for chunk in view.chunks} if missing else {}
    written, failures = await summarize_elements(missing, texts, view.language_model)
    summaries = {**known, **written}
    return {
        found: replace(unit, metadata={**unit.metadata, "summary": summaries[found]}) if summaries.get(found) else unit
        for found, unit in units.items()
    }, failures


def _difference(
    view: BuildView,
    units: Mapping[str, Unit],
    edges: Mapping[tuple[str, str, str], Edge],
    state: Mapping[str, Any],
    failures: tuple[Failure, ...],
) -> Delta:
    """Only what differs from what is stored."""
    old_units = {unit.id: unit for unit in view.units()}
    old_edges = {(edge.kind, edge.source, edge.target): edge for edge in view.edges()}
    return Delta(
        put_units=tuple(unit for unit in units.values() if old_units.get(unit.id) != unit),
        drop_units=tuple(unit for unit in old_units if unit not in units),
        put_edges=tuple(edge for key, edge in edges.items() if old_edges.get(key) != edge),
        drop_edges=tuple(edge for key, edge in old_edges.items() if key not in edges),
        state=state,
        failures=failures,
    )


def _state(mentions: Mentions, made: _Graph) -> dict[str, Any]:
    """Counts, and the log of merges."""
    return {
        "entities": len(made.ids),
        "triples": len(mentions.triples),
        "merged": [list(names) for names in mentions.merges.merged],
        "refused": [list(claim) for claim in mentions.merges.refused],
    }
