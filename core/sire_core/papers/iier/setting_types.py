"""Settings of `iier` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict


class IierSettings(TypedDict, total=False):
    """Settings of `iier`."""

    checkpoint: str
    decay: float
    exact_below: int
    fallback_seeds: int
    fill: bool
    keywords: Literal["model", "rules"]
    kw_df_cap: int
    kw_min: int
    links: Literal["union", "mutual"]
    max_length: int
    n_sim: int
    order: Literal["score", "chain", "iterative", "shuffle"]
    preset: Literal["ours", "chains", "published", "workable"]
    scorer: Literal["neural", "heuristic", "llm", "random"]
    seed: int
    seed_lift: float
    seed_match: Literal["strict", "keyword_then_text"]
    similar_seeds: int
    step_lift: float
    title_keywords: bool
    use_kw: bool
    use_sim: bool
    use_struc: bool
