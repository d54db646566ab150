"""Filters on the metadata of passages: `parse_filter` parses them into `Condition` and `FilterGroup`."""

from sire_core.filters.conditions import (
    Condition,
    Filter,
    FilterGroup,
    FilterLike,
    both,
    comparable,
    condition,
    filter_mapping,
    filter_text,
    parse_filter,
)

__all__ = [
    "Condition",
    "Filter",
    "FilterGroup",
    "FilterLike",
    "both",
    "comparable",
    "condition",
    "filter_mapping",
    "filter_text",
    "parse_filter",
]
