"""`TextStep`: what a text encoder of evidence chains learns from. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, FloatArray

__all__ = ["TextStep"]


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
