"""`msrag`: entities, relations and passages recalled together (MS-RAG; ALGORITHMS 5)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.organize.knowledge_graph import KnowledgeGraph
from sire_core.recipes.base import Recipe, configure, register

__all__ = ["MsragConfig", "msrag"]


@dataclass(frozen=True, slots=True)
class MsragConfig:
    """Settings of `msrag`; see `MixRecall`, `Rerank` and `KnowledgeGraph`.

    `vote="count", hop_decay=1.0, fanout=None` is the paper's letter; `fusion="priority", rerank="none"` its row
    without rerank; `entities=0, relations=0` its row without the graph; `disambiguate=False` Table 13.

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
        rerank: `model` (no change where there is none) or `none`.
        rerank_pool: How many passages the model sees (lambda 4).
        disambiguate: Whether aliases are merged.
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
    rerank: str = "model"
    rerank_pool: int = 5
    disambiguate: bool = True


@register
def msrag(config: MsragConfig | None = None, /, **settings: Any) -> Recipe:
    """MS-RAG: three recalls, neighbours in the graph, votes for passages, and a rerank.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `MsragConfig`.

    Raises:
        ConfigurationError: Unknown setting.
    """
    from sire_core.search.mix_recall import MixRecall
    from sire_core.search.rerank import Rerank

    c = configure(MsragConfig, config, settings)
    if c.rerank not in ("model", "none"):
        raise ConfigurationError(f"rerank is 'model' or 'none', not {c.rerank!r}.")
    return Recipe(
        name="msrag",
        summary="passages elected by similar entities, relations and passages and by their neighbours in the graph",
        paper="MS-RAG",
        organizers=(KnowledgeGraph(index_units=True, disambiguate=c.disambiguate),),
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
        ),
        selectors=(Rerank(c.rerank_pool),) if c.rerank == "model" else (),
        config=asdict(c),
    )
