"""What each part of `sire` adds; no paper has these rows."""

from __future__ import annotations

from sire_core.recipes.ablation import Ablation, register_ablations

__all__: list[str] = []

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
