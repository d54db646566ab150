"""How many requests may be under way: fewer when the server asks for it, more when all goes well."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AdaptiveGate"]


class AdaptiveGate:
    """Bounds the requests under way, additive increase and multiplicative decrease. Belongs to one event loop.

    `async with gate` takes a place. `throttled` halves the number of places, once per wave of refusals: refusals of
    requests that began before the last halving are its echo. `succeeded` grows it by about one place per round.

    Args:
        maximum: Places at the start and at most.
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
        """The server refused a request for its rate.

        Args:
            wave: `wave` when the request began.
            pause: Seconds for which nothing is to be sent (Retry-After).
        """
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
