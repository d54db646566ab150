"""`msrag`: entities, relations and passages recalled together (MS-RAG)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sire_core.knowledge.knowledge_graph import KnowledgeGraph
from sire_core.protocols import Recipe
from sire_core.recipes.ablations import Ablation, register_ablations
from sire_core.recipes.registry import register
from sire_core.recipes.reranking import RerankSettings
from sire_core.settings import Component, ResolvedSettings, setting

__all__ = ["MsragContext", "msrag"]


@dataclass(frozen=True, slots=True)
class MsragContext(RerankSettings):
    """What MS-RAG does with the passages that the graph elects.

    Attributes:
        rerank: `model` (no effect without a model), `cross_encoder` or `none`.
        rerank_pool: Number of passages that the model sees (the paper's lambda 4).
        rerank_named: Number of passages that the model selects.
        rerank_model: Another model for `rerank="model"`; see `Rerank`. Empty means the model of the index.
        cross_encoder: Name or folder of the cross-encoder (sentence-transformers; extra `rerank`).
        summaries: When a language model summarises an entity or relation, for answers only: `lazy`, when it is used in
            a prompt; `eager`, when the index is built; `none`.

    Raises:
        ConfigurationError: A setting is not allowed, or has no effect.
    """

    rerank: str = setting("model", choices=("model", "cross_encoder", "none"))
    rerank_pool: int = setting(5, low=1)
    rerank_named: int = setting(2, low=1)
    summaries: str = setting("none", choices=("none", "lazy", "eager"))


@register
def msrag(**settings: Any) -> Recipe:
    """MS-RAG: three recalls, neighbours in the graph, votes for passages, and a rerank.

    `vote="count", hop_decay=1.0, link=False, literals=True, skip_types=[]` is as published, with its hops read as a
    bounded fan-out (`fanout=None` is the text's letter); `fusion="priority", rerank="none"` its row without rerank;
    `entities=0, relations=0` its row without the graph; `expand="ppr"` and `extraction="llm"` rows of
    Table 7; `disambiguate=False` Table 13.

    Args:
        **settings: Those of `MixRecall`, `MsragContext` and `KnowledgeGraph`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.knowledge.element_context import ElementContext
    from sire_core.recipes.msrag.mix_recall import MixRecall

    chosen = ResolvedSettings(
        settings,
        Component(MixRecall),
        Component(MsragContext),
        Component(KnowledgeGraph, without=("index_units", "summaries")),
    )
    context = chosen.make(MsragContext)
    graph = chosen.make(KnowledgeGraph, index_units=True, summaries=context.summaries == "eager")
    return Recipe(
        name="msrag",
        summary="passages by votes of similar entities, relations and passages, and of their neighbours in a graph",
        paper="MS-RAG",
        organizers=(graph,),
        ranker=chosen.make(MixRecall),
        selectors=context.selectors(),
        context=None if context.summaries == "none" else ElementContext(),
        native="msrag",
        config=chosen.config,
        texts=chosen.texts,
    )


# The rows of MS-RAG's tables 2, 5, 7, 9, 11 and 13 with the paper's figures.
#
# Left out: other language models (table 6, half of table 11), which are a matter of what the index is given. The
# paper's graph, embedder and reranker are others, so only differences compare.


def _hotpot(two: float, five: float) -> Mapping[str, Mapping[str, float]]:
    """R@2 and R@5 on HotpotQA, the only set of the paper's ablations."""
    return {"hotpotqa": {"R@2": two, "R@5": five}}


_FULL = {
    "musique": {"R@2": 47.3, "R@5": 56.4, "EM": 25.6, "F1": 37.8, "MRR": 63.9},
    "2wiki": {"R@2": 80.1, "R@5": 91.2, "EM": 64.3, "F1": 71.4, "MRR": 90.1},
    "hotpotqa": {"R@2": 79.4, "R@5": 88.5, "EM": 60.4, "F1": 72.5, "MRR": 91.9},
}

_GRAPH = {"literals": True, "skip_types": ()}
"""Dates and common nouns are entities."""

_PUBLISHED = {**_GRAPH, "vote": "count", "hop_decay": 1.0, "link": False}
"""Four hops reach most of a graph; each keeps the `fanout` items most similar to the question, as by default."""

register_ablations(
    "msrag",
    (
        Ablation("T2, T5, T7, T9", "MS-RAG", "msrag", {}, _FULL),
        Ablation("T5", "passages alone", "flat", {}, _hotpot(73.3, 79.2)),
        Ablation(
            "T5, T11", "no votes and no rerank", "msrag", {"fusion": "priority", "rerank": "none"}, _hotpot(76.1, 84.9)
        ),
        Ablation("T7", "no passage recall", "msrag", {"chunks": 0}, _hotpot(77.1, 86.2)),
        Ablation("T7", "no graph recall", "msrag", {"entities": 0, "relations": 0}, _hotpot(70.6, 79.1)),
        Ablation("T7", "PageRank instead of neighbours", "msrag", {"expand": "ppr"}, _hotpot(73.8, 84.2)),
        Ablation(
            "T7", "the model names entities and relations", "msrag", {"extraction": "llm"}, _hotpot(73.8, 82.2), "model"
        ),
        Ablation("ours", "our PageRank over passages and entities", "pagerank", {}),
        Ablation("T13", "no disambiguation", "msrag", {"disambiguate": False}, _hotpot(76.7, 86.4)),
        Ablation("ours", "as published", "msrag", _PUBLISHED),
        Ablation("ours", "as published, hops without a bound", "msrag", _PUBLISHED | {"fanout": None}),
        Ablation("ours", "the paper's graph: dates and common nouns", "msrag", _GRAPH),
        Ablation("HippoRAG", "passages by PageRank", "msrag", {"expand": "ppr", "fusion": "pagerank", "link": False}),
        Ablation("ours", "no names of the question", "msrag", {"link": False}),
        Ablation("ours", "no neighbours", "msrag", {"expand": "none"}),
    ),
    context=5,
)
