"""How informative the trees of a graph are, and how much they differ (SMART, Table 4; ALGORITHMS 9.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.partitions import modularity, normalized_mutual_information
from sire_core.algorithms.structural_entropy import decoding_information, one_dimensional_entropy

if TYPE_CHECKING:
    from sire_core.algorithms.encoding_tree import EncodingTree
    from sire_core.algorithms.undirected import UndirectedGraph

__all__ = ["describe_trees", "information"]


def information(graph: UndirectedGraph, trees: Sequence[EncodingTree]) -> list[float]:
    """Share of the graph's entropy H1 that each tree explains (its decoding information over H1), 0..1."""
    whole = one_dimensional_entropy(graph)
    return [decoding_information(graph, tree) / whole if whole > 0 else 0.0 for tree in trees]


def describe_trees(
    graph: UndirectedGraph, trees: Sequence[EncodingTree], shares: Sequence[float] | None = None
) -> dict[str, Any]:
    """Figures of trees over one graph, JSON-serialisable.

    Args:
        graph: The graph.
        trees: Trees over its vertices.
        shares: What `information` gives; None computes it.

    Returns:
        `entities`, `relations` (vertices and edges), `entropy` (H1 in bits); per tree under `trees`: `clusters` and
        `modularity` by level, `information` (bits) and `entropy` (its H); over all trees: `modularity`, the mean over
        trees at each level, then over levels, and `nmi`, the mean over levels and pairs of trees; None for one tree.
    """
    whole = one_dimensional_entropy(graph)
    filled = [tree.filled() for tree in trees]
    # A vertex without edges is alone at every level in every tree: it says nothing of how much trees agree.
    joined = graph.degrees() > 0
    rows: list[dict[str, Any]] = []
    found_shares = information(graph, trees) if shares is None else shares
    for tree, levels, share in zip(trees, filled, found_shares, strict=True):
        found = share * whole
        rows.append(
            {
                "clusters": [len(tree.clusters(level)) for level in range(1, tree.height + 1)],
                "modularity": [round(modularity(graph, level), 4) for level in levels],
                "information": round(found, 4),
                "entropy": round(whole - found, 4),
            }
        )
    agreement = [
        normalized_mutual_information(one[joined], two[joined])
        for first, second in combinations(filled, 2)
        for one, two in zip(first, second, strict=False)
    ]
    qualities = [fmean(row["modularity"]) for row in rows if row["modularity"]]
    return {
        "entities": graph.size,
        "relations": len(graph.edges),
        "entropy": round(whole, 4),
        "trees": rows,
        "modularity": round(fmean(qualities), 4) if qualities else None,
        "nmi": round(fmean(agreement), 4) if agreement else None,
    }
