"""LlamaIndex documents and nodes as documents of the core."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode

from sire_core.errors import CorpusError
from sire_core.types import Document

__all__ = ["EXCLUDED_KEY", "to_documents"]

EXCLUDED_KEY = "sire_excluded"
"""Metadata key under which the user's lists of excluded metadata keys travel through the core."""


def to_documents(nodes: BaseNode | Iterable[BaseNode], title_key: str = "title") -> list[Document]:
    """Convert documents, or nodes that a splitter cut from documents.

    A document keeps its id, text and metadata. Nodes with a source are passages of that source, in the given order,
    with the metadata that all of them share. The caller's objects are not touched.

    Args:
        nodes: Documents or text nodes, or one of them.
        title_key: Metadata key that holds the title.

    Raises:
        CorpusError: Something is no node.
    """
    groups: dict[str, list[BaseNode]] = {}
    for node in [nodes] if isinstance(nodes, BaseNode) else nodes:
        if not isinstance(node, BaseNode):
            raise CorpusError(f"Expected LlamaIndex documents or nodes, not {type(node).__name__}.")
        groups.setdefault(node.ref_doc_id or node.node_id, []).append(node)
    return [_document(name, group, title_key) for name, group in groups.items()]


def _document(name: str, group: list[BaseNode], title_key: str) -> Document:
    first = group[0]
    texts = [node.get_content(metadata_mode=MetadataMode.NONE) for node in group]
    metadata = {key: value for key, value in first.metadata.items() if _shared(key, value, group)}
    title = metadata.get(title_key)
    excluded = {"embed": first.excluded_embed_metadata_keys, "llm": first.excluded_llm_metadata_keys}
    plain = plain_metadata(metadata)
    if any(excluded.values()):
        plain[EXCLUDED_KEY] = json.dumps(excluded)
    split = len(group) > 1 or first.ref_doc_id is not None
    return Document(
        id=name,
        text="" if split else texts[0],
        title=title if isinstance(title, str) else "",
        metadata=plain,
        chunks=tuple(texts) if split else (),
    )


def _shared(key: str, value: Any, group: list[BaseNode]) -> bool:
    return all(key in node.metadata and node.metadata[key] == value for node in group[1:])


def plain_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with NumPy's numbers as Python's; vector stores and caches write JSON and refuse the former."""
    return {key: _plain(value) for key, value in metadata.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain_metadata(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=str)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    return value
