"""Settings of `pagerank` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class PagerankSettings(TypedDict, total=False):
    """Settings of `pagerank`."""

    cosine_weight: float
    damping: float
    dense_hits: int
    dense_power: float
    dense_share: float
    disambiguate: bool
    hub_floor: int
    index_units: bool
    literals: bool
    max_df: float
    max_names: int | None
    preset: Literal["ours"]
    rarity: float
    seed_rarity: float
    similar_names: float | None
    skip_types: tuple[str, ...] | list[str]
    threshold: float
    title_weight: float
