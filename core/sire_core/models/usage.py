"""What model calls use, by stage, and the limits on it, kept to the call."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from sire_core.algorithms.text import count_tokens
from sire_core.algorithms.wording import count
from sire_core.errors import ConfigurationError, LimitExceededError

__all__ = ["Meterable", "Reservation", "StageUsage", "UsageLimits", "UsageMeter", "UsageReport", "estimate_tokens"]

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


# How often a call looks again whether others have given back tokens that they had reserved.
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """Upper bounds of one build or one session; None means no bound.

    Attributes:
        max_calls: Requests sent to models. Requests that fail or are repeated count: nothing leaves the machine more
            often than this.
        max_tokens: Tokens of prompts and answers. Before a call its prompt and the most that it may answer are
            reserved, and what was not used is given back.
    """

    max_calls: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigurationError(f"{name} must be 0 or more, not {value}; leave it out for no limit")


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room for one call, taken before it is sent."""

    stage: str
    tokens: int


class UsageMeter:
    """Counts calls and tokens by stage and refuses the call that would pass a limit. Thread-safe.

    Args:
        limits: The bounds; without them it only counts.
    """

    def __init__(self, limits: UsageLimits | None = None) -> None:
        self.limits = limits or UsageLimits()
        self._lock = threading.Lock()
        self._stages: dict[str, StageUsage] = {}
        self._calls = 0
        self._tokens = 0
        self._reserved = 0

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which counts on from here by itself; what is under way here is none of its."""
        with self._lock:
            return {**self.__dict__, "_stages": dict(self._stages), "_reserved": 0, "_lock": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def try_reserve(self, tokens: int, stage: str = "") -> Reservation | None:
        """Reserve one call, or return None when its tokens only fit once calls under way give some back.

        Args:
            tokens: The most that the call can use, prompt and answer.
            stage: What the call is for.

        Raises:
            LimitExceededError: The call would pass a limit in any case.
        """
        with self._lock:
            calls, bound = self.limits.max_calls, self.limits.max_tokens
            if calls is not None and self._calls >= calls:
                raise LimitExceededError(self._message(count(calls, "call")))
            if bound is not None and self._tokens + self._reserved + tokens > bound:
                if self._reserved and self._tokens + tokens <= bound:
                    return None
                raise LimitExceededError(self._message(count(bound, "token")))
            self._calls += 1
            self._reserved += tokens
            self._add(stage, StageUsage(calls=1))
            return Reservation(stage, tokens)

    async def reserve(self, tokens: int, stage: str = "") -> Reservation:
        """Reserve one call; waits while calls under way hold tokens that this one may need.

        Raises:
            LimitExceededError: The call would pass a limit.
        """
        while (reservation := self.try_reserve(tokens, stage)) is None:  # noqa: ASYNC110 - other threads and loops give back too
            await asyncio.sleep(_POLL_SECONDS)
        return reservation

    def settle(self, reservation: Reservation, input_tokens: int = 0, output_tokens: int = 0) -> None:
        """Replace what a call reserved by what it used. Every reservation must be settled exactly once."""
        with self._lock:
            self._reserved -= reservation.tokens
            self._tokens += input_tokens + output_tokens
            self._add(reservation.stage, StageUsage(input_tokens=input_tokens, output_tokens=output_tokens))

    def cancel(self, reservation: Reservation) -> None:
        """Take back a reservation whose request was never sent."""
        with self._lock:
            self._calls -= 1
            self._reserved -= reservation.tokens
            self._add(reservation.stage, StageUsage(calls=-1))

    def cached(self, stage: str = "") -> None:
        """Count an answer that was taken from the store."""
        with self._lock:
            self._add(stage, StageUsage(cached=1))

    def report(self) -> UsageReport:
        """What was used so far."""
        with self._lock:
            return UsageReport(dict(self._stages))

    def _add(self, stage: str, used: StageUsage) -> None:
        self._stages[stage] = self._stages.get(stage, StageUsage()) + used

    def _message(self, bound: str) -> str:
        used = UsageReport(dict(self._stages)).describe()
        return (
            f"the limit of {bound} would be passed by the next call (so far {used}); every answer is stored: "
            f"run the build again with a higher limit and it goes on from here"
        )


@runtime_checkable
class Meterable(Protocol):
    """A model that counts its own requests, so that repeated ones are seen too."""

    def metered(self, meter: UsageMeter, stage: str = "") -> Any:
        """Return a copy that also counts on `meter`; it shares connections with the original."""
