"""`KnowledgeGraph`: passages, the entities they name and the relations they state (ALGORITHMS 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.aliases import AliasMerges, merge_aliases
from sire_core.organize.graph.kinds import MENTIONS, RELATES
from sire_core.protocols import Delta
from sire_core.types import Unit, UnitKind, digest

if TYPE_CHECKING:
    from sire_core.organize.graph.change import GraphChange
    from sire_core.protocols import BuildView, Change

__all__ = ["MENTIONS", "RELATES", "KnowledgeGraph"]


@dataclass(frozen=True, slots=True)
class KnowledgeGraph:
    """A graph over passages and entities that follows a change of the corpus at a cost in proportion to it.

    What it is made of lies in small notes, one per passage, and in arrays of hashes (`GraphTable`); names are merged
    anew after every change, all else is worked out again only for the passages, entities and relations it touches.

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
        """Bring the graph up to date; what is stored then equals a graph that is made anew."""
        if not change:
            return Delta()
        from sire_core.organize.graph.change import GraphChange
        from sire_core.organize.graph.delta import graph_delta, with_notes

        passages = GraphChange(change, view, self.skip_types, relations=self.index_units)
        merges = await self._merges(passages, view)
        passages.resolve(merges.canonical)
        limits = self._limit(len(passages.before.passages)), self._limit(len(passages.after.passages))
        delta, table = graph_delta(passages, view, limits, units=self.index_units)
        state = {
            "entities": len(table.entities.keys),
            "triples": int(table.triples.sum()),
            "merged": [list(names) for names in merges.merged],
            "refused": [list(claim) for claim in merges.refused],
        }
        if not self.summaries or view.language_model is None:
            return with_notes(delta, table, state)
        from sire_core.organize.graph.summaries import with_summaries

        delta, silent = await with_summaries(delta, table, view)
        return with_notes(delta, replace(table, silent=silent), state)

    async def _merges(self, passages: GraphChange, view: BuildView) -> AliasMerges:
        """Names that mean one entity: those that passages say, then those whose vectors are alike."""
        if not self.disambiguate:
            return merge_aliases(())
        synonyms = [] if self.similar_names is None else await self._synonyms(passages, view, self.similar_names)
        return passages.merges(synonyms, self.max_names)

    async def _synonyms(self, passages: GraphChange, view: BuildView, least: float) -> list[tuple[str, str]]:
        """Keys of names whose vectors are alike, the longer name first."""
        from sire_core.algorithms.similar_names import similar_names
        from sire_core.organize.graph.mentions import entity_names

        names = entity_names(passages.everyone())
        keys = list(names)
        units = [Unit(digest("name", name), UnitKind.ENTITY, name, ()) for name in names.values()]
        first, second, _ = similar_names(keys, await view.vectors(units), least)
        pairs = [(keys[i], keys[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
        return [(max(pair, key=len), min(pair, key=len)) for pair in pairs if pair[0] != pair[1]]

    def _limit(self, passages: int) -> int:
        return max(self.hub_floor, int(self.hub_share * passages))
