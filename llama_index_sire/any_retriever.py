"""Reasoning over any LlamaIndex retriever: nodes as hits, and hits as nodes again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore

from llama_index_sire.calls import call, overrides
from llama_index_sire.nodes import to_scored_node
from sire_core.reason import RetrieverSource
from sire_core.types import Hit, Unit, UnitKind

__all__ = ["node_of", "retriever_source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeHit(Hit):
    """A hit of a retriever that is not ours."""

    node: NodeWithScore


def retriever_source(retriever: BaseRetriever) -> RetrieverSource:
    """A retriever as something to reason over; its own settings say how many nodes it gives.

    Where a node has no score, all of them count by place: 1, 1/2, 1/3 and so on.
    """

    async def retrieve(query: str, _: int) -> Sequence[Hit]:
        is_async = overrides(retriever, BaseRetriever, "_aretrieve")
        nodes = await call(retriever.retrieve, retriever.aretrieve, query, is_async=is_async)
        scored = all(found.score is not None and math.isfinite(found.score) for found in nodes)
        return [_hit(found, found.score if scored else None, place) for place, found in enumerate(nodes, 1)]

    return RetrieverSource(retrieve, type(retriever).__name__)


def node_of(hit: Hit) -> NodeWithScore:
    """A hit as a node: a copy of the one that the retriever gave, where it was not ours."""
    if isinstance(hit, _NodeHit):
        return NodeWithScore(node=hit.node.node.model_copy(deep=True), score=float(hit.score))
    return to_scored_node(hit)


def _hit(found: NodeWithScore, score: float | None, place: int) -> _NodeHit:
    node = found.node
    title = node.metadata.get("title")
    unit = Unit(
        id=node.node_id,
        kind=UnitKind.CHUNK,
        text=node.get_content(MetadataMode.NONE),
        chunk_ids=(node.node_id,),
        title=title if isinstance(title, str) else "",
    )
    # What people and agents are told a passage is from: its file, where it has one.
    source = node.metadata.get("file_name") or node.ref_doc_id or node.node_id
    return _NodeHit(unit=unit, score=1.0 / place if score is None else score, doc_ids=(str(source),), node=found)
