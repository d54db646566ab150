"""`SearchOptions`: the options of a search, and their check before the first one."""

from __future__ import annotations

from typing import Any, TypedDict

from sire_core.arguments import check_choice
from sire_core.errors import ConfigurationError, QueryError, SireError
from sire_core.filters import FilterLike, parse_filter
from sire_core.search.validity import Day, read_day

RETURNS = ("passages", "units")
"""Results of a search: the user's passages, or units of the pool as they are (summaries, aggregates, reports too)."""


class SearchOptions(TypedDict, total=False):
    """Options of a search; see `Index.search`."""

    filter: FilterLike
    returns: str
    as_of: Day


def check_returns(returns: Any) -> None:
    """Refuse what a search cannot return."""
    check_choice("returns", returns, RETURNS)


def check_count(name: str, number: Any, error: type[SireError] = QueryError) -> None:
    """Refuse what is no number of hits or tokens."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise error(f"{name} must be a whole number of at least 1, not {number!r}.")


def check_search_options(
    *, filter: FilterLike = None, returns: str = "passages", as_of: Day = None, **counts: int | None
) -> None:
    """Refuse options of later searches; `counts` are numbers of hits or tokens by name, None for all."""
    parse_filter(filter)
    check_returns(returns)
    if as_of is not None:
        read_day(as_of)
    for name, number in counts.items():
        if number is not None:
            check_count(name, number, ConfigurationError)
