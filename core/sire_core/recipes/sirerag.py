"""`sirerag`: similar and related text in one pool (Zhang et al. 2025; ALGORITHMS 2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.organize.relatedness_tree import RelatednessTree
from sire_core.organize.similarity_tree import SimilarityTree
from sire_core.organize.tree import TreeSettings
from sire_core.recipes.base import Recipe, configure, make_ranker, register

__all__ = ["SireragConfig", "sirerag"]

_VARIANTS = {
    "full": {},
    "A": {"summaries": False},
    "B": {"propositions": True},
    "C": {"propositions": True, "aggregates": False},
    "D": {"propositions": True, "aggregates": False, "summaries": False},
}


@dataclass(frozen=True, slots=True)
class SireragConfig:
    """Settings of `sirerag`.

    Attributes:
        variant: The paper's Table 5: `full`; `A` without summaries of aggregates; `B` with all propositions; `C` is B
            without aggregates; `D` is C without their summaries.
        singleton_rule: `safe`, `code` or `paper`; see `group_facts`.
        entity_key: `norm`, `lower` or `exact`; see `name_key`.
        dup_facts: `drop` or `keep`.
        split_tokens: Longer aggregates become several units; None never splits.
        copy_share: Aggregates that restate at least this share of the one passage they come from are left out; None
            keeps them, as the paper does.
        skip_types: Entity types that form no aggregate.
        depth: Summary levels of both trees.
        clustering: `leiden` or `paper`.
        max_cluster_tokens: A cluster with more text is split.
        summary_tokens: Length of a summary.
        stop_rule: `default`, `official` or `none`.
        ranker: `dense`, `bm25` or `hybrid`.
        instruction: Appended to the question before it is embedded (the released notebooks do that).
    """

    variant: str = "full"
    singleton_rule: str = "safe"
    entity_key: str = "norm"
    dup_facts: str = "drop"
    split_tokens: int | None = 1024
    copy_share: float | None = 0.8
    skip_types: tuple[str, ...] = ("Date", "Quantity")
    depth: int = 3
    clustering: str = "leiden"
    max_cluster_tokens: int = 3500
    summary_tokens: int = 200
    stop_rule: str = "default"
    ranker: str = "dense"
    instruction: str = ""


@register
def sirerag(config: SireragConfig | None = None, /, **settings: Any) -> Recipe:
    """SiReRAG: RAPTOR's tree beside facts grouped by entity and a tree over the groups, flattened into one pool.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `SireragConfig`.

    Raises:
        ConfigurationError: Unknown variant or setting.
    """
    c = configure(SireragConfig, config, settings)
    if c.variant not in _VARIANTS:
        raise ConfigurationError(f"The variant is one of {', '.join(_VARIANTS)}, not {c.variant!r}.")
    tree = TreeSettings(c.depth, c.clustering, c.max_cluster_tokens, c.summary_tokens, c.stop_rule)
    related = RelatednessTree(
        tree=tree,
        singleton_rule=c.singleton_rule,
        entity_key=c.entity_key,
        dup_facts=c.dup_facts,
        split_tokens=c.split_tokens,
        copy_share=c.copy_share,
        skip_types=tuple(c.skip_types),
        **_VARIANTS[c.variant],
    )
    return Recipe(
        name="sirerag",
        summary="summaries of similar passages, and facts grouped by the entities they share, in one pool",
        paper="SiReRAG, Zhang et al. 2025",
        organizers=(SimilarityTree(tree), related),
        ranker=make_ranker(c.ranker, c.instruction),
        config=asdict(c),
    )
