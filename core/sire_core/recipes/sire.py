"""`sire`: passages by what they say themselves and by the sentences that lead to them."""

from __future__ import annotations

from typing import Any

from sire_core.organize.knowledge_graph import KnowledgeGraph
from sire_core.protocols import Recipe
from sire_core.recipes.base import register
from sire_core.settings import Chosen, Part

__all__ = ["sire"]


@register
def sire(**settings: Any) -> Recipe:
    """Vectors, words and names in one score, and paths from passage to passage over the sentences that name them.

    Args:
        **settings: Those of `KnowledgeGraph` and `EvidencePaths`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.search.rankers.evidence_paths import EvidencePaths

    chosen = Chosen(settings, Part(KnowledgeGraph, without=("summaries", "index_units")), Part(EvidencePaths))
    return Recipe(
        name="sire",
        summary="vectors, words and names in one score, and paths over the sentences that lead to a passage",
        paper="our own",
        organizers=(chosen.make(KnowledgeGraph),),
        ranker=chosen.make(EvidencePaths),
        config=chosen.config,
        texts=chosen.texts,
    )
