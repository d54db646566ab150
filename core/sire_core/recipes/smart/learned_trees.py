"""SMART's own abstractor: perspectives learned by a graph network (needs the extra `torch`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.recipes.smart.communities import MergeLevel, entropy_partition, entropy_tree
from sire_core.recipes.smart.encoding_tree import EncodingTree, UndirectedGraph
from sire_core.recipes.smart.perspectives import shrunk
from sire_core.settings import need_torch

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class NeuralSettings:
    """How the network is trained."""

    loss: str = "se"  # `se`, the decoding information; or `modularity`, after equation (10) of the paper
    diversity: float = 0.3  # of the information that heads share; at the paper's 1 an empty head wins (E10)
    info: bool = True  # False leaves out the loss, and trains the trees only to differ
    information: str = "mi"  # what is kept small between heads: `mi` in bits, or `nmi` (0 to 1)
    assign: str = "softmax"  # memberships by `softmax`; or by `sigmoid` as in the paper, then divided by their sum
    nest: str = "chain"  # `repair`: levels are learned apart, as in the paper, and made to nest by majority
    sizes: Sequence[int] | None = None  # clusters of every level, the finest first; None: see `level_sizes`
    mu: float | None = None  # of modularity; None: 1 / sum of the matrix; the paper's 0.001 collapses
    floor: float = 0.5  # share of the best head's information that others are pushed above; empty ones share nothing
    sharpen: float = 0.01  # weight of the mean entropy of the finest memberships (eta)
    epochs: int = 200  # maximum epochs
    rate: float = 0.003  # step size of Adam
    patience: int = 50  # epochs in a row without a lower loss after which training stops
    hidden: int = 256  # width of the first graph layer
    dimension: int = 128  # width of the second
    blind: float = 0.5  # share of the features that a head does not see, others for every head
    positions: int = 32  # coordinates of the vertices in the graph that are added to the features; 0 for none
    temperature: float = 0.2  # of the softmax at the end; it starts at 1
    polish: int = 4  # rounds in which vertices move between a head's clusters after training; see `_polished`


_MIN_VERTICES = 4  # vertices with edges; below, there is nothing to abstract
_MAX_CLUSTERS = 512  # clusters of a level by default: memory grows with vertices times clusters


def abstract_neural(
    graph: UndirectedGraph,
    features: NDArray[np.float32],
    *,
    kappa: int = 3,
    levels: int = 3,
    settings: NeuralSettings | None = None,
    seed: int = 0,
) -> tuple[EncodingTree, ...]:
    """Train a network with `kappa` heads on the graph and features `[n, p]`; harden each head to an encoding tree."""
    config = settings or NeuralSettings()
    connected = np.flatnonzero(graph.degrees() > 0)
    if len(connected) < _MIN_VERTICES:
        return (EncodingTree(graph.size),)
    need_torch("abstractor='neural'")
    from sire_core.recipes.smart.soft_trees import train_trees

    sizes = level_sizes(len(connected), levels) if config.sizes is None else tuple(config.sizes)
    trees = train_trees(graph, features, connected, kappa=kappa, sizes=sizes, settings=config, seed=seed)
    return _polished(graph, trees, levels, config.polish)


def _polished(
    graph: UndirectedGraph, trees: tuple[EncodingTree, ...], levels: int, rounds: int
) -> tuple[EncodingTree, ...]:
    """Grow trees by entropy from each head's finest clusters; edges inside other heads' clusters weigh less."""
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
    """Return the clusters of every level, the finest first: n^((L + 1 - m) / (L + 1)), at least 2 and at most 512."""
    shares = ((levels + 1 - m) / (levels + 1) for m in range(1, levels + 1))
    return tuple(max(2, min(_MAX_CLUSTERS, round(vertices**share))) for share in shares)
