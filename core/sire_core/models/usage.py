"""What model calls use, by stage, and the limits on it, kept to the call."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from sire_core.algorithms.text import count_tokens
from sire_core.algorithms.wording import count
from sire_core.errors import ConfigurationError, LimitExceededError
from sire_core.keywords import kind_of, parameters

__all__ = [
    "Meterable",
    "Reservation",
    "StageUsage",
    "UsageLimits",
    "UsageMeter",
    "UsageReport",
    "UsageSink",
    "estimate_tokens",
]

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
        stored_tokens: Tokens that stored answers took when they were asked for, prompts included; nobody pays them now.
    """

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
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


_UNBOUNDED_ANSWER = 4096
"""Reserved for an answer whose length is not bounded."""

# How often a call looks again whether others have given back tokens that they had reserved.
_POLL_SECONDS = 0.02


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
    """Limits from an object or a mapping; None means no limits.

    Args:
        given: What somebody passed as `limits`.
        form: The class of the limits.

    Raises:
        ConfigurationError: It is neither, or an unknown limit.
    """
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
                raise LimitExceededError(self._message(count(calls, "call")), "calls")
            if bound is not None and self._tokens + self._reserved + tokens > bound:
                if self._reserved and self._tokens + tokens <= bound:
                    return None
                raise LimitExceededError(self._message(count(bound, "token")), "tokens")
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

    def settle(
        self, reservation: Reservation, input_tokens: int = 0, output_tokens: int = 0, stored_tokens: int = 0
    ) -> None:
        """Replace what a call reserved by what it used. Every reservation must be settled exactly once."""
        with self._lock:
            self._reserved -= reservation.tokens
            self._tokens += input_tokens + output_tokens
            self._add(reservation.stage, StageUsage(0, 0, input_tokens, output_tokens, stored_tokens))

    def cancel(self, reservation: Reservation) -> None:
        """Take back a reservation whose request was never sent."""
        with self._lock:
            self._calls -= 1
            self._reserved -= reservation.tokens
            self._add(reservation.stage, StageUsage(calls=-1))

    def cached(self, stage: str = "", tokens: int = 0) -> None:
        """Count an answer that was taken from the store, and the tokens that it took when it was asked for."""
        with self._lock:
            self._add(stage, StageUsage(cached=1, stored_tokens=tokens))

    def report(self) -> UsageReport:
        """What was used so far."""
        with self._lock:
            return UsageReport(dict(self._stages))

    def _add(self, stage: str, used: StageUsage) -> None:
        self._stages[stage] = self._stages.get(stage, StageUsage()) + used

    def _message(self, bound: str) -> str:
        used = UsageReport(dict(self._stages)).describe()
        return (
            f"the limit of {bound} would be passed by the next call (so far {used}); raise it and ask again, or run "
            f"the build again, which goes on from here: every answer is stored"
        )


@dataclass(frozen=True, slots=True)
class UsageSink:
    """Who counts a request: meters with the stage it belongs to."""

    meters: tuple[tuple[UsageMeter, str], ...] = ()

    async def reserve(self, tokens: int) -> list[tuple[UsageMeter, Reservation]]:
        """Reserve one request on every meter, or on none."""
        taken: list[tuple[UsageMeter, Reservation]] = []
        try:
            for meter, stage in self.meters:
                taken.append((meter, await meter.reserve(tokens, stage)))
        except BaseException:
            for meter, reservation in taken:
                meter.cancel(reservation)
            raise
        return taken

    @asynccontextmanager
    async def counted(self, size: int, room: int | None) -> AsyncGenerator[list[int], None]:
        """Reserve one request for as long as it is under way.

        Args:
            size: Tokens of its prompt.
            room: Most tokens of its answer.

        Yields:
            A list of its input, output and stored tokens, 0 until they are written into it. What is refused by another
            limit was never sent, and is not counted.
        """
        taken = await self.reserve(size + (room or _UNBOUNDED_ANSWER))
        used = [0, 0, 0]
        refused = False
        try:
            yield used
        except LimitExceededError as error:
            refused = not error.said
            raise
        finally:
            for meter, reservation in taken:
                if refused:
                    meter.cancel(reservation)
                else:
                    meter.settle(reservation, *used)


@runtime_checkable
class Meterable(Protocol):
    """A model that counts its own requests, so that repeated ones are seen too."""

    def metered(self, meter: UsageMeter, stage: str = "") -> Any:
        """Return a copy that also counts on `meter`; it shares connections with the original."""
