"""One client per event loop, and how many of its requests may be under way."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AdaptiveGate", "LoopClients"]


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


# At the end of a process, closing must not hold it up for long.
_CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Link:
    client: Any
    gate: AdaptiveGate


_Links = dict[asyncio.AbstractEventLoop, _Link]


class LoopClients:
    """Makes a client for the event loop that asks, since connections belong to the loop that opened them.

    Clients are closed by `aclose`, and otherwise when this object goes or the process ends, so that scripts that use
    the sync face do not leave open sockets behind.

    Args:
        make: Makes a client with an async `close`.
        concurrency: Places of each loop's gate.
    """

    def __init__(self, make: Callable[[], Any], concurrency: int) -> None:
        self._make = make
        self._concurrency = concurrency
        self._lock = threading.Lock()
        self._links: _Links = {}
        AdaptiveGate(concurrency)  # complain now, not at the first call
        weakref.finalize(self, _close_all, self._links)

    async def get(self) -> tuple[Any, AdaptiveGate]:
        """The client and the gate of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            link = self._links.get(loop)
            if link is not None:
                return link.client, link.gate
            dead = [self._links.pop(other) for other in list(self._links) if other.is_closed()]
            link = self._links[loop] = _Link(self._make(), AdaptiveGate(self._concurrency))
        for old in dead:
            with contextlib.suppress(Exception):  # its loop is gone, and took the sockets along
                await _closed(old.client)
        return link.client, link.gate

    async def aclose(self) -> None:
        """Close the clients of this loop and of all others."""
        with self._lock:
            links = dict(self._links)
            self._links.clear()
        here = asyncio.get_running_loop()
        for loop, link in links.items():
            if loop is here:
                await _closed(link.client)
                continue
            with contextlib.suppress(Exception):  # another loop may stop at any moment
                if loop.is_running():
                    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_closed(link.client), loop))
                else:
                    await _closed(link.client)


async def _closed(client: Any) -> None:
    """Close a client, and let the loop close its sockets: transports do so in its next turn."""
    await client.close()
    await asyncio.sleep(0)


def _close_all(links: _Links) -> None:
    """Close what is left, from wherever the last reference or the process ends."""
    in_loop = asyncio._get_running_loop()  # noqa: SLF001 - the public function raises where there is none
    for loop, link in links.items():
        with contextlib.suppress(Exception):
            if loop.is_running():
                done = asyncio.run_coroutine_threadsafe(_closed(link.client), loop)
                if in_loop is None:
                    done.result(_CLOSE_SECONDS)
            elif in_loop is None:
                own = asyncio.new_event_loop() if loop.is_closed() else loop
                own.run_until_complete(asyncio.wait_for(_closed(link.client), _CLOSE_SECONDS))
                if own is not loop:
                    own.close()
    links.clear()
