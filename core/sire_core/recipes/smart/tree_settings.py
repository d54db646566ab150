"""`NeuralSettings`: how the network of learned perspectives is trained (SMART)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sire_core.errors import ConfigurationError

__all__ = ["NeuralSettings"]

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
        loss: `se`, the decoding information; or `modularity`, after equation (10) of the paper.
        diversity: Weight of the mutual information between heads (lambda). At the paper's 1 and in bits, an empty head
            beats a useful one (oracle E10).
        informative: False leaves out what trees are to say, and trains them only to differ.
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
        polish: Rounds in which vertices move between a head's clusters while that lowers the entropy, each time on the
            graph with less weight inside the clusters of the other heads; 0 leaves the heads as they were learned.
    """

    loss: str = "se"
    diversity: float = 0.3
    informative: bool = True
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
    polish: int = 4

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
        if min(self.diversity, self.floor, self.sharpen, self.positions, self.polish) < 0 or not 0 <= self.blind < 1:
            raise ConfigurationError(
                "diversity, floor, sharpen, positions and polish are at least 0, blind at least 0 and below 1."
            )
