"""`PageRank`: ranks passages by personalised PageRank from the entities that a question names (after HippoRAG)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extend import (
    EntityGraph,
    KnownSimilarities,
    ScoredRanking,
    SQIndex,
    Walk,
    WalkPaths,
    check_settings,
    setting,
    walk_ranking,
)

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, DoubleArray, Filter, Ranking, Similarities, View


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
    threshold: float = setting(3e-5, low=1e-9)

    def __post_init__(self) -> None:
        check_settings(self)

    def prepare(self, view: View) -> None:
        """Build the vector index of a large pool."""
        SQIndex.prepare(view)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter; the walk stays among them."""
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
        among = cosines if len(passages) == view.size else KnownSimilarities(cosines.all()[passages])
        mass = self._mass(walk, named, among, open_)
        starts = {entity: f"the question names {name}" for entity, name in named.items()}
        paths = WalkPaths(view, graph, walk, starts, mass, cosines)
        return walk_ranking(paths, mass[: walk.passages], cosines, allowed, self.cosine_weight)

    def _walk(self, view: View, graph: EntityGraph, allowed: BoolArray | None) -> Walk:
        if allowed is not None:
            return graph.walk(self.title_weight, self.rarity, allowed)
        name = f"entity walk {self.title_weight:g} {self.rarity:g}"
        return view.derived(name, lambda: graph.walk(self.title_weight, self.rarity))

    def _mass(
        self, walk: Walk, named: Mapping[int, str], cosines: Similarities, allowed: BoolArray | None
    ) -> DoubleArray:
        """PageRank of all nodes, `[nodes]`; zeros if there is no start."""
        starts, near = np.zeros(len(walk.mentions)), np.zeros(walk.passages)
        if allowed is not None:
            cosines = KnownSimilarities(np.where(allowed, cosines.all(), -np.inf).astype(np.float32))
        similar, similarities = cosines.best(self.dense_hits)
        weights = np.maximum(similarities, 0.0).astype(np.float64) ** self.dense_power
        share = self.dense_share if named else 1.0
        if weights.sum() > 0:
            near[similar] = share * weights / weights.sum()
        if named:
            entities = np.fromiter(named, dtype=np.int64)
            weights = walk.mentions[entities].astype(np.float64) ** -self.seed_rarity
            starts[entities] = (1 - share) * weights / weights.sum()
        return walk.mass(starts, near, self.damping, self.threshold)
