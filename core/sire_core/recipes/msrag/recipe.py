"""`msrag`: entities, relations and passages recalled together (MS-RAG)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sire_core.protocols import Recipe
from sire_core.recipes.published import register_published
from sire_core.recipes.registry import register
from sire_core.recipes.reranking import RerankSettings
from sire_core.settings import Component, ResolvedSettings, setting


@dataclass(frozen=True, slots=True)
class MsragContext(RerankSettings):
    """What MS-RAG does with the passages that the votes select.

    Attributes:
        rerank: `model` (no effect without a model), `cross_encoder` or `none`.
        rerank_pool: Number of passages that the model sees (the paper's lambda 4).
        rerank_named: Number of passages that the model selects.
        rerank_model: Another model for `rerank="model"`; see `Rerank`. Empty means the model of the index.
        rerank_ms: Milliseconds that the cross-encoder may read: as many of the first passages as fit. 0 for all of
            `rerank_pool`.
        rerank_weight: Weight of the cross-encoder beside the ranking's own scores; see `RerankSettings`.
        rerank_characters: Characters of each passage that it reads; see `RerankSettings`.
        cross_encoder: The cross-encoder: `onnx:NAME_OR_FOLDER` (extra `onnx`), or name or folder of one for
            sentence-transformers (extra `rerank`).
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
    from sire_core.knowledge.knowledge_graph import KnowledgeGraph
    from sire_core.recipes.msrag.context import ElementContext
    from sire_core.recipes.msrag.rank import MixRecall

    resolved = ResolvedSettings(
        settings,
        Component(MixRecall),
        Component(MsragContext),
        Component(KnowledgeGraph, without=("index_units", "summaries")),
    )
    context = resolved.make(MsragContext)
    graph = resolved.make(KnowledgeGraph, index_units=True, summaries=context.summaries == "eager")
    return Recipe(
        name="msrag",
        summary="passages by votes of similar entities, relations and passages, and of their neighbours in a graph",
        paper="MS-RAG",
        organizers=(graph,),
        ranker=resolved.make(MixRecall),
        selectors=context.selectors(),
        context=None if context.summaries == "none" else ElementContext(),
        native="triples",
        config=resolved.config,
        texts=resolved.texts,
    )


register_published("msrag", __package__)
