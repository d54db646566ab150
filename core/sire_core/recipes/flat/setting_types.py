"""Settings of `flat` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class FlatSettings(TypedDict, total=False):
    """Settings of `flat`."""

    cross_encoder: str
    instruction: str
    preset: Literal["ours"]
    ranker: Literal["dense", "bm25", "tfidf", "hybrid", "late"]
    rerank: str
    rerank_characters: int
    rerank_model: str
    rerank_ms: int
    rerank_named: int
    rerank_pool: int
    rerank_weight: float
