"""The rows of all papers whose recipes we have, and of what each part of `sire` adds, which no paper has."""

from __future__ import annotations

from sire_core.errors import ConfigurationError
from sire_core.recipes.ablation import ABLATIONS, Ablation, register_ablations

__all__ = ["ablations_of", "recipes_with_ablations"]


def ablations_of(recipe: str) -> tuple[Ablation, ...]:
    """The rows of a recipe's paper.

    Raises:
        ConfigurationError: There are none.
    """
    known = recipes_with_ablations()
    if recipe not in known:
        raise ConfigurationError(f"There are no ablations of {recipe!r}; choose one of {', '.join(known)}.")
    return ABLATIONS[recipe]


def recipes_with_ablations() -> list[str]:
    """Names of the recipes whose papers' rows are known, sorted."""
    from sire_core.recipes import (  # noqa: F401 - fills the registry
        iier_ablations,
        indexrag_ablations,
        msrag_ablations,
        sirerag_ablations,
        smart_ablations,
    )

    return sorted(ABLATIONS)


register_ablations(
    "sire",
    (
        Ablation("ours", "sire", "sire", {}),
        Ablation("ours", "two passages, not three", "sire", {"rounds": 1}),
        Ablation("ours", "no steps over names", "sire", {"rounds": 0}),
        Ablation("ours", "steps to what is about the name only", "sire", {"widest": 1}),
        Ablation("ours", "names as they are, no aliases", "sire", {"disambiguate": False}),
        Ablation("ours", "the best steps read with the question", "sire", {"read_steps": 24}),
        Ablation("ours", "the model looks at the first 20 passages", "sire", {"rerank": "model"}, needs="model"),
        Ablation("ours", "our PageRank over passages and entities", "pagerank", {}),
        Ablation("ours", "vectors and BM25, ranks fused", "flat", {"ranker": "hybrid"}),
    ),
)
