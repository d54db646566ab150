"""`pagerank`: passages by a walk over the knowledge graph, after HippoRAG (Gutierrez et al. 2024; ALGORITHMS 5.4)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sire_core.organize.knowledge_graph import KnowledgeGraph
from sire_core.recipes.base import Recipe, configure, register

__all__ = ["PagerankConfig", "pagerank"]


@dataclass(frozen=True, slots=True)
class PagerankConfig:
    """Settings of `pagerank`; those of the walk are explained at `PageRank`, those of the graph at `KnowledgeGraph`.

    Attributes:
        index_units: Whether entities and relations are retrievable, too.
        disambiguate: Whether aliases are merged.
        follow: Probability of following an edge.
        title_weight: How much more an entity leads to the passage it titles.
        rarity: How much rare entities are preferred on the way.
        seed_rarity: How much rare entities are preferred at the start.
        dense_share: Share of the walks that start at similar passages.
        dense_hits: How many similar passages.
        cosine_weight: What the cosine adds to the PageRank.
    """

    index_units: bool = False
    disambiguate: bool = True
    follow: float = 0.9
    title_weight: float = 12.0
    rarity: float = 1.0
    seed_rarity: float = 0.5
    dense_share: float = 0.1
    dense_hits: int = 10
    cosine_weight: float = 0.15


@register
def pagerank(config: PagerankConfig | None = None, /, **settings: Any) -> Recipe:
    """Passages and entities as a graph, walked from what the question names.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `PagerankConfig`.
    """
    from sire_core.search.pagerank import PageRank

    c = configure(PagerankConfig, config, settings)
    return Recipe(
        name="pagerank",
        summary="passages reached through the entities that the question names, by personalised PageRank",
        paper="after HippoRAG, Gutierrez et al. 2024",
        organizers=(KnowledgeGraph(index_units=c.index_units, disambiguate=c.disambiguate),),
        ranker=PageRank(
            follow=c.follow,
            title_weight=c.title_weight,
            rarity=c.rarity,
            seed_rarity=c.seed_rarity,
            dense_share=c.dense_share,
            dense_hits=c.dense_hits,
            cosine_weight=c.cosine_weight,
        ),
        config=asdict(c),
    )
