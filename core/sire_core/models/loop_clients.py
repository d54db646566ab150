"""One client per event loop, closed when nobody needs it any more."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sire_core.models.concurrency import AdaptiveGate

__all__ = ["LoopClients"]

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
                await old.client.close()
        return link.client, link.gate

    async def aclose(self) -> None:
        """Close the clients of this loop and of all others."""
        with self._lock:
            links = dict(self._links)
            self._links.clear()
        here = asyncio.get_running_loop()
        for loop, link in links.items():
            if loop is here:
                await link.client.close()
                continue
            with contextlib.suppress(Exception):  # another loop may stop at any moment
                if loop.is_running():
                    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(link.client.close(), loop))
                else:
                    await link.client.close()


def _close_all(links: _Links) -> None:
    """Close what is left, from wherever the last reference or the process ends."""
    in_loop = asyncio._get_running_loop()  # noqa: SLF001 - the public function raises where there is none
    for loop, link in links.items():
        with contextlib.suppress(Exception):
            if loop.is_running():
                done = asyncio.run_coroutine_threadsafe(link.client.close(), loop)
                if in_loop is None:
                    done.result(_CLOSE_SECONDS)
            elif in_loop is None:
                own = asyncio.new_event_loop() if loop.is_closed() else loop
                own.run_until_complete(asyncio.wait_for(link.client.close(), _CLOSE_SECONDS))
                if own is not loop:
                    own.close()
    links.clear()
