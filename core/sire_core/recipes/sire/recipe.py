"""`sire`: ranks passages by vectors, words and names, plus hops between passages that share a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.extend import Ablation, Component, Recipe, RerankSettings, ResolvedSettings, register, register_ablations

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings


@register
def sire(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """Vectors, words and names in one score, and paths from passage to passage over the sentences that name them.

    No model is asked for a question. `rerank="model"` lets the index's own look at the first 20 passages, one call a
    search; `rerank="cross_encoder"` a cross-encoder of yours.

    Args:
        **settings: Those of `KnowledgeGraph`, `EvidencePaths` and `RerankSettings`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.extend import KnowledgeGraph
    from sire_core.recipes.sire.rank import EvidencePaths

    chosen = ResolvedSettings(
        settings,
        Component(KnowledgeGraph, without=("summaries", "index_units", "index_relations", "entity_source")),
        Component(EvidencePaths),
        Component(RerankSettings),
    )
    return Recipe(
        name="sire",
        summary="vectors, words and names in one score, and paths over the sentences that lead to a passage",
        paper="our own",
        organizers=(chosen.make(KnowledgeGraph),),
        ranker=chosen.make(EvidencePaths),
        selectors=chosen.make(RerankSettings).selectors(),
        config=chosen.config,
        texts=chosen.texts,
    )


# What each part of `sire` adds, which no paper has.
register_ablations(
    "sire",
    (
        Ablation("ours", "sire", "sire", {}),
        Ablation("ours", "two passages, not three", "sire", {"rounds": 1}),
        Ablation("ours", "no steps over names", "sire", {"rounds": 0}),
        Ablation("ours", "steps to what is about the name only", "sire", {"max_passages_per_name": 1}),
        Ablation("ours", "names as they are, no aliases", "sire", {"disambiguate": False}),
        Ablation("ours", "menus and footers searched, too", "sire", {"boilerplate": True}),
        Ablation("ours", "the best steps read with the question", "sire", {"read_steps": 24}),
        Ablation("ours", "the model looks at the first 20 passages", "sire", {"rerank": "model"}, needs="model"),
        Ablation("ours", "our PageRank over passages and entities", "pagerank", {}),
        Ablation("ours", "vectors and BM25, ranks fused", "flat", {"ranker": "hybrid"}),
    ),
)
