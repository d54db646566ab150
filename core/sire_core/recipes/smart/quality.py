"""How informative the trees of a corpus are, and how much they differ (SMART, Table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sire_core.recipes.smart.encoding_tree import one_dimensional_entropy
from sire_core.recipes.smart.partitions import corrected_information, modularity, normalized_mutual_information

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, IntArray
    from sire_core.recipes.smart.finding import Perspective
    from sire_core.recipes.smart.undirected import UndirectedGraph

__all__ = ["describe_trees"]


def describe_trees(
    graph: UndirectedGraph, found: Sequence[Perspective], views: Sequence[UndirectedGraph]
) -> dict[str, Any]:
    """Figures of trees, JSON-serialisable.

    Args:
        graph: Relations between the entities.
        found: Trees over its vertices.
        views: What each of them groups.

    Returns:
        `entities`, `relations` (vertices and edges), `entropy` (H1 in bits); per tree under `trees`: its `view`,
        `clusters` and `modularity` by level, `information` (bits), `entropy` (its H) and `share` (information over
        H1), all in that view; over all trees: `modularity`, the mean over trees at each level, then over levels, `nmi`,
        the mean over levels and pairs of trees, and `corrected_nmi` by level: the mean over pairs of trees, corrected
        for chance, over the largest component of the relations; both None for one tree; `corrected_pairs`, the first
        level of that by pair of trees, named by their numbers from 1.
    """
    filled = [one.tree.filled() for one in found]
    # A vertex without edges is alone at every level in every tree: it says nothing of how much trees agree.
    joined, held = graph.degrees() > 0, graph.largest_component()
    rows: list[dict[str, Any]] = []
    for one, levels, view in zip(found, filled, views, strict=True):
        whole = one_dimensional_entropy(view)
        rows.append(
            {
                "view": one.view,
                "clusters": [len(one.tree.clusters(level)) for level in range(1, one.tree.height + 1)],
                "modularity": [round(modularity(view, level), 4) for level in levels],
                "information": round(one.information * whole, 4),
                "entropy": round((1 - one.information) * whole, 4),
                "share": round(one.information, 4),
            }
        )
    pairs = [list(zip(one, two, strict=False)) for one, two in combinations([f for f in filled if f], 2)]
    agreement = [normalized_mutual_information(one[joined], two[joined]) for pair in pairs for one, two in pair]
    lowest = min(map(len, pairs), default=0)
    corrected = [
        fmean(corrected_information(pair[level][0][held], pair[level][1][held]) for pair in pairs)
        for level in range(lowest)
    ]
    qualities = [fmean(row["modularity"]) for row in rows if row["modularity"]]
    return {
        "entities": graph.size,
        "relations": len(graph.edges),
        "entropy": round(one_dimensional_entropy(graph), 4),
        "trees": rows,
        "modularity": round(fmean(qualities), 4) if qualities else None,
        "nmi": round(fmean(agreement), 4) if agreement else None,
        "corrected_nmi": [round(value, 4) for value in corrected] or None,
        "corrected_pairs": _first_levels(filled, held),
    }


def _first_levels(filled: Sequence[Sequence[IntArray]], held: IntArray | BoolArray) -> dict[str, float]:
    """How much two trees agree at their finest level beyond chance, by pair."""
    with_levels = [(number, levels[0]) for number, levels in enumerate(filled, 1) if levels]
    return {
        f"{one}-{two}": round(corrected_information(left[held], right[held]), 4)
        for (one, left), (two, right) in combinations(with_levels, 2)
    }
