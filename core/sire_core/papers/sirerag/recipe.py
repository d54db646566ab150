"""`sirerag`: similar and related text in one pool (Zhang et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.extend import (
    Component,
    ConfigurationError,
    PoolRanker,
    Recipe,
    ResolvedSettings,
    check_settings,
    register,
    setting,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings, Organizer

_VARIANTS = {
    "full": {},
    "A": {"summaries": False},
    "B": {"propositions": True},
    "C": {"propositions": True, "aggregates": False},
    "D": {"propositions": True, "aggregates": False, "summaries": False},
    "E": {},
}


@dataclass(frozen=True, slots=True)
class SireragTrees:
    """Which trees SiReRAG builds.

    Attributes:
        variant: The paper's Table 5: `full`; `A` without summaries of aggregates; `B` with all propositions; `C` is B
            without aggregates; `D` is C without their summaries; `E` has no relatedness tree, its similarity tree also
            clusters passages by the entities they mention.
        cross: Clusters across both trees (the paper's appendix A): `none`; `replace` builds one tree over passages and
            aggregates; `add` builds it in addition to the two trees.

    Raises:
        ConfigurationError: A setting is not allowed, or they do not go together.
    """

    variant: str = setting("full", choices=tuple(_VARIANTS))
    cross: str = setting("none", choices=("none", "replace", "add"))

    def __post_init__(self) -> None:
        check_settings(self)
        if self.cross != "none" and self.variant != "full":
            raise ConfigurationError(
                f"cross={self.cross!r} joins whole trees; it needs variant='full', not {self.variant!r}."
            )


@register
def sirerag(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """SiReRAG: RAPTOR's tree beside facts grouped by entity and a tree over the groups, flattened into one pool.

    Args:
        **settings: Those of `SireragTrees`, `SimilarityTree` (`hierarchy`), `RelatednessTree`, `TreeSettings` (of all
            trees) and `PoolRanker`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.papers.sirerag.cross_tree import CrossTree
    from sire_core.papers.sirerag.relatedness_tree import RelatednessTree
    from sire_core.papers.trees.similarity_tree import SimilarityTree
    from sire_core.papers.trees.tree import TreeSettings

    chosen = ResolvedSettings(
        settings,
        Component(SireragTrees),
        Component(SimilarityTree, without=("entity_clusters",)),
        Component(RelatednessTree, without=("aggregates", "summaries", "propositions")),
        Component(TreeSettings),
        Component(PoolRanker),
    )
    trees, tree = chosen.make(SireragTrees), chosen.make(TreeSettings)
    similar = chosen.make(SimilarityTree, tree=tree, entity_clusters=trees.variant == "E")
    cross = () if trees.cross == "none" else (CrossTree(tree, trees.cross, similar.hierarchy),)
    if trees.variant == "E":
        chosen.refuse_unused(RelatednessTree, "variant='E', which has no relatedness tree")
        organizers: tuple[Organizer, ...] = (similar,)
    elif trees.cross == "replace":
        organizers = (chosen.make(RelatednessTree, tree=tree, summaries=False), *cross)
    else:
        organizers = (similar, chosen.make(RelatednessTree, tree=tree, **_VARIANTS[trees.variant]), *cross)
    return Recipe(
        name="sirerag",
        summary="summaries of similar passages, and facts grouped by entity",
        paper="SiReRAG, Zhang et al. 2025",
        organizers=organizers,
        ranker=chosen.make(PoolRanker).make(),
        config=chosen.config,
        texts=chosen.texts,
    )
