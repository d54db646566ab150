"""SMART's own abstractor: perspectives learned by a graph network (ALGORITHMS 6.3, 6.4; needs the extra `torch`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.encoding_tree import EncodingTree
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.undirected import UndirectedGraph

__all__ = ["NeuralSettings", "abstract_neural", "level_sizes"]

_SMALLEST = 4  # vertices with edges; below, there is nothing to abstract
_LARGEST_LEVEL = 512  # clusters of a level by default: memory grows with vertices times clusters
_CHOICES = {
    "loss": ("se", "modularity"),
    "assign": ("softmax", "sigmoid"),
    "information": ("mi", "nmi"),
    "nest": ("chain", "repair"),
}


@dataclass(frozen=True, slots=True)
class NeuralSettings:
    """How the network is trained.

    Attributes:
        loss: `se`, the decoding information; or `modularity`, equation (10) of the paper as read in ALGORITHMS 6.3.
        diversity: Weight of the mutual information between heads (lambda). At the paper's 1 and in bits, an empty head
            beats a useful one (oracle E10).
        information: What is kept small between heads: `mi` in bits, or `nmi` (0 to 1).
        assign: Memberships by `softmax`; or by `sigmoid` as in the paper, then divided by their sum.
        nest: `chain`: the parents of clusters are learned, so levels nest; `repair`: the paper's independent levels,
            made to nest by majority afterwards.
        sizes: Clusters of every level, the finest first; None: n^((L + 1 - m) / (L + 1)), at most 512.
        balance: mu of the modularity loss; None is 1 / (sum of the matrix). The paper's 0.001 collapses.
        normalized_adjacency: Modularity loss on the symmetrically normalized matrix.
        normalize: Divide decoding information by H1, so that it lies between 0 and 1.
        floor: Heads are pushed above this share of the best head's decoding information: one empty head would be
            cheap, as it shares nothing. 0 turns it off.
        sharpen: Weight of the mean entropy of the finest memberships (eta).
        epochs: Most passes.
        rate: Step size of Adam.
        patience: Passes in a row without a lower loss after which training stops.
        hidden: Width of the first graph layer.
        dimension: Width of the second.
        blind: Share of the encoded features that a head does not see, others for every head, so that heads differ.
        positions: Coordinates of the vertices in the graph that are added to the features; 0 for none.
        temperature: Of the softmax at the end; it starts at 1.
    """

    loss: str = "se"
    diversity: float = 0.3
    information: str = "mi"
    assign: str = "softmax"
    nest: str = "chain"
    sizes: Sequence[int] | None = None
    balance: float | None = None
    normalized_adjacency: bool = False
    normalize: bool = False
    floor: float = 0.5
    sharpen: float = 0.01
    epochs: int = 200
    rate: float = 0.003
    patience: int = 50
    hidden: int = 256
    dimension: int = 128
    blind: float = 0.5
    positions: int = 32
    temperature: float = 0.2

    def __post_init__(self) -> None:
        """Check names and ranges.

        Raises:
            ConfigurationError: An unknown name or a number out of range.
        """
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigurationError(f"{name} is one of {', '.join(allowed)}, not {getattr(self, name)!r}.")
        if min(self.epochs, self.patience, self.hidden, self.dimension) < 1 or self.rate <= 0 or self.temperature <= 0:
            raise ConfigurationError("epochs, patience, hidden, dimension, rate and temperature are above 0.")
        if min(self.diversity, self.floor, self.sharpen, self.positions) < 0 or not 0 <= self.blind < 1:
            raise ConfigurationError(
                "diversity, floor, sharpen and positions are at least 0, blind at least 0 and below 1."
            )


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
    try:
        from sire_core.abstractors.training import train_trees
    except ImportError as error:
        raise ConfigurationError('Learned perspectives need torch: pip install "sire-rag[torch]"') from error
    sizes = level_sizes(len(held), levels) if chosen.sizes is None else tuple(chosen.sizes)
    return train_trees(graph, features, held, kappa=kappa, sizes=sizes, settings=chosen, seed=seed)


def level_sizes(vertices: int, levels: int) -> tuple[int, ...]:
    """Clusters of every level, the finest first: n^((L + 1 - m) / (L + 1)), at least 2 and at most 512.

    Args:
        vertices: Number of vertices.
        levels: L.
    """
    shares = ((levels + 1 - m) / (levels + 1) for m in range(1, levels + 1))
    return tuple(max(2, min(_LARGEST_LEVEL, round(vertices**share))) for share in shares)
