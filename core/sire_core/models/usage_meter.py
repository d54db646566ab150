"""`UsageMeter`: counts what models use as it is used, and keeps the limits to the call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from sire_core.algorithms.wording import count
from sire_core.errors import LimitExceededError
from sire_core.models.usage import StageUsage, UsageLimits, UsageReport

__all__ = ["Meterable", "Reservation", "UsageMeter", "UsageSink"]

_UNBOUNDED_ANSWER = 4096
"""Reserved for an answer whose length is not bounded."""
# How often a call looks again whether others have given back tokens that they had reserved.
_POLL_SECONDS = 0.02


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
