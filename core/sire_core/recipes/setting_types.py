"""Settings of all recipes as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict

from sire_core.protocols import Ranker


class RecipeSettings(TypedDict, total=False):
    """Settings of all recipes but those that are called like arguments of `Index`."""

    abstractor: Literal["greedy", "neural"]
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
    preset: Literal["ours", "published", "chains", "workable", "musique", "code", "graph"]
    ranker: Literal["dense", "bm25", "tfidf", "hybrid", "late"]
    rarity: float
    read_steps: int
    recognition: Literal["model", "none"]
    relation_hops: int
    relations: int
    repeated: Literal["highest", "sum"]
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


class AnyRecipeSettings(RecipeSettings, total=False):
    """Settings of all recipes."""

    extraction: Literal["vector", "llm"]
    seed: int
