"""`indexrag`: cross-document reasoning at indexing time (Bao and Shi)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.extend import (
    Component,
    PoolRanker,
    Recipe,
    ResolvedSettings,
    check_settings,
    refuse_unused,
    register,
    setting,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings
    from sire_core.papers.indexrag.derive import AtomicKnowledge


@dataclass(frozen=True, slots=True)
class IndexragContext:
    """Settings of the indexed units, and of their number in a context.

    Attributes:
        stage1: What represents a document: `qa`, its facts; `summary`; or `chunks`, its passages.
        summary_tokens: Length of a summary with `stage1="summary"`.
        split_tokens: Maximum tokens of a document's unit; longer texts are split into several, which count as one
            candidate.
        stage2: Whether bridging facts are built.
        base_store: What is retrieved in addition to bridging facts: `aku`, the units of stage 1; `chunks`, the
            passages; `any`, both. Other units are used only when these run out.
        k_b: Maximum number of bridging facts in a context; None for no limit.
        bridge_tokens: Maximum tokens of all bridging facts in a context; None for no limit.

    Raises:
        ConfigurationError: A setting is not allowed, or has no effect.
    """

    stage1: str = setting("qa", choices=("qa", "summary", "chunks"))
    summary_tokens: int = setting(200, low=1)
    split_tokens: int = setting(1024, low=1)
    stage2: bool = True
    base_store: str = setting("aku", choices=("aku", "chunks", "any"))
    k_b: int | None = setting(3, low=0)
    bridge_tokens: int | None = setting(None, low=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.base_store == "chunks":
            refuse_unused(self, "base_store='chunks'", ("stage1",))
        if self.atomic() is None:
            refuse_unused(self, "passages that stand for documents", ("split_tokens",))
        if self.stage1 != "summary":
            refuse_unused(self, f"stage1={self.stage1!r}", ("summary_tokens",))
        if not self.stage2:
            refuse_unused(self, "stage2=False", ("k_b", "bridge_tokens"))

    def atomic(self) -> AtomicKnowledge | None:
        """Return the derivation of stage 1; None if passages stand for documents."""
        from sire_core.papers.indexrag.derive import AtomicKnowledge

        if "chunks" in (self.stage1, self.base_store):
            return None
        return AtomicKnowledge(self.stage1, self.summary_tokens, self.split_tokens)

    def outside(self) -> tuple[str, ...]:
        """Kinds that are retrieved only when all others are used up."""
        return ("chunk",) if self.atomic() and self.base_store == "aku" else ()


@register
def indexrag(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """IndexRAG: atomic knowledge of each document and facts that bridge documents in one pool, with a quota for these.

    Args:
        **settings: Those of `IndexragContext`, `BridgingFacts`, `Quota` and `PoolRanker`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.papers.indexrag.derive import BridgingFacts
    from sire_core.papers.indexrag.select import Quota, QuotaRange

    quota = Component(Quota, without=("outside", "parts"))
    resolved = ResolvedSettings(
        settings, Component(IndexragContext), quota, Component(BridgingFacts), Component(PoolRanker)
    )
    context = resolved.make(IndexragContext)
    if not context.stage2:
        resolved.refuse_unused(BridgingFacts, "stage2=False")
    atomic, bridging = context.atomic(), resolved.make(BridgingFacts)
    ranges = (("bridge", QuotaRange(context.k_b, context.bridge_tokens)),)
    return Recipe(
        name="indexrag",
        summary="the facts of each document, and bridging facts that connect documents through an entity",
        paper="IndexRAG, Bao and Shi",
        organizers=(*((atomic,) if atomic else ()), *((bridging,) if context.stage2 else ())),
        ranker=resolved.make(PoolRanker).make(),
        selectors=(resolved.make(Quota, ranges=ranges, outside=context.outside(), parts=("aku",)),),
        native="questions",
        config=resolved.config,
        texts=resolved.texts,
    )
