"""What model calls cost: calls and tokens by stage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sire_core.algorithms.text import count_tokens
from sire_core.algorithms.wording import count

__all__ = ["StageUsage", "UsageReport", "estimate_tokens"]

# A byte-pair encoding needs about a token per 4.3 letters of English and more than one per letter elsewhere.
_LETTERS_PER_TOKEN = 4.2


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a model will count, for texts in any script.

    Words and punctuation marks as `count_tokens` has them, or the letters where words are long or unspaced.
    Within a few percent of `cl100k_base` on English prose, and rather above it on other text.
    """
    if not text:
        return 0
    ascii_letters = len(text.encode("ascii", "ignore"))
    by_letters = ascii_letters / _LETTERS_PER_TOKEN + (len(text) - ascii_letters)
    return max(count_tokens(text), math.ceil(by_letters))


@dataclass(frozen=True, slots=True)
class StageUsage:
    """What one stage (`extract`, `sim_summary` …) has used.

    Attributes:
        calls: Requests sent to a model, repeated ones included.
        cached: Answers taken from the store; they cost nothing.
        input_tokens: Tokens of the prompts.
        output_tokens: Tokens of the answers.
    """

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: StageUsage) -> StageUsage:
        return StageUsage(
            self.calls + other.calls,
            self.cached + other.cached,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Usage by stage, in the order in which the stages began."""

    stages: Mapping[str, StageUsage] = field(default_factory=dict)

    @property
    def total(self) -> StageUsage:
        """The sum over the stages."""
        return sum(self.stages.values(), StageUsage())

    def describe(self) -> str:
        """One readable line."""
        parts = [
            f"{name or 'calls'}: {count(used.calls, 'call')}, {used.input_tokens:,} + {used.output_tokens:,} tokens"
            + (f", {count(used.cached, 'answer')} from the store" if used.cached else "")
            for name, used in self.stages.items()
        ]
        return "; ".join(parts) or "no calls"
