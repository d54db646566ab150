"""Settings of `linearrag` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class LinearragSettings(TypedDict, total=False):
    """Settings of `linearrag`."""

    damping: float
    disambiguate: bool
    entity_source: Literal["all", "extracted", "triples"]
    hub_floor: int
    max_df: float
    max_names: int | None
    passage_ratio: float
    passage_weight: float
    preset: Literal["ours", "published", "musique", "code"]
    repeated: Literal["highest", "sum"]
    rounds: int
    seeds: Literal["named", "nearest"]
    sentences: int
    similar_names: float | None
    skip_types: tuple[str, ...] | list[str]
    threshold: float
