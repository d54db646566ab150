"""`flat`: the passages alone. The baseline that every other recipe is measured against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.extend import Component, PoolRanker, Recipe, RerankSettings, ResolvedSettings, register

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings


@register
def flat(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """Passages and vectors only.

    Args:
        **settings: Those of `PoolRanker` and `RerankSettings`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    chosen = ResolvedSettings(settings, Component(PoolRanker), Component(RerankSettings))
    return Recipe(
        name="flat",
        summary="passages only, ranked by vector, BM25 or both",
        paper="baseline",
        organizers=(),
        ranker=chosen.make(PoolRanker).make(),
        selectors=chosen.make(RerankSettings).selectors(),
        config=chosen.config,
        texts=chosen.texts,
    )
