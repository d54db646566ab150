"""From LlamaIndex's metadata filters to ours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Union

from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from sire_core.errors import ConfigurationError
from sire_core.filters import Condition, Filter, FilterGroup, both, condition, parse_filter
from sire_core.types import from_uuid, to_uuid

FilterLike = Union[MetadataFilters, Filter, Mapping[str, Any], str, None]
"""LlamaIndex's `MetadataFilters`, or what the core reads: a mapping, a text such as `year>1990`, a `Filter`."""


def both_filters(first: FilterLike, second: FilterLike) -> Filter | None:
    """Both have to hold: what an agent asks for never widens what a retriever may see."""
    return both(to_filter(first), to_filter(second))


def within(filters: FilterLike, doc_ids: Collection[str] | None, node_ids: Collection[str] | None) -> FilterLike:
    """A filter that also lets through nothing but some documents, and some nodes; as it is without any."""
    for name, key, ids in (("doc_ids", "ref_doc_id", doc_ids), ("node_ids", "passage_id", node_ids)):
        if isinstance(ids, str):
            raise ConfigurationError(f"{name} is a list of ids, not a text: {name}=[{ids!r}].")
        if ids is not None:
            filters = both_filters(filters, Condition(key, "in", passage_ids(ids) if key == "passage_id" else ids))
    return filters


def passage_ids(node_ids: Iterable[str]) -> list[str]:
    """Ids of passages from those of nodes; nodes that were cut here have the index's own ids, as UUIDs."""
    ids = list(node_ids)
    return [*ids, *(ours for node in ids if to_uuid(ours := from_uuid(node)) == node)]


def to_filter(filters: FilterLike) -> Filter | None:
    """Translate metadata filters; nested ones too. They look at the metadata of the documents.

    A document without the key fails every comparison but `!=`, `nin` and `is_empty`, as in LlamaIndex's own stores.

    Raises:
        ConfigurationError: There is no condition in it, an operator has no counterpart, or a value does not go with
            its operator.
    """
    return _translated(filters) if isinstance(filters, MetadataFilters) else parse_filter(filters)


def _translated(filters: MetadataFilters) -> Filter:
    conditions: list[Any] = list(filters.filters)
    if not conditions:
        raise ConfigurationError("MetadataFilters without a filter. To search everything pass filters=None.")
    parts = tuple(_translated(part) if isinstance(part, MetadataFilters) else _condition(part) for part in conditions)
    wanted = filters.condition or FilterCondition.AND
    if wanted is FilterCondition.NOT:
        return FilterGroup("not", (FilterGroup("or", parts),))  # none of them may hold, as LlamaIndex reads it
    return parts[0] if len(parts) == 1 else FilterGroup("or" if wanted is FilterCondition.OR else "and", parts)


def _condition(entry: MetadataFilter) -> Filter:
    empty = entry.operator is FilterOperator.IS_EMPTY  # takes no value in LlamaIndex
    return condition(entry.key, entry.operator.value, True if empty else entry.value)
