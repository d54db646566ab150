"""`indexrag`: cross-document reasoning at indexing time (Bao and Shi; ALGORITHMS 4)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sire_core.algorithms.quotas import Band
from sire_core.errors import ConfigurationError
from sire_core.organize.atomic_knowledge import AtomicKnowledge
from sire_core.organize.bridging_facts import BridgingFacts
from sire_core.recipes.base import Recipe, configure, make_ranker, register

__all__ = ["IndexragConfig", "indexrag"]


@dataclass(frozen=True, slots=True)
class IndexragConfig:
    """Settings of `indexrag`.

    Attributes:
        stage1: What stands for a document: `qa`, its facts; `summary`; or `chunks`, its passages.
        stage2: Whether bridging facts are built.
        base_store: What is retrieved beside bridging facts: `aku`, what stage 1 makes; `chunks`, the passages; `any`,
            both. What is left out comes back only when everything else is used up.
        k_b: Most bridging facts in a context; None for no bound.
        bridge_tokens: Most tokens of all bridging facts in a context; None for no bound.
        depth: Candidates that are looked at; None for as many as it takes to fill the context. The paper says 20 in one
            place and all in another.
        top_up: Whether a context that the bounds leave short is filled up from the ranking. The paper does not.
        tau: An entity in more documents joins nothing.
        max_docs: Documents that are read per entity.
        max_facts: Facts that are read per document.
        cap_order: Which documents are read when there are more: `facts` or `first`; see `BridgingFacts`.
        max_pairs: Without a model, most bridging facts per entity.
        entity_key: `norm`, `lower` or `exact`; see `name_key`.
        skip_types: Entity types that join nothing.
        summary_tokens: Length of a summary with `stage1="summary"`.
        ranker: `dense`, `bm25` or `hybrid`.
    """

    stage1: str = "qa"
    stage2: bool = True
    base_store: str = "aku"
    k_b: int | None = 3
    bridge_tokens: int | None = None
    depth: int | None = None
    top_up: bool = True
    tau: int = 10
    max_docs: int = 5
    max_facts: int = 8
    cap_order: str = "facts"
    max_pairs: int = 3
    entity_key: str = "norm"
    skip_types: tuple[str, ...] = ("Date", "Quantity")
    summary_tokens: int = 200
    ranker: str = "dense"


@register
def indexrag(config: IndexragConfig | None = None, /, **settings: Any) -> Recipe:
    """IndexRAG: atomic knowledge of each document and facts that bridge documents in one pool, with a quota for these.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `IndexragConfig`.

    Raises:
        ConfigurationError: A setting is unknown or impossible.
    """
    from sire_core.search.quota import Quota

    c = configure(IndexragConfig, config, settings)
    if c.stage1 not in ("qa", "summary", "chunks"):
        raise ConfigurationError(f"stage1 is 'qa', 'summary' or 'chunks', not {c.stage1!r}.")
    if c.base_store not in ("aku", "chunks", "any"):
        raise ConfigurationError(f"base_store is 'aku', 'chunks' or 'any', not {c.base_store!r}.")
    atomic = AtomicKnowledge(c.stage1, c.summary_tokens) if c.stage1 != "chunks" and c.base_store != "chunks" else None
    bridging = BridgingFacts(
        tau=c.tau,
        max_docs=c.max_docs,
        max_facts=c.max_facts,
        cap_order=c.cap_order,
        max_pairs=c.max_pairs,
        entity_key=c.entity_key,
        skip_types=tuple(c.skip_types),
    )
    bands = [("bridge", Band(0, c.k_b, c.bridge_tokens))]
    if atomic is not None and c.base_store == "aku":
        bands.append(("chunk", Band(0, 0)))
    return Recipe(
        name="indexrag",
        summary="the facts of each document, and facts that join documents which share an entity, in one pool",
        paper="IndexRAG, Bao and Shi",
        organizers=(*((atomic,) if atomic else ()), *((bridging,) if c.stage2 else ())),
        ranker=make_ranker(c.ranker),
        selectors=(Quota(tuple(bands), c.depth, c.top_up),),
        config=asdict(c),
    )
