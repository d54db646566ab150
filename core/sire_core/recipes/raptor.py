"""`raptor`: a tree of summaries over similar passages (Sarthi et al. 2024; ALGORITHMS 1)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sire_core.recipes.base import Recipe, configure, make_ranker, register

__all__ = ["RaptorConfig", "raptor"]


@dataclass(frozen=True, slots=True)
class RaptorConfig:
    """Settings of `raptor`.

    Attributes:
        depth: Summary levels.
        clustering: `leiden` or `paper`.
        max_cluster_tokens: A cluster with more text is split.
        summary_tokens: Length of a summary.
        stop_rule: `default`, `official` or `none`.
        hierarchy: Passages that give an overview join the tree at level 1 (SiReRAG section 4.1).
        ranker: `dense`, `bm25` or `hybrid`.
        ann_threshold: Pools of at least so many units are searched through codes instead of scanned; see `Flat`.
    """

    depth: int = 3
    clustering: str = "leiden"
    max_cluster_tokens: int = 3500
    summary_tokens: int = 200
    stop_rule: str = "default"
    hierarchy: bool = False
    ranker: str = "dense"
    ann_threshold: int | None = None


@register
def raptor(config: RaptorConfig | None = None, /, **settings: Any) -> Recipe:
    """RAPTOR's collapsed tree: passages and their summaries in one pool.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `RaptorConfig`.
    """
    from sire_core.organize.similarity_tree import SimilarityTree
    from sire_core.organize.trees.settings import TreeSettings

    c = configure(RaptorConfig, config, settings)
    tree = TreeSettings(c.depth, c.clustering, c.max_cluster_tokens, c.summary_tokens, c.stop_rule)
    return Recipe(
        name="raptor",
        summary="summaries over clusters of similar passages, all levels in one pool",
        paper="RAPTOR, Sarthi et al. 2024",
        organizers=(SimilarityTree(tree, hierarchy=c.hierarchy),),
        ranker=make_ranker(c.ranker, ann_threshold=c.ann_threshold),
        config=asdict(c),
    )
