"""Settings of `smart` as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from sire_core.extend import Ranker


class SmartSettings(TypedDict, total=False):
    """Settings of `smart`."""

    abstractor: Literal["greedy", "neural"]
    assign: Literal["softmax", "sigmoid"]
    base: Literal["dense", "bm25", "hybrid", "pagerank", "mix_recall", "sire", "iier"] | Ranker
    bring: bool
    cap: int | Literal["third"] | None
    cap_tokens: int | None
    context_tokens: int
    disambiguate: bool
    diversity: float
    drift: float
    edge_weight: Literal["strength", "binary"]
    entity_source: Literal["all", "extracted", "triples"]
    entity_types: str
    epochs: int
    extract_tokens: int
    hub_floor: int
    info: bool
    information: Literal["mi", "nmi"]
    kappa: int
    levels: int
    literals: bool
    loss: Literal["se", "modularity"]
    max_df: float
    max_names: int | None
    min_passages: int
    mu: float | None
    nest: Literal["chain", "repair"]
    overlap: float
    perspective: int | str
    polish: int
    preset: Literal["ours", "published"]
    report_tokens: int
    similar_names: float | None
    sizes: tuple[int, ...] | list[int] | None
    skip_types: tuple[str, ...] | list[str]
    views: Literal["all", "relations"]
