"""Settings of `indexrag` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class IndexragSettings(TypedDict, total=False):
    """Settings of `indexrag`."""

    base_store: Literal["aku", "chunks", "any"]
    bridge_tokens: int | None
    cap_order: Literal["facts", "first"]
    depth: int | None
    entity_key: Literal["norm", "lower", "exact"]
    instruction: str
    k_b: int | None
    max_docs: int
    max_facts: int
    max_pairs: int
    per_step: bool
    preset: Literal["ours", "published"]
    ranker: Literal["dense", "bm25", "tfidf", "hybrid", "late"]
    skip_types: tuple[str, ...] | list[str]
    split_tokens: int
    stage1: Literal["qa", "summary", "chunks"]
    stage2: bool
    summary_tokens: int
    tau: int
    top_up: bool
