"""Settings of `raptor` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class RaptorSettings(TypedDict, total=False):
    """Settings of `raptor`."""

    clustering: Literal["leiden", "paper"]
    depth: int
    hierarchy: bool
    max_cluster_tokens: int
    preset: Literal["ours", "published"]
    ranker: Literal["dense", "bm25", "tfidf", "hybrid", "late"]
    stop_rule: Literal["default", "official", "none"]
    summary_tokens: int
    traversal: int | None
