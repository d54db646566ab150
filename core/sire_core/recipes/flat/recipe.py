"""`flat`: the passages alone. The baseline that every other recipe is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.protocols import Recipe
from sire_core.recipes.registry import register
from sire_core.settings import Component, ResolvedSettings, check_settings, refuse_unused, setting

if TYPE_CHECKING:
    from sire_core.protocols import Ranker

__all__ = ["PoolRanker", "flat"]


@dataclass(frozen=True, slots=True)
class PoolRanker:
    """The rankers that work over any pool.

    Attributes:
        ranker: `dense`, `bm25`, `tfidf`, `hybrid` or `late` (late interaction).
        ann_threshold: Above this many units, search compressed vectors instead of scanning all; see `Flat`.
        instruction: Text appended to the question for the search, like the answer instruction in SiReRAG's released
            notebooks.

    Raises:
        ConfigurationError: A setting is not allowed, or has no effect.
    """

    ranker: str = setting("dense", choices=("dense", "bm25", "tfidf", "hybrid", "late"))
    ann_threshold: int | None = setting(None, low=1)
    instruction: str = setting("", wording=True)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.ranker in ("bm25", "tfidf", "late"):
            refuse_unused(self, f"ranker={self.ranker!r}", ("ann_threshold",))

    def make(self) -> Ranker:
        """The ranker."""
        from sire_core.search.rankers.hybrid import Hybrid, Instructed
        from sire_core.search.rankers.lexical import Lexical, TfIdf
        from sire_core.search.vectors.flat import Flat

        found: Ranker
        dense = Flat(self.instruction if self.ranker == "dense" else "", self.ann_threshold)
        if self.ranker == "dense":
            return dense
        if self.ranker == "late":
            from sire_core.search.rankers.late_interaction import LateInteraction

            found = LateInteraction()
        elif self.ranker == "tfidf":
            found = TfIdf()
        else:
            found = Lexical() if self.ranker == "bm25" else Hybrid((dense, Lexical()))
        return Instructed(found, self.instruction) if self.instruction else found


@register
def flat(**settings: Any) -> Recipe:
    """Passages and vectors only.

    Args:
        **settings: Those of `PoolRanker`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    chosen = ResolvedSettings(settings, Component(PoolRanker))
    return Recipe(
        name="flat",
        summary="passages only, ranked by vector, BM25 or both",
        paper="baseline",
        organizers=(),
        ranker=chosen.make(PoolRanker).make(),
        config=chosen.config,
        texts=chosen.texts,
    )
