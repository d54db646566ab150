"""Passages of a ranking: what a search returns unless units are asked for."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.protocols import Ranking
    from sire_core.search.view import PoolView
    from sire_core.types import Hit, PathStep

__all__ = ["RETURNS", "check_returns", "passage_hits"]

RETURNS = ("passages", "units")
"""What a search returns: the user's passages, or units of the pool as they are (summaries, aggregates, reports too)."""


def check_returns(returns: Any) -> None:
    """Refuse what a search cannot return."""
    if returns not in RETURNS:
        raise ConfigurationError(f"returns is 'passages' or 'units', not {returns!r}.")


async def passage_hits(ranking: Ranking, k: int, view: PoolView) -> list[Hit]:
    """The first `k` distinct passages of a ranking; fewer when it leads to no more.

    A derived unit contributes the passages that it stands on, in the order in which it cites them. A passage keeps the
    place, the score and the path of the unit that brought it first. Scores never increase, also where a selector put a
    unit with a higher score behind another one.
    """
    ranking = getattr(ranking, "of_passages", ranking)
    reach = k
    while True:
        positions, scores = await ranking.top(reach)
        brought: dict[int, tuple[int, float]] = {}
        for position, score in zip(positions.tolist(), scores.tolist(), strict=True):
            for passage in view.passages_of(position, ranking):
                brought.setdefault(passage, (position, score))
            if len(brought) >= k:
                break
        if len(brought) >= k or len(positions) < reach:
            break
        reach *= 2
    hits: list[Hit] = []
    paths: dict[int, tuple[PathStep, ...]] = {}  # of units that bring passages, each worked out once
    for passage, (position, score) in islice(brought.items(), k):
        if passage != position and position not in paths:
            paths[position] = view.path_through(position, ranking)
        least = hits[-1].score if hits else score
        hits.append(view.hit(passage, min(score, least), ranking, paths.get(position)))
    return hits
