"""`PageRank`: ranks passages by personalised PageRank from the entities that a question names (after HippoRAG)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.pagerank import personalized_pagerank
from sire_core.knowledge.entity_graph import EntityGraph, Walk
from sire_core.search.ranking import LiftedRanking, ScoredRanking
from sire_core.search.similarities import KnownSimilarities
from sire_core.search.vectors.sq_index import SQIndex
from sire_core.settings import check_settings, setting
from sire_core.types import PathStep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, Ranking, Similarities, View

__all__ = [
    "PageRank",
]


@dataclass(frozen=True, slots=True)
class PageRank:
    """Ranks passages by personalised PageRank over passages and entities, mixed with the cosine.

    The walk starts at the entities that the question names and at the passages most similar to it. Needs the
    `KnowledgeGraph` organizer; without it passages are ranked by cosine. Entities and relations come after all
    passages. The settings were chosen on half of a development set of 2WikiMultihopQA, for all corpora.

    Attributes:
        damping: Probability of following an edge instead of restarting, as in PageRank.
        title_weight: Weight of the link from an entity to the passage whose title it is, relative to other passages.
        rarity: Exponent of an entity's inverse document frequency in links from passages.
        seed_rarity: An entity in d passages starts the walk with the weight d ** -seed_rarity.
        dense_share: Share of the starting weight for similar passages; all of it if the question names no entity.
        dense_hits: Number of similar passages that start the walk.
        dense_power: Exponent of their cosine similarity.
        cosine_weight: Weight of the cosine similarity; the highest PageRank is scaled to 1.
        threshold: Precision of PageRank; see `personalized_pagerank`.
    """

    damping: float = setting(0.9, low=0.0, high=0.99)
    title_weight: float = setting(12.0, above=0.0)
    rarity: float = setting(1.0, low=0.0)
    seed_rarity: float = setting(0.5, low=0.0)
    dense_share: float = setting(0.1, low=0.0, high=1.0)
    dense_hits: int = setting(10, low=1)
    dense_power: float = setting(2.0, low=0.0)
    cosine_weight: float = setting(0.15, low=0.0)
    threshold: float = setting(3e-5, above=0.0)

    def __post_init__(self) -> None:
        check_settings(self)

    def prepare(self, view: View) -> None:
        """Build the vector index of a large pool."""
        SQIndex.prepare(view)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter; the walk stays among them."""
        import asyncio

        question, allowed = await view.embed_query(query), view.allowed(where)
        cosines = await view.similarities(query, question, where)
        return await asyncio.to_thread(self._rank, query, cosines, view, allowed)

    def _rank(self, query: str, cosines: Similarities, view: View, allowed: BoolArray | None) -> Ranking:
        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        graph = EntityGraph.of(view)
        passages = graph.chunk_positions
        open_ = None if allowed is None else allowed[passages]
        walk = self._walk(view, graph, open_)
        named = graph.link(query, open_)
        alone = len(passages) == view.size
        among = cosines if alone else KnownSimilarities(cosines.all()[passages])
        mass = self._mass(walk, named, among, open_)
        best = float(mass[: walk.passages].max(initial=0.0)) or 1.0
        explain = _Reasons(view, graph, walk, named, mass, cosines).path
        if alone and allowed is None:
            reached = np.flatnonzero(mass[: walk.passages])
            return LiftedRanking(cosines, explain, self.cosine_weight, reached, mass[reached] / best)
        scores = cosines.all() - 2.0  # after every passage
        lifted = mass[: walk.passages] / best + self.cosine_weight * among.all()
        scores[passages] = lifted.astype(np.float32)
        return ScoredRanking(scores, allowed, explain)

    def _walk(self, view: View, graph: EntityGraph, allowed: BoolArray | None) -> Walk:
        if allowed is not None:
            return graph.walk(self.title_weight, self.rarity, allowed)
        name = f"entity walk {self.title_weight:g} {self.rarity:g}"
        walk: Walk = view.derived(name, lambda: graph.walk(self.title_weight, self.rarity))
        return walk

    def _mass(
        self, walk: Walk, named: Mapping[int, str], cosines: Similarities, allowed: BoolArray | None
    ) -> NDArray[np.float64]:
        """PageRank of all nodes, `[nodes]`; zeros if there is no start."""
        seeds = np.zeros(walk.graph.size)
        if allowed is not None:
            cosines = KnownSimilarities(np.where(allowed, cosines.all(), -np.inf).astype(np.float32))
        similar, found = cosines.best(self.dense_hits)
        weights = np.maximum(found, 0.0).astype(np.float64) ** self.dense_power
        share = self.dense_share if named else 1.0
        if weights.sum() > 0:
            seeds[similar] = share * weights / weights.sum()
        if named:
            entities = np.fromiter(named, dtype=np.int64)
            weights = walk.mentions[entities].astype(np.float64) ** -self.seed_rarity
            seeds[walk.passages + entities] = (1 - share) * weights / weights.sum()
        if seeds.sum() <= 0:
            return seeds
        return personalized_pagerank(walk.graph, seeds, self.damping, threshold=self.threshold).scores


