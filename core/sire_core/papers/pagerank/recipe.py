"""`pagerank`: passages by a walk over the knowledge graph, after HippoRAG (Gutierrez et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.extend import Component, Recipe, ResolvedSettings, register

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings


@register
def pagerank(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """PageRank over passages and entities, started at the entities that the question names.

    Args:
        **settings: Those of `KnowledgeGraph` and `PageRank`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.extend import KnowledgeGraph
    from sire_core.papers.pagerank.rank import PageRank

    resolved = ResolvedSettings(
        settings,
        Component(KnowledgeGraph, without=("index_relations", "summaries", "entity_source")),
        Component(PageRank),
    )
    return Recipe(
        name="pagerank",
        summary="passages reached through the entities that the question names, by personalised PageRank",
        paper="after HippoRAG, Gutierrez et al. 2024",
        organizers=(resolved.make(KnowledgeGraph),),
        ranker=resolved.make(PageRank),
        native="triples",
        config=resolved.config,
        texts=resolved.texts,
    )
