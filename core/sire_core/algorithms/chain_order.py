"""In which order the passages of evidence chains are read (IIER section 4.5.1; ALGORITHMS 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["FORMATS", "arrange_chains"]

FORMATS = ("chain", "iterative", "shuffle")
"""Chain after chain; first members of all chains, then second members, ..; any order."""

Node = TypeVar("Node")


def arrange_chains(
    chains: Sequence[Sequence[Node]], form: str = "chain", rng: np.random.Generator | None = None
) -> list[list[Node]]:
    """Put the members of chains in reading order (oracle I7).

    Args:
        chains: Members of each chain, in order.
        form: One of `FORMATS`.
        rng: Shuffles; needed for `shuffle` only.

    Returns:
        For `chain` one list per chain, members that chains share in each of them; for the others one list in which
        every member stands once, at its first occurrence.

    Raises:
        ConfigurationError: Unknown form, or nothing to shuffle with.
    """
    if form == "chain":
        return [list(members) for members in chains]
    if form == "iterative":
        longest = max(map(len, chains), default=0)
        steps = (members[place] for place in range(longest) for members in chains if place < len(members))
        return [list(dict.fromkeys(steps))]
    if form != "shuffle":
        raise ConfigurationError(f"Chains are read as one of {', '.join(FORMATS)}, not {form!r}.")
    if rng is None:
        raise ConfigurationError("Shuffling needs a random generator.")
    members = list(dict.fromkeys(chain.from_iterable(chains)))
    return [[members[i] for i in rng.permutation(len(members)).tolist()]]