class _Reasons:
    """Paths of hits: how the walk reached a passage, one or two steps back."""

    def __init__(
        self,
        view: View,
        graph: EntityGraph,
        walk: Walk,
        named: Mapping[int, str],
        mass: NDArray[np.float64],
        cosines: Similarities,
    ) -> None:
        self._view = view
        self._graph = graph
        self._walk = walk
        self._named = named
        self._mass = mass
        self._cosines = cosines
        self._known: dict[int, tuple[int, ...]] = {}

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Return steps by entities, then the cosine."""
        kind = self._view.kind_names[self._view.kinds[position]]
        note = f"cosine {self._cosines.at(np.array([position]))[0]:.3f} with the question"
        own = PathStep(f"vector:{kind}", (self._id(position),), note)
        passage = int(np.searchsorted(self._graph.chunk_positions, position))
        is_passage = passage < self._walk.passages and self._graph.chunk_positions[passage] == position
        entity = self._strongest(passage) if is_passage else None
        if entity is None:
            return (own,)
        return (*self._towards(entity, passage), own)

    def _towards(self, entity: int, passage: int) -> tuple[PathStep, ...]:
        """Steps from the question to an entity and on to a passage."""
        ids = (self._graph.entity_ids[entity],)
        known = self._graph.name_in(passage, entity)
        last = PathStep("entity", (*ids, self._passage_id(passage)), f"the passage names {known or 'the entity'}")
        if entity in self._named:
            return (PathStep("question", ids, f"the question names {self._named[entity]}"), last)
        before = self._strongest(self._walk.passages + entity, other=passage)
        if before is None:
            return (last,)
        origin = self._strongest(before, other=self._walk.passages + entity)
        start: tuple[PathStep, ...] = ()
        if origin is not None and origin in self._named:
            note = f"the question names {self._named[origin]}"
            start = (PathStep("question", (self._graph.entity_ids[origin],), note),)
        step = PathStep("passage", (self._passage_id(before), *ids), "this passage names the next entity")
        return (*start, step, last)

    def _strongest(self, node: int, other: int = -1) -> int | None:
        """The neighbour that contributes most to a node: an entity for a passage, a passage for an entity."""
        best = next((sender for sender in self._senders(node) if sender != other), None)
        if best is None:
            return None
        return best - self._walk.passages if node < self._walk.passages else best

    def _senders(self, node: int) -> tuple[int, ...]:
        """The two neighbours that contribute most to a node, best first; cached, as a hub leads to many hits."""
        if node not in self._known:
            neighbors, _ = self._walk.graph.neighbors(node)
            reached = neighbors[self._mass[neighbors] > 0]
            sent = np.array([self._sent(neighbor, node) for neighbor in reached.tolist()])
            self._known[node] = tuple(reached[np.argsort(-sent, kind="stable")[:2]].tolist())
        return self._known[node]

    def _sent(self, neighbor: int, node: int) -> float:
        targets, probabilities = self._walk.graph.neighbors(neighbor)
        return float(self._mass[neighbor] * probabilities[np.searchsorted(targets, node)])

    def _passage_id(self, passage: int) -> str:
        return self._id(int(self._graph.chunk_positions[passage]))

    def _id(self, position: int) -> str:
        return str(self._view.ids[position].decode())
