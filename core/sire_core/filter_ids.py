"""Ids in filters: a passage has its document's id and its own beside its metadata, unless these say otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sire_core.filters import Condition

if TYPE_CHECKING:
    from sire_core.filters import Filter

__all__ = ["DOCUMENT_KEYS", "ID_KEYS", "PASSAGE_KEYS", "asks_for_ids", "conditions", "passes", "with_ids"]

DOCUMENT_KEYS = ("doc_id", "document_id", "ref_doc_id", "id")
"""Names of a document's id: ours, those of LlamaIndex's stores, and that of LangChain's documents."""

PASSAGE_KEYS = ("passage_id", "node_id")
ID_KEYS = (*DOCUMENT_KEYS, *PASSAGE_KEYS)


def with_ids(metadata: Mapping[str, Any], document: str, passage: str) -> dict[str, Any]:
    """Metadata of a passage with its ids; a key that it has itself keeps its value."""
    return {**dict.fromkeys(DOCUMENT_KEYS, document), **dict.fromkeys(PASSAGE_KEYS, passage), **metadata}


def asks_for_ids(where: Filter, keys: Collection[str] = ID_KEYS) -> bool:
    """Whether a filter names a key that may stand for an id."""
    return any(condition.key in keys for condition in conditions(where))


def passes(where: Filter, passages: Iterable[tuple[Mapping[str, Any], str, str]]) -> Iterator[bool]:
    """Whether each passage passes a filter.

    Args:
        where: The filter.
        passages: Metadata, document id and own id of each.
    """
    named = asks_for_ids(where)
    return (where.matches(with_ids(found, document, own) if named else found) for found, document, own in passages)


def conditions(where: Filter) -> Iterator[Condition]:
    """All comparisons of a filter."""
    if isinstance(where, Condition):
        yield where
        return
    for part in where.parts:
        yield from conditions(part)
