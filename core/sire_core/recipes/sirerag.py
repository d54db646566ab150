"""`sirerag`: similar and related text in one pool (Zhang et al. 2025; ALGORITHMS 2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.recipes.base import Recipe, configure, make_ranker, register

if TYPE_CHECKING:
    from sire_core.protocols import Organizer

__all__ = ["SireragConfig", "sirerag"]

_VARIANTS = {
    "full": {},
    "A": {"summaries": False},
    "B": {"propositions": True},
    "C": {"propositions": True, "aggregates": False},
    "D": {"propositions": True, "aggregates": False, "summaries": False},
    "E": {},
}
_CROSS = ("none", "replace", "add")


@dataclass(frozen=True, slots=True)
class SireragConfig:
    """Settings of `sirerag`.

    Attributes:
        variant: The paper's Table 5: `full`; `A` without summaries of aggregates; `B` with all propositions; `C` is B
            without aggregates; `D` is C without their summaries; `E` has no relatedness tree, its similarity tree also
            clusters passages by the entities they mention.
        cross: Clusters across both trees (the paper's appendix A): `none`; `replace` makes one tree over passages and
            aggregates; `add` puts it beside the two trees.
        hierarchy: Passages that give an overview join the similarity tree one level above the others (section 4.1).
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
        ann_threshold: Pools of at least so many units are searched through codes instead of scanned; see `Flat`.
        instruction: Appended to the question before it is embedded (the released notebooks do that).
    """

    variant: str = "full"
    cross: str = "none"
    hierarchy: bool = False
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
    ann_threshold: int | None = None
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
    _check(c)
    return Recipe(
        name="sirerag",
        summary="summaries of similar passages, and facts grouped by the entities they share, in one pool",
        paper="SiReRAG, Zhang et al. 2025",
        organizers=_organizers(c),
        ranker=make_ranker(c.ranker, c.instruction, c.ann_threshold),
        config=asdict(c),
    )


def _check(c: SireragConfig) -> None:
    if c.variant not in _VARIANTS:
        raise ConfigurationError(f"The variant is one of {', '.join(_VARIANTS)}, not {c.variant!r}.")
    if c.cross not in _CROSS:
        raise ConfigurationError(f"cross is one of {', '.join(_CROSS)}, not {c.cross!r}.")
    if c.cross != "none" and c.variant != "full":
        raise ConfigurationError(f"cross={c.cross!r} joins whole trees; it needs variant='full', not {c.variant!r}.")
    if c.cross == "replace" and c.hierarchy:
        raise ConfigurationError("cross='replace' leaves no similarity tree for hierarchy=True; use cross='add'.")


def _organizers(c: SireragConfig) -> tuple[Organizer, ...]:
    from sire_core.organize.cross_tree import CrossTree
    from sire_core.organize.relatedness_tree import RelatednessTree
    from sire_core.organize.similarity_tree import SimilarityTree
    from sire_core.organize.trees.settings import TreeSettings

    tree = TreeSettings(c.depth, c.clustering, c.max_cluster_tokens, c.summary_tokens, c.stop_rule)
    similar = SimilarityTree(tree, entity_clusters=c.variant == "E", hierarchy=c.hierarchy)
    if c.variant == "E":
        return (similar,)
    parts = {"summaries": False} if c.cross == "replace" else _VARIANTS[c.variant]
    related = RelatednessTree(
        tree=tree,
        singleton_rule=c.singleton_rule,
        entity_key=c.entity_key,
        dup_facts=c.dup_facts,
        split_tokens=c.split_tokens,
        copy_share=c.copy_share,
        skip_types=tuple(c.skip_types),
        **parts,
    )
    if c.cross == "replace":
        return (related, CrossTree(tree, "replace"))
    return (similar, related, CrossTree(tree, "add")) if c.cross == "add" else (similar, related)
