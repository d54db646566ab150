"""Settings of the recipes as typed keywords; written by `tests/unit/recipes/test_setting_types.py` from the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from sire_core.protocols import Ranker


class FlatSettings(TypedDict, total=False):
    """Settings of `flat`."""

    ann_threshold: int | None
    cross_encoder: str
    instruction: str
    preset: Literal["ours"]
    ranker: Literal["dense", "bm25", "tfidf", "hybrid", "late"]
    rerank: str
    rerank_characters: int
    rerank_model: str
    rerank_ms: int
    rerank_named: int
    rerank_pool: int
    rerank_weight: float


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


class IndexragSettings(TypedDict, total=False):
    """Settings of `indexrag`."""

    ann_threshold: int | None
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
    preset: Literal["ours", "published", "musique"]
    rounds: int
    seeds: Literal["named", "nearest"]
    sentences: int
    similar_names: float | None
    skip_types: tuple[str, ...] | list[str]
    threshold: float


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


class RaptorSettings(TypedDict, total=False):
    """Settings of `raptor`."""

    ann_threshold: int | None
    clustering: Literal["leiden", "paper"]
    depth: int
    hierarchy: bool
    max_cluster_tokens: int
    preset: Literal["ours", "published"]
    ranker: Literal["dense", "bm25", "tfidf", "hybrid", "late"]
    stop_rule: Literal["default", "official", "none"]
    summary_tokens: int
    traversal: int | None


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


class SireragSettings(TypedDict, total=False):
    """Settings of `sirerag`."""

    ann_threshold: int | None
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


class RecipeSettings(TypedDict, total=False):
    """Settings of all recipes but those that are called like arguments of `Index`."""

    abstractor: Literal["greedy", "neural"]
    ann_threshold: int | None
    assign: Literal["softmax", "sigmoid"]
    base: Literal["dense", "bm25", "hybrid", "pagerank", "mix_recall", "sire", "iier"] | Ranker
    base_store: Literal["aku", "chunks", "any"]
    boilerplate: bool
    bridge_tokens: int | None
    bring: bool
    cap: Literal["third"] | int | None
    cap_order: Literal["facts", "first"]
    cap_tokens: int | None
    checkpoint: str
    chunks: int
    clustering: Literal["leiden", "paper"]
    context_tokens: int
    context_weight: float
    copy_share: float | None
    cosine_weight: float
    cross: Literal["none", "replace", "add"]
    cross_encoder: str
    damping: float
    decay: float
    dense_hits: int
    dense_power: float
    dense_share: float
    depth: int | None
    disambiguate: bool
    diversity: float
    drift: float
    dup_facts: Literal["drop", "keep"]
    edge_weight: Literal["strength", "binary"]
    entities: int
    entity_hops: int
    entity_key: Literal["norm", "lower", "exact"]
    entity_source: Literal["all", "extracted", "triples"]
    entity_types: str
    epochs: int
    exact_below: int
    expand: Literal["nearby", "ppr", "none"]
    extract_tokens: int
    fallback_seeds: int
    fanout: int | None
    fill: bool
    first: int
    fusion: Literal["vote", "priority"]
    hierarchy: bool
    hop_decay: float
    hub_floor: int
    index_units: bool
    info: bool
    information: Literal["mi", "nmi"]
    instruction: str
    k_b: int | None
    kappa: int
    keywords: Literal["model", "rules"]
    kw_df_cap: int
    kw_min: int
    levels: int
    link: Literal["triple", "phrase", "name"] | bool
    links: Literal["union", "mutual"]
    literals: bool
    loss: Literal["se", "modularity"]
    max_cluster_tokens: int
    max_df: float
    max_docs: int
    max_facts: int
    max_length: int
    max_names: int | None
    max_pairs: int
    max_passages_per_name: int
    min_passages: int
    mu: float | None
    n_sim: int
    nest: Literal["chain", "repair"]
    order: Literal["score", "chain", "iterative", "shuffle"]
    overlap: float
    passage_nodes: bool
    passage_ratio: float
    passage_weight: float
    per_step: bool
    perspective: int | str
    phrases: int
    polish: int
    pool: int
    preset: Literal["ours", "published", "chains", "workable", "musique", "graph", "code"]
    ranker: Literal["dense", "bm25", "tfidf", "hybrid", "late"]
    rarity: float
    read_steps: int
    recognition: Literal["model", "none"]
    relation_hops: int
    relations: int
    report_tokens: int
    rerank: str
    rerank_characters: int
    rerank_model: str
    rerank_ms: int
    rerank_named: int
    rerank_pool: int
    rerank_weight: float
    rounds: int
    scorer: Literal["neural", "heuristic", "llm", "random"]
    seed_lift: float
    seed_match: Literal["strict", "keyword_then_text"]
    seed_rarity: float
    seeds: Literal["named", "nearest"]
    sentences: int
    shared_word: bool
    similar_names: float | None
    similar_seeds: int
    singleton_rule: Literal["safe", "code", "paper"]
    sizes: tuple[int, ...] | list[int] | None
    skip_types: tuple[str, ...] | list[str]
    split_tokens: int | None
    stage1: Literal["qa", "summary", "chunks"]
    stage2: bool
    step_lift: float
    stop_rule: Literal["default", "official", "none"]
    summaries: Literal["none", "lazy", "eager"]
    summary_tokens: int
    synonyms: float
    tau: int
    threshold: float
    title_keywords: bool
    title_weight: float
    top_up: bool
    traversal: int | None
    triples: int
    use_kw: bool
    use_sim: bool
    use_struc: bool
    variant: Literal["full", "A", "B", "C", "D", "E"]
    views: Literal["all", "relations"]
    vote: Literal["count", "similarity"]
