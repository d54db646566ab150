"""SMART's own abstractor: perspectives learned by a graph network (needs the extra `torch`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.extras import need_torch
from sire_core.recipes.smart.encoding_tree import EncodingTree
from sire_core.recipes.smart.entropy_levels import entropy_partition, entropy_tree
from sire_core.recipes.smart.entropy_merging import MergeLevel
from sire_core.recipes.smart.finding import shrunk
from sire_core.recipes.smart.tree_settings import NeuralSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.undirected import UndirectedGraph

__all__ = ["NeuralSettings", "abstract_neural", "level_sizes"]

_SMALLEST = 4  # vertices with edges; below, there is nothing to abstract
_LARGEST_LEVEL = 512  # clusters of a level by default: memory grows with vertices times clusters


def abstract_neural(
    graph: UndirectedGraph,
    features: NDArray[np.float32],
    *,
    kappa: int = 3,
    levels: int = 3,
    settings: NeuralSettings | None = None,
    seed: int = 0,
) -> tuple[EncodingTree, ...]:
    """Train one network with `kappa` heads on the graph and harden each head to an encoding tree.

    Args:
        graph: Vertices and the weights that decoding information is measured with.
        features: float32 `[n, p]`, for instance the vectors of the entities' names and descriptions.
        kappa: Trees wanted, at least 1.
        levels: Most levels per tree, at least 1.
        settings: How to train; the defaults when left out.
        seed: Equal seeds give equal trees on one machine.

    Returns:
        `kappa` trees without single-child nodes, vertices without edges hanging off the root. For a graph with fewer
        than four vertices with edges: one tree with a root only.

    Raises:
        ConfigurationError: Settings or features that do not fit, or torch is not installed.
    """
    chosen = settings or NeuralSettings()
    if kappa < 1 or levels < 1 or (chosen.sizes is not None and len(chosen.sizes) != levels):
        raise ConfigurationError("perspectives need kappa >= 1, levels >= 1 and, if sizes are given, one per level")
    if features.ndim != 2 or len(features) != graph.size or not np.isfinite(features).all():
        raise ConfigurationError(f"features are finite numbers in {graph.size} rows, one per vertex")
    held = np.flatnonzero(graph.degrees() > 0)
    if len(held) < _SMALLEST:
        return (EncodingTree(graph.size),)
    need_torch("abstractor='neural'")
    from sire_core.recipes.smart.tree_training import train_trees

    sizes = level_sizes(len(held), levels) if chosen.sizes is None else tuple(chosen.sizes)
    trees = train_trees(graph, features, held, kappa=kappa, sizes=sizes, settings=chosen, seed=seed)
    return _polished(graph, trees, levels, chosen.polish)


def _polished(
    graph: UndirectedGraph, trees: tuple[EncodingTree, ...], levels: int, rounds: int
) -> tuple[EncodingTree, ...]:
    """Trees grown by entropy from each head's finest clusters, on the graph with less weight on what other heads group.

    Gradients find where clusters are, moves of single vertices find what belongs to them.
    """
    if not rounds or not all(tree.height for tree in trees):
        return trees
    groups = [tree.filled()[0] for tree in trees]
    one_level = [EncodingTree(graph.size, tree.filled()[-1:]) for tree in trees]  # what a head groups, on one level
    for _ in range(rounds):
        for number in range(len(trees)):
            seen = shrunk(graph, [*one_level[:number], *one_level[number + 1 :]])
            groups[number] = entropy_partition(MergeLevel.of(seen), groups[number])
            one_level[number] = EncodingTree(graph.size, (groups[number],))
    return tuple(entropy_tree(graph, levels, labels) for labels in groups)


def level_sizes(vertices: int, levels: int) -> tuple[int, ...]:
    """Clusters of every level, the finest first: n^((L + 1 - m) / (L + 1)), at least 2 and at most 512.

    Args:
        vertices: Number of vertices.
        levels: L.
    """
    shares = ((levels + 1 - m) / (levels + 1) for m in range(1, levels + 1))
    return tuple(max(2, min(_LARGEST_LEVEL, round(vertices**share))) for share in shares)
