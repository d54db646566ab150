"""`sirerag`: similar and related text in one pool (Zhang et al. 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.protocols import Recipe
from sire_core.recipes.ablations import Ablation, register_ablations
from sire_core.recipes.flat.recipe import PoolRanker
from sire_core.recipes.registry import register
from sire_core.settings import Component, ResolvedSettings, check_settings, setting

if TYPE_CHECKING:
    from sire_core.protocols import Organizer

__all__ = ["SireragTrees", "sirerag"]

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
def sirerag(**settings: Any) -> Recipe:
    """SiReRAG: RAPTOR's tree beside facts grouped by entity and a tree over the groups, flattened into one pool.

    Args:
        **settings: Those of `SireragTrees`, `SimilarityTree` (`hierarchy`), `RelatednessTree`, `TreeSettings` (of all
            trees) and `PoolRanker`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.recipes.sirerag.relatedness_tree import RelatednessTree
    from sire_core.trees.settings import TreeSettings
    from sire_core.trees.similarity_tree import SimilarityTree

    chosen = ResolvedSettings(
        settings,
        Component(SireragTrees),
        Component(SimilarityTree, without=("entity_clusters",)),
        Component(RelatednessTree, without=("aggregates", "summaries", "propositions")),
        Component(TreeSettings),
        Component(PoolRanker),
    )
    return Recipe(
        name="sirerag",
        summary="summaries of similar passages, and facts grouped by entity",
        paper="SiReRAG, Zhang et al. 2025",
        organizers=_organizers(chosen),
        ranker=chosen.make(PoolRanker).make(),
        config=chosen.config,
        texts=chosen.texts,
    )


def _organizers(chosen: ResolvedSettings) -> tuple[Organizer, ...]:
    from sire_core.recipes.sirerag.cross_tree import CrossTree
    from sire_core.recipes.sirerag.relatedness_tree import RelatednessTree
    from sire_core.trees.settings import TreeSettings
    from sire_core.trees.similarity_tree import SimilarityTree

    trees, tree = chosen.make(SireragTrees), chosen.make(TreeSettings)
    similar = chosen.make(SimilarityTree, tree=tree, entity_clusters=trees.variant == "E")
    if trees.variant == "E":
        chosen.refuse_unused(RelatednessTree, "variant='E', which has no relatedness tree")
        return (similar,)
    parts = {"summaries": False} if trees.cross == "replace" else _VARIANTS[trees.variant]
    related = chosen.make(RelatednessTree, tree=tree, **parts)
    if trees.cross == "replace":
        return (related, CrossTree(tree, "replace", similar.hierarchy))
    return (similar, related, CrossTree(tree, "add", similar.hierarchy)) if trees.cross == "add" else (similar, related)


# The rows of SiReRAG's tables 2, 4 to 9 and 11 with the paper's figures.
#
# Answers are read from 20 hits. TPQ and TPER (tables 7 and 10) are in seconds of the paper's machines and models.
#
# The late-interaction rows use the tokens of the index's own embedder, where it has any, and not ColBERTv2.

_SETS = ("musique", "2wiki", "hotpotqa", "average")


def _scores(*pairs: tuple[float, float]) -> Mapping[str, Mapping[str, float]]:
    """EM and F1 on the three sets, and their mean."""
    return {name: {"EM": em, "F1": f1} for name, (em, f1) in zip(_SETS, pairs, strict=True)}


def _timed(
    scores: Mapping[str, Mapping[str, float]], seconds: tuple[float, ...], ratios: tuple[float, ...] = ()
) -> dict[str, Mapping[str, float]]:
    """The scores with TPQ and TPER on the three sets."""
    times = {name: {"TPQ": value} for name, value in zip(_SETS, seconds, strict=False)}
    per_unit = {name: {"TPER": value} for name, value in zip(_SETS, ratios, strict=False)}
    return {name: {**found, **times.get(name, {}), **per_unit.get(name, {})} for name, found in scores.items()}


_CROSS = _scores((40.2, 53.06), (58.3, 65.25), (60.3, 75.71), (52.93, 64.67))
_RAPTOR = {
    **_timed(_scores((36.4, 49.09), (53.8, 61.45), (58.0, 73.08), (49.4, 61.21)), (1.56, 1.437, 1.502)),
    "quality": {"accuracy": 78.88},
    "multihoprag": {"EM": 59.8, "F1": 60.46},
    "asqa": {"STR-EM": 51.47, "D-F1": 40.3, "DR": 42.72},
}
_FULL = {
    **_timed(
        _scores((40.5, 53.08), (59.6, 67.94), (61.7, 76.48), (53.93, 65.83)),
        (2.653, 1.974, 2.319),
        (0.6, 0.499, 0.517),
    ),
    "multihoprag": {"EM": 61.3, "F1": 61.89},
    "asqa": {"STR-EM": 52.81, "D-F1": 41.82, "DR": 43.47},
}
_INSTRUCTION = "Answer in as few words as possible."

