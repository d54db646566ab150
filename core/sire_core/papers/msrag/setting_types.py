"""Settings of `msrag` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class MsragSettings(TypedDict, total=False):
    """Settings of `msrag`."""

    chunks: int
    cross_encoder: str
    damping: float
    disambiguate: bool
    entities: int
    entity_hops: int
    entity_source: Literal["all", "extracted", "triples"]
    expand: Literal["nearby", "ppr", "none"]
    extraction: Literal["vector", "llm"]
    fanout: int | None
    fusion: Literal["vote", "priority"]
    hop_decay: float
    hub_floor: int
    link: bool
    literals: bool
    max_df: float
    max_names: int | None
    preset: Literal["ours", "graph", "published", "workable"]
    relation_hops: int
    relations: int
    rerank: str
    rerank_characters: int
    rerank_model: str
    rerank_ms: int
    rerank_named: int
    rerank_pool: int
    rerank_weight: float
    similar_names: float | None
    skip_types: tuple[str, ...] | list[str]
    summaries: Literal["none", "lazy", "eager"]
    vote: Literal["count", "similarity"]
