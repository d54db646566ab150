"""Evidence chains as pure functions: seeds by greedy set cover, and the order in which passages are read (IIER)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Reads(Protocol):
    """An array, or what gives some of its numbers as an array does."""

    def __getitem__(self, nodes: Any, /) -> Any:
        """The numbers of some nodes."""


__all__ = ["FORMATS", "arrange_chains", "greedy_cover"]


def greedy_cover(holders: Sequence[NDArray[np.int64]], similarity: Reads) -> tuple[list[int], list[tuple[int, ...]]]:
    """Choose the node that holds most of the open keywords, again and again, until no keyword can be covered.

    Not the smallest cover, as the paper's text suggests, but at most ln(keywords) + 1 times as large.

    Args:
        holders: Nodes that hold each keyword, each node once.
        similarity: Of every node, `[n]`, or what is read like it; breaks ties, then the smaller node number does.

    Returns:
        The nodes in the order in which they were chosen, and the keywords that each was chosen for.
    """
    open_ = [number for number, nodes in enumerate(holders) if len(nodes)]
    seeds: list[int] = []
    covers: list[tuple[int, ...]] = []
    while open_:
        nodes, counts = np.unique(np.concatenate([holders[number] for number in open_]), return_counts=True)
        most = nodes[counts == counts.max()]
        best = int(most[np.argmax(similarity[most])])
        covered = tuple(number for number in open_ if best in holders[number])
        seeds.append(best)
        covers.append(covered)
        open_ = [number for number in open_ if number not in covered]
    return seeds, covers


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