_SELF_ASK = {"via": "self-ask", "flavor": "two_call", "k": 10}
"""Appendix B: one search, for the question itself; follow-up questions and the answer in two calls."""

_PUBLISHED = {"singleton_rule": "paper", "copy_share": None, "skip_types": (), "split_tokens": None}
"""Every aggregate of the paper: of one fact, of one passage, of a date, of any length."""

register_ablations(
    "sirerag",
    (
        Ablation("T2, T4, T7, T11", "RAPTOR", "raptor", {}, _RAPTOR),
        Ablation("T4, T7, T11", "SiReRAG", "sirerag", {}, _FULL),
        Ablation("ours", "as published", "sirerag", {**_PUBLISHED, "clustering": "paper"}, needs="umap"),
        Ablation("ours", "as published, clusters of the neighbour graph", "sirerag", _PUBLISHED),
        Ablation(
            "T5",
            "A: no summaries of aggregates",
            "sirerag",
            {"variant": "A"},
            _scores((37.5, 50.38), (57.7, 65.75), (61.2, 75.99), (52.13, 64.04)),
        ),
        Ablation(
            "T5",
            "B: and all propositions",
            "sirerag",
            {"variant": "B"},
            _scores((39.1, 51.80), (58.1, 65.53), (60.8, 75.26), (52.67, 64.20)),
        ),
        Ablation(
            "T5",
            "C: B without aggregates",
            "sirerag",
            {"variant": "C"},
            _scores((34.7, 47.82), (53.2, 60.22), (58.9, 73.38), (48.93, 60.47)),
        ),
        Ablation(
            "T5",
            "D: C without their summaries",
            "sirerag",
            {"variant": "D"},
            _scores((33.9, 46.19), (53.0, 59.13), (57.0, 71.09), (47.97, 58.80)),
        ),
        Ablation(
            "T5",
            "E: entity clusters instead",
            "sirerag",
            {"variant": "E"},
            _scores((34.8, 47.32), (53.5, 59.93), (56.6, 71.84), (48.30, 59.70)),
        ),
        Ablation(
            "T6",
            "BM25 over passages",
            "flat",
            {"ranker": "bm25"},
            _scores((25.9, 35.88), (53.0, 58.58), (57.7, 71.32), (45.53, 55.26)),
        ),
        Ablation(
            "T6",
            "BM25 over RAPTOR's pool",
            "raptor",
            {"ranker": "bm25"},
            _scores((27.0, 38.91), (50.6, 57.0), (56.9, 70.88), (44.83, 55.60)),
        ),
        Ablation(
            "T6",
            "BM25 over SiReRAG's pool",
            "sirerag",
            {"ranker": "bm25"},
            _scores((35.0, 47.66), (58.2, 65.72), (61.7, 75.88), (51.63, 63.09)),
        ),
        Ablation(
            "T6",
            "late interaction over passages",
            "flat",
            {"ranker": "late"},
            _scores((34.0, 46.80), (52.9, 59.48), (59.0, 73.42), (48.63, 59.90)),
            needs="tokens",
        ),
        Ablation(
            "T6",
            "late interaction over RAPTOR's pool",
            "raptor",
            {"ranker": "late"},
            _scores((34.2, 47.17), (50.3, 57.51), (57.9, 72.31), (47.47, 59.00)),
            needs="tokens",
        ),
        Ablation(
            "T6",
            "late interaction over SiReRAG's pool",
            "sirerag",
            {"ranker": "late"},
            _scores((38.1, 51.32), (56.7, 64.74), (60.9, 75.72), (51.90, 63.93)),
            needs="tokens",
        ),
        Ablation("T8", "cross-tree, replacing both", "sirerag", {"cross": "replace"}, _CROSS),
        Ablation("T8", "cross-tree, beside both", "sirerag", {"cross": "add"}, _CROSS),
        Ablation("T2", "RAPTOR over a hierarchy", "raptor", {"hierarchy": True}, {"quality": {"accuracy": 78.76}}),
        Ablation(
            "T9",
            "closed book",
            "flat",
            {},
            _scores((10, 22), (19, 34), (29, 44), (19.3, 33.3)),
            answer={"via": "closed-book"},
        ),
        Ablation(
            "T9, T10",
            "self-ask over passages",
            "flat",
            {},
            _timed(
                _scores((31.2, 44.35), (55.0, 61.99), (57.1, 71.11), (47.77, 59.15)),
                (2.72, 2.21, 2.29),
            ),
            answer=_SELF_ASK,
        ),
        Ablation(
            "T9, T10",
            "self-ask over SiReRAG",
            "sirerag",
            {},
            _timed(
                _scores((36.5, 49.12), (57.2, 65.13), (59.7, 74.07), (51.13, 62.77)),
                (4.53, 3.07, 3.3),
            ),
            answer=_SELF_ASK,
        ),
        Ablation("code", "instruction embedded", "sirerag", {"instruction": _INSTRUCTION}),
        Ablation("ours", "BM25 and vectors fused", "sirerag", {"ranker": "hybrid"}),
    ),
    context=20,
)
