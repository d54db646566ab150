"""The rows of MS-RAG's tables 2, 5, 7, 9, 11 and 13 with the paper's figures.

Left out: other language models (table 6, half of table 11), which are a matter of what the index is given. The paper's
graph, embedder and reranker are others, so only differences compare.
"""

from __future__ import annotations

from collections.abc import Mapping

from sire_core.recipes.ablation import Ablation, register_ablations

__all__: list[str] = []


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
