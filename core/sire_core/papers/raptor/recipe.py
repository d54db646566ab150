"""`raptor`: a tree of summaries over similar passages (Sarthi et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.extend import Component, PoolRanker, Recipe, ResolvedSettings, register

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings


@register
def raptor(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """RAPTOR: passages and their summaries in one pool (the collapsed tree), or searched from the top of the tree.

    Args:
        **settings: Those of `TreeSettings`, `SimilarityTree` (`hierarchy`), `TreeTraversal` (`traversal`) and
            `PoolRanker`, without an instruction.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.papers.raptor.traversal import TreeTraversal
    from sire_core.papers.trees.similarity_tree import SimilarityTree
    from sire_core.papers.trees.tree import TreeSettings

    chosen = ResolvedSettings(
        settings,
        Component(TreeSettings),
        Component(SimilarityTree, without=("entity_clusters",)),
        Component(TreeTraversal),
        Component(PoolRanker, without=("instruction",)),
    )
    traversal = chosen.make(TreeTraversal)
    if traversal.traversal is not None:
        chosen.refuse_unused(PoolRanker, "traversal, which goes by cosines")
    return Recipe(
        name="raptor",
        summary="passages, and summaries of clusters of similar passages on several levels",
        paper="RAPTOR, Sarthi et al. 2024",
        organizers=(chosen.make(SimilarityTree, tree=chosen.make(TreeSettings)),),
        ranker=chosen.make(PoolRanker).make() if traversal.traversal is None else traversal,
        config=chosen.config,
        texts=chosen.texts,
    )
