"""`raptor`: a tree of summaries over similar passages (Sarthi et al. 2024)."""

from __future__ import annotations

from typing import Any

from sire_core.protocols import Recipe
from sire_core.recipes.pool_ranker import PoolRanker
from sire_core.recipes.published import register_published
from sire_core.recipes.registry import register
from sire_core.settings import Component, ResolvedSettings


@register
def raptor(**settings: Any) -> Recipe:
    """RAPTOR's collapsed tree: passages and their summaries in one pool.

    Args:
        **settings: Those of `TreeSettings`, `SimilarityTree` (`hierarchy`) and `PoolRanker`, without an instruction.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.trees.similarity_tree import SimilarityTree
    from sire_core.trees.tree import TreeSettings

    chosen = ResolvedSettings(
        settings,
        Component(TreeSettings),
        Component(SimilarityTree, without=("entity_clusters",)),
        Component(PoolRanker, without=("instruction",)),
    )
    return Recipe(
        name="raptor",
        summary="passages, and summaries of clusters of similar passages on several levels",
        paper="RAPTOR, Sarthi et al. 2024",
        organizers=(chosen.make(SimilarityTree, tree=chosen.make(TreeSettings)),),
        ranker=chosen.make(PoolRanker).make(),
        config=chosen.config,
        texts=chosen.texts,
    )


register_published("raptor", __package__)
