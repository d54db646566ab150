"""The trainable scorer over frozen vectors (IIER section 3.2, eq. 2-3), and its training. Imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from sire_core.recipes.iier.chain_steps import step_loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, FloatArray, IntArray

__all__ = ["SHARPNESS", "LightScorer", "deterministic", "train_epochs"]

SHARPNESS = 15.0
"""Logits per unit of score. Scores keep the size of the heuristic's, whose steps differ by hundredths."""


class LightScorer(nn.Module):
    """Edge MLP and scoring MLP over `pair_features` and `edge_features`, beside a linear part.

    It starts as a heuristic: the linear part has such weights and the scoring MLP answers 0. Training moves away from
    there as far as the labels ask for, so an edge that a corpus never shows keeps the heuristic's worth.

    Args:
        pairs: Number of pair features.
        edges: Number of edge features.
        start: First weights of the linear part, those of the pair features before those of the edge features.
        hidden: Width of the scoring MLP.
        edge_hidden: Width of the edge MLP, and of what it answers.
    """

    def __init__(self, pairs: int, edges: int, start: Sequence[float], hidden: int = 32, edge_hidden: int = 16) -> None:
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(edges, edge_hidden), nn.ReLU(), nn.Linear(edge_hidden, edge_hidden))
        self.score = nn.Sequential(nn.Linear(pairs + edge_hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.direct = nn.Linear(pairs + edges, 1, bias=False)
        with torch.no_grad():
            for parameter in self.score[2].parameters():
                parameter.zero_()
            self.direct.weight.copy_(torch.tensor([list(start)]))

    def forward(self, pair: torch.Tensor, edge: torch.Tensor) -> torch.Tensor:
        """Logits of candidates, `[c]`: `SHARPNESS` times their scores.

        Args:
            pair: `[c, pairs]`.
            edge: `[c, edges]`.
        """
        step = self.score(torch.cat((pair, self.edge(edge)), dim=1))
        logits: torch.Tensor = SHARPNESS * (step + self.direct(torch.cat((pair, edge), dim=1)))[:, 0]
        return logits

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name, copied."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}


def train_epochs(
    rows: tuple[FloatArray, FloatArray],
    positive: BoolArray,
    owners: IntArray,
    start: Sequence[float],
    *,
    epochs: int,
    batch: int,
    rate: float,
    hold: float,
    hidden: int,
    loss: str,
    seed: int,
) -> Iterator[Mapping[str, NDArray[np.float32]]]:
    """Train a `LightScorer`; the weights before the first pass, and after each.

    Args:
        rows: Pair features `[c, pairs]` and edge features `[c, edges]` of the candidates.
        positive: Whether a candidate is right, `[c]`.
        owners: Decision of every candidate, ascending from 0, `[c]`.
        start: See `LightScorer`.
        epochs: Passes over the decisions.
        batch: Decisions per step.
        rate: Learning rate of AdamW.
        hold: Weight of the squared distance from the first weights.
        hidden: Width of the scoring MLP.
        loss: One of `chain_loss.LOSSES`.
        seed: Of the first weights and the order.
    """
    pair, edge = rows
    with deterministic(seed):
        model = LightScorer(pair.shape[1], edge.shape[1], start, hidden)
    first_values = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    rng = np.random.default_rng([seed, 1])
    bounds = np.searchsorted(owners, np.arange(int(owners[-1]) + 2))
    yield model.arrays()
    for _ in range(epochs):
        with deterministic(seed):
            order = rng.permutation(len(bounds) - 1)
            for first in range(0, len(order), batch):
                chosen = order[first : first + batch]
                part = np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in chosen])
                own = np.repeat(np.arange(len(chosen)), bounds[chosen + 1] - bounds[chosen])
                logits = model(torch.from_numpy(pair[part]), torch.from_numpy(edge[part]))
                right = torch.from_numpy(positive[part].astype(np.float32))
                value = step_loss(logits, right, torch.from_numpy(own), len(chosen), loss)
                for parameter, first_value in zip(model.parameters(), first_values, strict=True):
                    value = value + hold * ((parameter - first_value) ** 2).sum()
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
        yield model.arrays()


@contextmanager
def deterministic(seed: int, threads: int | None = 1) -> Iterator[None]:
    """A seed while the block runs, and a number of threads; torch's own are as before when it ends.

    Args:
        seed: Of torch's random numbers.
        threads: None for as many as torch has.
    """
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if threads is not None:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)
