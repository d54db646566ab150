"""Units of the core as LlamaIndex nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import NodeRelationship, NodeWithScore, ObjectType, RelatedNodeInfo, TextNode

from llama_index_sire.documents import EXCLUDED_KEY
from sire_core.storage.uuids import to_uuid
from sire_core.types import Hit, Unit, UnitKind

__all__ = ["PROVENANCE_KEYS", "to_node", "to_scored_node"]

PROVENANCE_KEYS = ("sire_kind", "sire_level", "sire_doc_ids", "sire_chunk_ids")
"""Metadata keys that we add: kind, level, and the sources as JSON lists. Neither embedded nor shown to models."""

_LEAST = 1e-6
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make one per call


def to_node(unit: Unit, doc_ids: Sequence[str], shared: Mapping[str, Any] | None = None) -> TextNode:
    """Convert a unit into a node of its own; every call makes a new one. Its id is the unit's as a UUID.

    A passage has its document as SOURCE. Anything derived has its own id as SOURCE: it stands on many documents, and
    `delete(ref_doc_id)` of a vector store has to reach it (a node without SOURCE is stored under `"None"` and stays).

    Args:
        unit: What to convert.
        doc_ids: Documents it stands on, best first.
        shared: Metadata for a derived unit: what all of its documents have in common.
    """
    is_passage, name = unit.kind is UnitKind.CHUNK, to_uuid(unit.id)
    metadata = dict(unit.metadata) if is_passage else dict(shared or {})
    excluded = json.loads(metadata.pop(EXCLUDED_KEY)) if EXCLUDED_KEY in metadata else {}
    if not is_passage and unit.title:
        metadata["title"] = unit.title
    metadata.update(
        sire_kind=unit.kind.value,
        sire_level=unit.level,
        sire_doc_ids=_encode(doc_ids),
        sire_chunk_ids=_encode(unit.chunk_ids),
    )
    source = (
        RelatedNodeInfo(node_id=doc_ids[0], node_type=ObjectType.DOCUMENT)
        if is_passage and doc_ids
        else RelatedNodeInfo(node_id=name, node_type=ObjectType.TEXT)
    )
    return TextNode(
        id_=name,
        text=unit.text,
        metadata=metadata,
        excluded_embed_metadata_keys=[*excluded.get("embed", ()), *PROVENANCE_KEYS],
        excluded_llm_metadata_keys=[*excluded.get("llm", ()), *PROVENANCE_KEYS],
        relationships={NodeRelationship.SOURCE: source},
    )


def to_scored_node(hit: Hit) -> NodeWithScore:
    """Convert a hit. Scores stay as they are, but never zero or below: LlamaIndex reads a score of 0.0 as 1.0."""
    return NodeWithScore(node=to_node(hit.unit, hit.doc_ids), score=max(float(hit.score), _LEAST))
