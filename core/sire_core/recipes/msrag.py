"""`msrag`: entities, relations and passages recalled together (MS-RAG; ALGORITHMS 5)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.organize.knowledge_graph import KnowledgeGraph
from sire_core.recipes.base import Recipe, configure, register

if TYPE_CHECKING:
    from sire_core.protocols import Selector

__all__ = ["MsragConfig", "msrag"]


@dataclass(frozen=True, slots=True)
class MsragConfig:
    """Settings of `msrag`; see `MixRecall`, `Rerank` and `KnowledgeGraph`.

    `vote="count", hop_decay=1.0, fanout=None, link=False` is the paper's letter; `fusion="priority", rerank="none"` its
    row without rerank; `entities=0, relations=0` its row without the graph; `expand="ppr"` and `extraction="llm"` rows
    of Table 7; `disambiguate=False` Table 13.

    Attributes:
        entities: Entities recalled (lambda 1).
        relations: Relations recalled (lambda 2).
        chunks: Passages recalled (lambda 3).
        entity_hops: How far entities are expanded.
        relation_hops: How far relations are expanded (lambda h).
        fanout: Relations kept at every hop; None keeps all.
        vote: `count` or `similarity`.
        hop_decay: What a hop leaves of a vote.
        entity_weight: Worth of an entity's vote.
        relation_weight: Worth of a relation's vote.
        chunk_weight: Worth of a passage's vote.
        fusion: `vote` or `priority`.
        extraction: `vector` or `llm`.
        link: Whether entities that the question names are recalled first; not in the paper.
        expand: `nearby`, `ppr` or `none`.
        rerank: `model` (no change where there is none), `cross_encoder` or `none`.
        rerank_pool: How many passages the model sees (lambda 4).
        cross_encoder: Name or folder of the cross-encoder (sentence-transformers; extra `rerank`).
        disambiguate: Whether aliases are merged.
        similar_names: Names that share a word are merged, too, from this cosine on; None for never.
        summaries: When a language model writes what the passages say about an entity or relation, for answers only:
            `lazy`, when it reaches an answer's prompt; `eager`, when the index is built; `none`.
    """

    entities: int = 5
    relations: int = 10
    chunks: int = 10
    entity_hops: int = 1
    relation_hops: int = 4
    fanout: int | None = 10
    vote: str = "similarity"
    hop_decay: float = 0.5
    entity_weight: float = 1.0
    relation_weight: float = 1.0
    chunk_weight: float = 1.0
    fusion: str = "vote"
    extraction: str = "vector"
    link: bool = True
    expand: str = "nearby"
    rerank: str = "model"
    rerank_pool: int = 5
    cross_encoder: str = ""
    disambiguate: bool = True
    similar_names: float | None = None
    summaries: str = "none"


@register
def msrag(config: MsragConfig | None = None, /, **settings: Any) -> Recipe:
    """MS-RAG: three recalls, neighbours in the graph, votes for passages, and a rerank.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `MsragConfig`.

    Raises:
        ConfigurationError: Unknown setting.
    """
    from sire_core.search.element_background import ElementBackground
    from sire_core.search.mix_recall import MixRecall

    c = configure(MsragConfig, config, settings)
    if c.summaries not in ("none", "lazy", "eager"):
        raise ConfigurationError(f"summaries is 'none', 'lazy' or 'eager', not {c.summaries!r}.")
    return Recipe(
        name="msrag",
        summary="passages elected by similar entities, relations and passages and by their neighbours in the graph",
        paper="MS-RAG",
        organizers=(
            KnowledgeGraph(
                index_units=True,
                disambiguate=c.disambiguate,
                similar_names=c.similar_names,
                summaries=c.summaries == "eager",
            ),
        ),
        ranker=MixRecall(
            entities=c.entities,
            relations=c.relations,
            chunks=c.chunks,
            entity_hops=c.entity_hops,
            relation_hops=c.relation_hops,
            fanout=c.fanout,
            vote=c.vote,
            hop_decay=c.hop_decay,
            entity_weight=c.entity_weight,
            relation_weight=c.relation_weight,
            chunk_weight=c.chunk_weight,
            fusion=c.fusion,
            extraction=c.extraction,
            link=c.link,
            expand=c.expand,
        ),
        selectors=_rerank(c),
        background=None if c.summaries == "none" else ElementBackground(),
        config=asdict(c),
    )


def _rerank(c: MsragConfig) -> tuple[Selector, ...]:
    from sire_core.search.cross_encoder import CrossEncoderRerank
    from sire_core.search.rerank import Rerank

    if c.rerank not in ("model", "cross_encoder", "none"):
        raise ConfigurationError(f"rerank is 'model', 'cross_encoder' or 'none', not {c.rerank!r}.")
    if c.rerank == "cross_encoder":
        return (CrossEncoderRerank(c.cross_encoder, c.rerank_pool),)
    return (Rerank(c.rerank_pool),) if c.rerank == "model" else ()
