"""Greedy set cover: few nodes that together hold all keywords of a question (IIER section 3.2; ALGORITHMS 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["greedy_cover"]


def greedy_cover(
    holders: Sequence[NDArray[np.int64]], similarity: NDArray[np.float32]
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Choose the node that holds most of the open keywords, again and again, until no keyword can be covered.

    Not the smallest cover, as the paper's text suggests, but at most ln(keywords) + 1 times as large.

    Args:
        holders: Nodes that hold each keyword, each node once.
        similarity: Of every node, `[n]`; breaks ties, then the smaller node number does.

    Returns:
        The nodes in the order in which they were chosen, and the keywords that each was chosen for.
    """
    open_ = [number for number, nodes in enumerate(holders) if len(nodes)]
    seeds: list[int] = []
    covers: list[tuple[int, ...]] = []
    while open_:
        nodes, counts = np.unique(np.concatenate([holders[number] for number in open_]), return_counts=True)
        best = int(nodes[np.lexsort((nodes, -similarity[nodes], -counts))[0]])
        covered = tuple(number for number in open_ if best in holders[number])
        seeds.append(best)
        covers.append(covered)
        open_ = [number for number in open_ if number not in covered]
    return seeds, covers
