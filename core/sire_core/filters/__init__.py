"""Filters on the metadata of passages: `parse_filter` parses them into `Condition` and `FilterGroup`."""

from sire_core.filters.conditions import Condition as Condition
from sire_core.filters.conditions import Filter as Filter
from sire_core.filters.conditions import FilterGroup as FilterGroup
from sire_core.filters.conditions import FilterLike as FilterLike
from sire_core.filters.conditions import both as both
from sire_core.filters.conditions import comparable as comparable
from sire_core.filters.conditions import condition as condition
from sire_core.filters.conditions import filter_mapping as filter_mapping
from sire_core.filters.conditions import filter_text as filter_text
from sire_core.filters.conditions import parse_filter as parse_filter
