"""The rows of all papers whose recipes we have."""

from __future__ import annotations

from sire_core.errors import ConfigurationError
from sire_core.recipes.ablation import ABLATIONS, Ablation

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
        sire_ablations,
        sirerag_ablations,
        smart_ablations,
    )

    return sorted(ABLATIONS)
