"""Fields of a passage beside its metadata: its document's id, its own and its title, unless metadata say otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sire_core.filters.conditions import Condition

if TYPE_CHECKING:
    from sire_core.filters.conditions import Filter

__all__ = [
    "DOCUMENT_KEYS",
    "FIELDS",
    "PASSAGE_KEYS",
    "TITLE",
    "asks_for_fields",
    "conditions",
    "filtered_title",
    "passes",
]

DOCUMENT_KEYS = ("doc_id", "document_id", "ref_doc_id", "id")
"""Names of a document's id: ours, those of LlamaIndex's stores, and that of LangChain's documents."""

PASSAGE_KEYS = ("passage_id", "node_id")
TITLE = "title"
FIELDS = (*DOCUMENT_KEYS, *PASSAGE_KEYS, TITLE)


def asks_for_fields(where: Filter) -> bool:
    """Whether a filter names a key that may stand for a field."""
    return any(condition.key in FIELDS for condition in conditions(where))


def filtered_title(of_document: str, own: str) -> str:
    """The title that filters compare: the document's, which stands for all of it; a passage's own where it has none.

    So a filter that keeps a document out by its title keeps all of it out, however its passages are called.
    """
    return of_document or own


def passes(where: Filter, passages: Iterable[tuple[Mapping[str, Any], str, str, str]]) -> Iterator[bool]:
    """Whether each passage passes a filter.

    Args:
        where: The filter.
        passages: Metadata, document id, own id and `filtered_title` of each.
    """
    named = asks_for_fields(where)
    return (where.matches(_with_fields(*passage) if named else passage[0]) for passage in passages)


def _with_fields(metadata: Mapping[str, Any], document: str, passage: str, title: str) -> dict[str, Any]:
    """Metadata with the fields; a key that it has itself keeps its value, and no title is none."""
    fields = {**dict.fromkeys(DOCUMENT_KEYS, document), **dict.fromkeys(PASSAGE_KEYS, passage)}
    return {**fields, **({TITLE: title} if title else {}), **metadata}


def conditions(where: Filter) -> Iterator[Condition]:
    """All comparisons of a filter."""
    if isinstance(where, Condition):
        yield where
        return
    for part in where.parts:
        yield from conditions(part)
