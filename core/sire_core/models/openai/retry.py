"""When a failed request is sent again, after how long, and how many requests are under way at once."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TYPE_CHECKING

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Self

_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with jitter.

    Attributes:
        max_retries: Repetitions after the first try.
        base: Seconds before the first repetition, doubled every time.
        cap: Longest wait of our own.
        max_retry_after: Longest wait that a server may ask for; beyond it the call fails.
        seed: Makes the jitter repeatable.
    """

    max_retries: int = 6
    base: float = 0.5
    cap: float = 30.0
    max_retry_after: float = 300.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.max_retries < 0 or self.base < 0 or self.cap < 0:
            raise ConfigurationError("max_retries, base and cap of a RetryPolicy must be 0 or more")

    def jitter(self) -> random.Random:
        """A source of jitter for one client."""
        return random.Random(self.seed)  # noqa: S311 - spreads requests over time, hides nothing

    def delay(self, attempt: int, asked: float | None, source: random.Random) -> float:
        """Seconds before repetition number `attempt` (0-based); `asked` is what the server asked for, if anything."""
        own = min(self.cap, self.base * 2.0**attempt) * source.uniform(0.5, 1.0)
        if asked is None:
            return own
        # A little later than asked, and not all at the same moment.
        return asked + min(own, 0.1 * asked + 0.05)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a response asks to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000.0
    value = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(value):
        return float(value)
    if not value:
        return None
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


class AdaptiveGate:
    """Bounds the requests under way, additive increase and multiplicative decrease. Belongs to one event loop.

    `async with gate` takes a place. `throttled` halves the number of places, once per wave of refusals: refusals of
    requests that began before the last halving are its echo. `succeeded` grows it by about one place per round, up to
    `maximum`.
    """

    def __init__(self, maximum: int) -> None:
        if maximum < 1:
            raise ConfigurationError(f"concurrency must be at least 1, not {maximum}")
        self.maximum = maximum
        self._width = float(maximum)
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._wave = 0

    @property
    def width(self) -> int:
        """Places right now."""
        return max(1, int(self._width))

    @property
    def wave(self) -> int:
        """Number of halvings so far; a request notes it when it begins."""
        return self._wave

    async def __aenter__(self) -> Self:
        await self._acquire()
        try:
            while (pause := self._paused_until - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110 - a clock is waited for
                await asyncio.sleep(pause)
        except BaseException:
            self._release()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def throttled(self, wave: int, pause: float = 0.0) -> None:
        """The server refused a request for its rate, which began in `wave`; nothing is sent for `pause` seconds."""
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + pause)
        if wave == self._wave:
            self._wave += 1
            self._width = max(1.0, self._width / 2)

    def succeeded(self) -> None:
        """A request was answered."""
        self._width = min(float(self.maximum), self._width + 1.0 / self._width)
        self._wake()

    async def _acquire(self) -> None:
        if self._active < self.width and not self._waiting:
            self._active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place was given just before the cancellation
                self._release()
            raise

    def _release(self) -> None:
        self._active -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._active < self.width:
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)
