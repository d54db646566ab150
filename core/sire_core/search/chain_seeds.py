"""Where the chains of a question start (IIER section 3.2; ALGORITHMS 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.set_cover import greedy_cover
from sire_core.search.ranking import best_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, FloatArray
    from sire_core.search.chain_keywords import KeywordFinder

__all__ = ["Seeds", "find_seeds"]


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where chains start, and why.

    Attributes:
        nodes: Node of each seed.
        keywords: Keywords of the question that each was chosen for; none for a seed chosen by similarity.
        asked: All keywords of the question, at most 64.
        coverage: Bit set of the keywords that a node holds, uint64 `[n]`.
        fallback: Whether no passage holds any keyword, so that similarity alone chose.
    """

    nodes: Sequence[int]
    keywords: Sequence[Sequence[str]]
    asked: Sequence[str]
    coverage: NDArray[np.uint64]
    fallback: bool


def find_seeds(
    asked: Sequence[str],
    finder: KeywordFinder,
    cosines: FloatArray,
    allowed: BoolArray | None,
    fallback: int = 3,
    similar: int = 0,
) -> Seeds:
    """Cover the question's keywords greedily; the most similar passages where there is nothing to cover.

    Args:
        asked: Keywords of the question, at most 64.
        finder: Knows who holds them.
        cosines: Of the question with every node, `[n]`.
        allowed: Nodes that may be seeds, `[n]`; None for all.
        fallback: How many seeds when no keyword is held by anybody.
        similar: So many of the most similar passages are seeds in any case, behind the others.
    """
    holders = [finder.holders(keyword) for keyword in asked]
    coverage = np.zeros(len(cosines), dtype=np.uint64)
    for number, nodes in enumerate(holders):
        coverage[nodes] |= np.uint64(1 << number)
    seeds, covers = greedy_cover(holders, cosines)
    keywords = [tuple(asked[number] for number in cover) for cover in covers]
    nearest = best_first(
        cosines if allowed is None else np.where(allowed, cosines, -np.inf).astype(np.float32),
        similar if seeds else max(fallback, similar),
    )
    extra = [node for node in nearest.tolist() if node not in seeds]
    return Seeds([*seeds, *extra], [*keywords, *(() for _ in extra)], asked, coverage, not seeds)
