"""Settings of `sirerag` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class SireragSettings(TypedDict, total=False):
    """Settings of `sirerag`."""

    clustering: Literal["leiden", "paper"]
    copy_share: float | None
    cross: Literal["none", "replace", "add"]
    depth: int
    dup_facts: Literal["drop", "keep"]
    entity_key: Literal["norm", "lower", "exact"]
    hierarchy: bool
    instruction: str
    max_cluster_tokens: int
    preset: Literal["ours", "published", "code"]
    ranker: Literal["dense", "bm25", "tfidf", "hybrid", "late"]
    singleton_rule: Literal["safe", "code", "paper"]
    skip_types: tuple[str, ...] | list[str]
    split_tokens: int | None
    stop_rule: Literal["default", "official", "none"]
    summary_tokens: int
    variant: Literal["full", "A", "B", "C", "D", "E"]
