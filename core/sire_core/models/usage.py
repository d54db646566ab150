"""What model calls use, by stage, and the limits on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sire_core.algorithms.pluralize import count
from sire_core.algorithms.text import count_tokens
from sire_core.arguments import kind_of, parameters
from sire_core.errors import ConfigurationError

# A byte-pair encoding needs about a token per 4.3 letters of English and more than one per letter elsewhere.
_LETTERS_PER_TOKEN = 4.2


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a model will count, for texts in any script."""
    if not text:
        return 0
    ascii_letters = len(text.encode("ascii", "ignore"))
    by_letters = ascii_letters / _LETTERS_PER_TOKEN + (len(text) - ascii_letters)
    return max(count_tokens(text), math.ceil(by_letters))


_MOST_TOKENS = 10_000_000
_FACTOR, _MARGIN = 8, 20_000


def credible_tokens(claimed: object, estimate: int, *, bounded: bool = True) -> int:
    """A number of tokens that somebody claims, if it can be true; else the estimate."""
    if isinstance(claimed, bool) or not isinstance(claimed, int):
        return estimate
    most = estimate * _FACTOR + _MARGIN if bounded else _MOST_TOKENS
    return claimed if estimate // _FACTOR <= claimed <= most and (claimed or not estimate) else estimate


@dataclass(frozen=True, slots=True)
class StageUsage:
    """What one stage (`extract`, `sim_summary` …) has used."""

    calls: int = 0  # Requests sent to a model, repeated ones included
    cached: int = 0  # Answers taken from the store; they cost nothing
    input_tokens: int = 0  # Tokens of the prompts
    output_tokens: int = 0  # Tokens of the answers
    # Tokens that stored answers took when they were asked for, prompts included; nobody pays them now
    stored_tokens: int = 0

    def __add__(self, other: StageUsage) -> StageUsage:
        return StageUsage(
            self.calls + other.calls,
            self.cached + other.cached,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.stored_tokens + other.stored_tokens,
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


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """Limits of one build or one session; None means no limit.

    Attributes:
        max_calls: Maximum requests sent to models, including failed requests and retries.
        max_tokens: Maximum tokens of prompts and answers. Before a call, the tokens of its prompt and its maximum
            answer are reserved; unused ones are released.
    """

    max_calls: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ConfigurationError(
                    f"{name} must be a whole number of at least 0, not {value!r}; leave it out for no limit"
                )


LimitsT = TypeVar("LimitsT")


def limits_of(given: LimitsT | Mapping[str, Any] | None, form: type[LimitsT]) -> LimitsT:
    """Limits from an object or a mapping; None means no limits."""
    if isinstance(given, form):
        return given
    known = parameters(form)
    if given is None or (isinstance(given, Mapping) and set(given) <= {*known}):
        return form(**given or {})
    found = f"A mapping of {', '.join(map(str, given))}" if isinstance(given, Mapping) else kind_of(given)
    raise ConfigurationError(
        f"{found} is no {form.__name__}; limits is {form.__module__}.{form.__name__}("
        f"{', '.join(f'{name}=...' for name in known)}) or a mapping of these."
    )
