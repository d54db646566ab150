"""Settings of `sire` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class SireSettings(TypedDict, total=False):
    """Settings of `sire`."""

    boilerplate: bool
    cross_encoder: str
    disambiguate: bool
    first: int
    hub_floor: int
    literals: bool
    max_df: float
    max_names: int | None
    max_passages_per_name: int
    pool: int
    preset: Literal["ours"]
    read_steps: int
    rerank: str
    rerank_characters: int
    rerank_model: str
    rerank_ms: int
    rerank_named: int
    rerank_pool: int
    rerank_weight: float
    rounds: int
    similar_names: float | None
    skip_types: tuple[str, ...] | list[str]
