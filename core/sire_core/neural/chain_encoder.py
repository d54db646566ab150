"""The full scorer of the paper: a shared text encoder, an edge MLP and a scoring MLP (IIER section 3.2, eq. 1-4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sire_core.errors import ConfigurationError
from sire_core.neural.chain_loss import step_loss

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["EncoderScorer", "encoder_optimizer", "train_step"]

_EDGE = 3
"""Features of an edge: structural, semantic and keyword weight (eq. 2)."""


class EncoderScorer(nn.Module):
    """score = f_n([E_query; E_path; E_neighbour; f_r(w_struc, w_sim, w_kw)]), all of it trained.

    Args:
        folder: A transformer of the transformers library with its tokenizer, such as roberta-base.
        max_tokens: Longest text; a path keeps its last tokens, a question and a passage their first.

    Raises:
        ConfigurationError: transformers is missing, or the folder holds no model.
    """

    def __init__(self, folder: str | Path, max_tokens: int = 512) -> None:
        super().__init__()
        self.encoder, self._tokenizer = _load(folder)
        size = int(self.encoder.config.hidden_size)
        self._max_tokens = min(max_tokens, int(self.encoder.config.max_position_embeddings))
        self.edge = nn.Sequential(nn.Linear(_EDGE, size), nn.ReLU(), nn.Linear(size, size))
        self.score = nn.Sequential(nn.Linear(4 * size, size), nn.ReLU(), nn.Linear(size, 1))

    def forward(
        self,
        questions: Sequence[str],
        paths: Sequence[str],
        candidates: Sequence[str],
        edges: torch.Tensor,
        owners: torch.Tensor,
    ) -> torch.Tensor:
        """Logits of candidates, `[c]`.

        Args:
            questions: Of every decision.
            paths: Texts of every decision's chain, concatenated in its order.
            candidates: Texts, `c` of them.
            edges: Rows of `ChainGraph.features`, `[c, 3]`.
            owners: Decision of every candidate, int64 `[c]`.
        """
        shared = edges * edges.new_tensor([1.0, 1.0, 0.2])  # five keywords at most: w_kw / 5
        parts = (
            self.embed(questions)[owners],
            self.embed(paths, keep_end=True)[owners],
            self.embed(candidates),
            self.edge(shared),
        )
        logits: torch.Tensor = self.score(torch.cat(parts, dim=1))[:, 0]
        return logits

    def embed(self, texts: Sequence[str], *, keep_end: bool = False) -> torch.Tensor:
        """Mean of the last layer over the tokens of each text, `[n, size]`.

        Args:
            texts: Longer ones are cut.
            keep_end: Whether the beginning is cut off instead of the end.
        """
        self._tokenizer.truncation_side = "left" if keep_end else "right"
        tokens = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._max_tokens, return_tensors="pt"
        )
        layer = self.encoder(**tokens).last_hidden_state
        mask = tokens["attention_mask"][:, :, None].to(layer.dtype)
        mean: torch.Tensor = (layer * mask).sum(dim=1) / mask.sum(dim=1)
        return mean


def encoder_optimizer(model: EncoderScorer, encoder_rate: float = 2e-5, head_rate: float = 1e-3) -> torch.optim.AdamW:
    """AdamW with a small rate for the encoder, which knows its language, and a large one for the new MLPs."""
    heads = [*model.edge.parameters(), *model.score.parameters()]
    return torch.optim.AdamW(
        [{"params": list(model.encoder.parameters()), "lr": encoder_rate}, {"params": heads, "lr": head_rate}]
    )


def train_step(
    model: EncoderScorer,
    optimizer: torch.optim.Optimizer,
    batch: tuple[Sequence[str], Sequence[str], Sequence[str], torch.Tensor, torch.Tensor],
    positive: torch.Tensor,
    loss: str = "listwise",
) -> float:
    """One step on a batch of decisions.

    Args:
        model: Changed in place.
        optimizer: From `encoder_optimizer`.
        batch: The arguments of `EncoderScorer.forward`.
        positive: 1.0 for candidates that are right, `[c]`.
        loss: See `loss.LOSSES`.

    Returns:
        The loss before the step.
    """
    value = step_loss(model(*batch), positive, batch[4], len(batch[0]), loss)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return float(value.detach())


def _load(folder: str | Path) -> tuple[Any, Any]:
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise ConfigurationError(
            'The full scorer needs transformers, which the extra "local" brings: pip install "sire-rag[torch,local]"'
        ) from error
    try:
        return AutoModel.from_pretrained(str(folder)), AutoTokenizer.from_pretrained(str(folder))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{folder} holds no transformer with a tokenizer ({error}).") from error
