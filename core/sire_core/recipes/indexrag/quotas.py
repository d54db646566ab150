"""Quotas by group over a ranked list: balanced selection and its generalisation (IndexRAG)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Band", "choose"]


@dataclass(frozen=True, slots=True)
class Band:
    """How much of a context one group may and must take.

    Attributes:
        low: Entries of the group that get a place as long as the ranking has them.
        high: Most entries; None for no bound, 0 leaves the group out.
        max_tokens: Most tokens of all its entries together; None for no bound.
    """

    low: int = 0
    high: int | None = None
    max_tokens: int | None = None


def choose(
    groups: Sequence[str],
    k: int,
    bands: Mapping[str, Band],
    tokens: Callable[[int], int] = lambda _: 0,
) -> list[int]:
    """Walk a ranking and accept what its group's band allows, until `k` entries are accepted.

    With one band `[0, k_b]` for bridging facts this is Algorithm 1 of IndexRAG. An entry is accepted if its group is
    below `high` and either below its own `low` or not in need of a place that another group's `low` still claims.

    Args:
        groups: Group of each entry, best first.
        k: How many entries are wanted.
        bands: By group; groups without one are unbounded.
        tokens: Length of an entry; only asked for groups with `max_tokens`.

    Returns:
        Accepted indices in the order of the ranking; fewer than `k` when the bands leave no more.
    """
    accepted: list[int] = []
    counts: dict[str, int] = {}
    spent: dict[str, int] = {}
    claimed = sum(band.low for band in bands.values())
    for i, group in enumerate(groups):
        if len(accepted) >= k:
            break
        band, count = bands.get(group, _FREE), counts.get(group, 0)
        owed = max(0, band.low - count)
        if (band.high is not None and count >= band.high) or (not owed and k - len(accepted) <= claimed):
            continue
        if band.max_tokens is not None:
            length = spent.get(group, 0) + tokens(i)
            if length > band.max_tokens:
                continue
            spent[group] = length
        accepted.append(i)
        counts[group] = count + 1
        claimed -= bool(owed)
    return accepted


_FREE = Band()
