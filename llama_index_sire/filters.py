"""From LlamaIndex's metadata filters to ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from sire_core.errors import ConfigurationError
from sire_core.filters import Condition, Filter, Group, parse_filter

__all__ = ["FilterLike", "both_filters", "to_filter"]

FilterLike = Union[MetadataFilters, Filter, Mapping[str, Any], str, None]
"""LlamaIndex's `MetadataFilters`, or what the core reads: a mapping, a text such as `year>1990`, a `Filter`."""

_PLAIN = {FilterOperator.EQ: "eq", FilterOperator.NE: "ne", FilterOperator.GT: "gt", FilterOperator.LT: "lt"}
_SUPPORTED = "==, !=, >, >=, <, <=, in, nin, and the conditions and, or, not"


def both_filters(first: FilterLike, second: FilterLike) -> Filter | None:
    """Both have to hold: what an agent asks for never widens what a retriever may see."""
    parts = tuple(part for part in (to_filter(first), to_filter(second)) if part is not None)
    return _group("and", parts) if parts else None


def to_filter(filters: FilterLike) -> Filter | None:
    """Translate metadata filters; nested ones too. They look at the metadata of the passages.

    A passage without the key fails every comparison but `!=` and `nin`, as in LlamaIndex's own stores.

    Raises:
        ConfigurationError: An operator has no counterpart (`any`, `all`, `contains`, `text_match` ...), or a value does
            not go with its operator.
    """
    if not isinstance(filters, MetadataFilters):
        return parse_filter(filters)
    given: list[Any] = list(filters.filters)
    # An empty group inside another one restricts nothing, so it is left out.
    translated = [to_filter(part) if isinstance(part, MetadataFilters) else _condition(part) for part in given]
    parts = tuple(part for part in translated if part is not None)
    if not parts:
        return None
    condition = filters.condition or FilterCondition.AND
    if condition is FilterCondition.NOT:
        return Group("not", (_group("or", parts),))  # none of them may hold, as LlamaIndex reads it
    return _group("or" if condition is FilterCondition.OR else "and", parts)


def _group(operator: str, parts: tuple[Filter, ...]) -> Filter:
    return parts[0] if len(parts) == 1 else Group(operator, parts)


def _condition(given: MetadataFilter) -> Filter:
    key, value, operator = given.key, given.value, given.operator
    if operator in _PLAIN:
        return Condition(key, _PLAIN[operator], value)
    if operator in (FilterOperator.GTE, FilterOperator.LTE):
        strict = "gt" if operator is FilterOperator.GTE else "lt"
        return Group("or", (Condition(key, strict, value), Condition(key, "eq", value)))
    if operator in (FilterOperator.IN, FilterOperator.NIN):
        if not isinstance(value, list):
            raise ConfigurationError(f"The operator {operator.value!r} on {key!r} takes a list, not {value!r}.")
        one_of = Condition(key, "in", tuple(value))
        return one_of if operator is FilterOperator.IN else Group("not", (one_of,))
    raise ConfigurationError(
        f"The operator {operator.value!r} on {key!r} is not supported; use {_SUPPORTED}. "
        "For anything else filter the nodes after retrieval."
    )
