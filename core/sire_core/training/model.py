"""The trainable scorer over frozen vectors (IIER section 3.2, eq. 2-3; ALGORITHMS 3.4). Imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from sire_core.search.chain_features import EDGE_FEATURES, PAIR_FEATURES

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LightScorer"]

SHARPNESS = 15.0
"""Logits per unit of score. Scores keep the size of the heuristic's, whose steps differ by hundredths."""
_START = {"question": 0.5, "chain": 0.2, "newly_covered": 0.2, "structural": 0.05, "similarity": 0.05, "keywords": 0.1}
"""The specification's weights (ALGORITHMS 3.4). Not those that `HeuristicScorer` was tuned to since: its large weight
of shared keywords leaves training little to decide (3 points less of the evidence in cross-validation)."""


class LightScorer(nn.Module):
    """Edge MLP and scoring MLP over `pair_features` and `edge_features`, beside a linear part.

    It starts as a heuristic: the linear part has such weights and the scoring MLP answers 0. Training moves away from
    there as far as the labels ask for, so an edge that a corpus never shows keeps the heuristic's worth.

    Args:
        hidden: Width of the scoring MLP.
        edge_hidden: Width of the edge MLP, and of what it answers.
    """

    def __init__(self, hidden: int = 32, edge_hidden: int = 16) -> None:
        super().__init__()
        pairs, edges = len(PAIR_FEATURES), len(EDGE_FEATURES)
        self.edge = nn.Sequential(nn.Linear(edges, edge_hidden), nn.ReLU(), nn.Linear(edge_hidden, edge_hidden))
        self.score = nn.Sequential(nn.Linear(pairs + edge_hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.direct = nn.Linear(pairs + edges, 1, bias=False)
        with torch.no_grad():
            for parameter in self.score[2].parameters():
                parameter.zero_()
            self.direct.weight.copy_(
                torch.tensor([[_START.get(name, 0.0) for name in (*PAIR_FEATURES, *EDGE_FEATURES)]])
            )

    def forward(self, pair: torch.Tensor, edge: torch.Tensor) -> torch.Tensor:
        """Logits of candidates, `[c]`: `SHARPNESS` times their scores.

        Args:
            pair: `[c, len(PAIR_FEATURES)]`.
            edge: `[c, len(EDGE_FEATURES)]`.
        """
        step = self.score(torch.cat((pair, self.edge(edge)), dim=1))
        logits: torch.Tensor = SHARPNESS * (step + self.direct(torch.cat((pair, edge), dim=1)))[:, 0]
        return logits

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name, copied."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}
