"""Settings of `hipporag2` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class Hipporag2Settings(TypedDict, total=False):
    """Settings of `hipporag2`."""

    context_weight: float
    damping: float
    disambiguate: bool
    entity_source: Literal["all", "extracted", "triples"]
    hub_floor: int
    link: Literal["triple", "phrase", "name"]
    literals: bool
    max_df: float
    max_names: int | None
    passage_nodes: bool
    passage_weight: float
    phrases: int
    preset: Literal["ours", "published"]
    recognition: Literal["model", "none"]
    shared_word: bool
    similar_names: float | None
    skip_types: tuple[str, ...] | list[str]
    synonyms: float
    triples: int
