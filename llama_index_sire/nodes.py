"""Units and hits of the core as LlamaIndex nodes, and nodes of any retriever as hits to reason over."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeRelationship, NodeWithScore, ObjectType, RelatedNodeInfo, TextNode

from llama_index_sire.calls import call, overrides
from llama_index_sire.documents import NODE_KEY, HitMetadata, own_metadata, read_about
from sire_core.reason import RetrieverSource
from sire_core.reason.searchers import ForeignHit, foreign_hit
from sire_core.types import Hit, Unit, UnitKind, to_uuid

PROVENANCE_KEYS = ("sire_kind", "sire_level", "sire_doc_ids", "sire_chunk_ids", "sire_differing", "sire_path")
"""Metadata keys that we add: kind, level, JSON texts, and the path of a hit. Neither embedded nor shown to models."""

_LEAST = 1e-6
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make one per call


def to_node(
    unit: Unit, doc_ids: Sequence[str], metadata: Mapping[str, Any] | None = None, *, own_id: bool = False
) -> TextNode:
    """Convert a unit into a node of its own; every call makes a new one."""
    return _node(unit, doc_ids, metadata, own_id=own_id, added=_provenance(unit, doc_ids))


def passage_node(unit: Unit, doc_ids: Sequence[str], metadata: Mapping[str, Any]) -> TextNode:
    """A passage as the node that it was, with its id, metadata, positions, relationships and hash."""
    return _node(unit, doc_ids, metadata, own_id=True, added={})


def _provenance(unit: Unit, doc_ids: Sequence[str]) -> dict[str, Any]:
    return {
        "sire_kind": unit.kind.value,
        "sire_level": unit.level,
        "sire_doc_ids": _encode(doc_ids),
        "sire_chunk_ids": _encode(unit.chunk_ids),
    }


def _node(
    unit: Unit, doc_ids: Sequence[str], metadata: Mapping[str, Any] | None, *, own_id: bool, added: Mapping[str, Any]
) -> TextNode:
    """See `to_node`; `added` are items of its metadata that models and embedders do not see."""
    is_passage, name = unit.kind is UnitKind.CHUNK, to_uuid(unit.id)
    metadata_ = dict(unit.metadata) if metadata is None and is_passage else dict(metadata or {})
    node, about = read_about(metadata_.pop(NODE_KEY, "{}"))
    own = own_metadata(metadata_, about)
    metadata_ = own if own_id else metadata_  # a vector store takes what JSON has
    related = about.pop("relationships", {}) if is_passage else {}
    if not is_passage:
        node = TextNode
        about = {key: value for key, value in about.items() if key.startswith("excluded")}
        if unit.title:
            metadata_["title"] = unit.title
    source = related.pop(NodeRelationship.SOURCE, None)
    if is_passage and doc_ids and (source is None or source.node_id != doc_ids[0]):
        source = RelatedNodeInfo(node_id=doc_ids[0], node_type=ObjectType.DOCUMENT)
    elif source is None:  # `delete(ref_doc_id)` of a store must reach it; without SOURCE it would stay
        source = RelatedNodeInfo(node_id=name, node_type=ObjectType.TEXT)
    hidden = {
        key: [*about.pop(key, ()), *(PROVENANCE_KEYS if added else ())]
        for key in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
    }
    return node(
        id_=unit.source_id if own_id and unit.source_ids else name,
        text=unit.text,
        metadata={**metadata_, **added},
        relationships={**related, NodeRelationship.SOURCE: source},
        **hidden,
        **about,
    )


def to_scored_node(hit: Hit) -> NodeWithScore:
    """Convert a hit: a passage as the node that it was, with its id, metadata, places, relationships and hash."""
    node = passage_node(hit.unit, hit.doc_ids, hit.metadata)
    about = _provenance(hit.unit, hit.doc_ids)
    differing = {key: list(values) for key, values in hit.differing.items() if key != NODE_KEY}
    if differing:
        about["sire_differing"] = _encode(differing)
    about["sire_path"] = "\n".join(step.note for step in hit.path)
    node.__dict__["metadata"] = HitMetadata(node.metadata, about)  # an assignment would make a plain dict of it
    return NodeWithScore(node=node, score=max(float(hit.score), _LEAST))


def retriever_source(retriever: BaseRetriever) -> RetrieverSource:
    """A retriever as something to reason over; its own settings say how many nodes it gives."""

    async def retrieve(query: str, _: int) -> Sequence[Hit]:
        is_async = overrides(retriever, BaseRetriever, "_aretrieve")
        nodes = await call(retriever.retrieve, retriever.aretrieve, query, is_async=is_async)
        scored = all(node.score is not None and math.isfinite(node.score) for node in nodes)
        return [_hit(node, node.score if scored else None, rank) for rank, node in enumerate(nodes, 1)]

    return RetrieverSource(retrieve, type(retriever).__name__)


def node_of(hit: Hit) -> NodeWithScore:
    """A hit as a node: a copy of the one that the retriever gave, where it was not ours."""
    if isinstance(hit, ForeignHit):
        return NodeWithScore(node=hit.original.node.model_copy(deep=True), score=float(hit.score))
    return to_scored_node(hit)


def _hit(scored_node: NodeWithScore, score: float | None, rank: int) -> Hit:
    node = scored_node.node
    source, text = node.metadata.get("file_name") or node.ref_doc_id, node.get_content(MetadataMode.NONE)
    score = 1.0 / rank if score is None else score
    return foreign_hit(node.node_id, text, node.metadata.get("title"), str(source or ""), score, scored_node)
