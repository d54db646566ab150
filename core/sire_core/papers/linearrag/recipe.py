"""`linearrag`: entities that similar sentences activate lead to passages (LinearRAG, Zhuang et al. 2025).

The Tri-Graph has passages, their sentences and the entities that they name, and no relations. The entities of a
question activate others that stand in a sentence with them, as far as the sentence is similar to the question;
personalised PageRank from the active entities and from all passages ranks the passages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.extend import Component, Recipe, ResolvedSettings, register

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings


@register
def linearrag(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """LinearRAG: activation of entities through sentences, then PageRank over passages and entities.

    Args:
        **settings: Those of `SentenceWalk` and `KnowledgeGraph`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.extend import KnowledgeGraph
    from sire_core.papers.linearrag.derive import SentenceNodes
    from sire_core.papers.linearrag.rank import SentenceWalk

    resolved = ResolvedSettings(
        settings,
        Component(SentenceWalk),
        Component(KnowledgeGraph, without=("index_units", "index_relations", "summaries", "literals")),
    )
    walk = resolved.make(SentenceWalk)
    return Recipe(
        name="linearrag",
        summary="passages reached through entities that sentences similar to the question join, by PageRank",
        paper="LinearRAG, Zhuang et al. 2025",
        organizers=(
            resolved.make(KnowledgeGraph, index_units=walk.seeds == "nearest", index_relations=False),
            SentenceNodes(),
        ),
        ranker=walk,
        native="triples",
        config=resolved.config,
        texts=resolved.texts,
    )
