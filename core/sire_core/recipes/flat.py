"""`flat`: the passages alone. The baseline that every other recipe is measured against."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sire_core.recipes.base import Recipe, configure, make_ranker, register

__all__ = ["FlatConfig", "flat"]


@dataclass(frozen=True, slots=True)
class FlatConfig:
    """Settings of `flat`.

    Attributes:
        ranker: `dense`, `bm25` or `hybrid`.
        ann_threshold: Pools of at least so many units are searched through codes instead of scanned; see `Flat`.
    """

    ranker: str = "dense"
    ann_threshold: int | None = None


@register
def flat(config: FlatConfig | None = None, /, **settings: Any) -> Recipe:
    """Passages and vectors only.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `FlatConfig`.
    """
    c = configure(FlatConfig, config, settings)
    return Recipe(
        name="flat",
        summary="passages only, ranked by vector, BM25 or both",
        paper="baseline",
        organizers=(),
        ranker=make_ranker(c.ranker, ann_threshold=c.ann_threshold),
        config=asdict(c),
    )
