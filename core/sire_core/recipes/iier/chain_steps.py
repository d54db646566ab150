"""What scorers of evidence chains learn from, and their losses; imported without torch. The paper names none (IIER)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, FloatArray

__all__ = ["LOSSES", "TextStep", "step_loss"]


@dataclass(frozen=True, slots=True)
class TextStep:
    """A chain that has to go on, as texts.

    Attributes:
        question: The question.
        path: Passages of the chain, one after the other.
        candidates: Passages that it could take.
        edges: What joins the last passage of the chain with each: structural, semantic and keyword weight, float32
            `[c, 3]`.
        positive: Which of them are right, `[c]`.
    """

    question: str
    path: str
    candidates: tuple[str, ...]
    edges: FloatArray
    positive: BoolArray


LOSSES = ("listwise", "bce")
"""`listwise`: softmax cross-entropy over the candidates of a decision, its right ones sharing the mass. `bce`: every
candidate alone."""


def step_loss(scores: Any, positive: Any, owners: Any, decisions: int, loss: str = "listwise") -> Any:
    """Mean loss of a batch of decisions.

    Args:
        scores: Tensor `[c]` of logits.
        positive: Tensor `[c]`, 1.0 for candidates that are right; every decision has one.
        owners: Tensor `[c]` of decision numbers, int64, 0 to `decisions - 1`.
        decisions: How many.
        loss: One of `LOSSES`.

    Returns:
        A scalar tensor.
    """
    import torch

    totals = torch.zeros(decisions, dtype=scores.dtype)
    if loss == "bce":
        each = torch.nn.functional.binary_cross_entropy_with_logits(scores, positive, reduction="none")
        counts = totals.index_add(0, owners, torch.ones_like(scores))
        return (totals.index_add(0, owners, each) / counts).mean()
    largest = torch.full((decisions,), -torch.inf, dtype=scores.dtype).scatter_reduce(
        0, owners, scores.detach(), "amax"
    )
    normalizer = largest + totals.index_add(0, owners, (scores - largest[owners]).exp()).log()
    shares = positive / totals.index_add(0, owners, positive)[owners]
    return (normalizer - totals.index_add(0, owners, shares * scores)).mean()
