"""What a model server may send: so many bytes, for so long, and from nowhere else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from typing import Any

__all__ = ["ResponseBounds", "UnacceptableResponseError"]


class UnacceptableResponseError(Exception):
    """A response that is too long, takes too long or comes from elsewhere; asking again would not help."""


@dataclass(frozen=True, slots=True)
class ResponseBounds:
    """Bounds of every response of a client.

    Attributes:
        deadline: Most seconds from a request to the end of its response.
        max_bytes: Most bytes of a response.
    """

    deadline: float
    max_bytes: int

    def apply(self, client: Any) -> None:
        """Keep them on an `httpx.AsyncClient` (or one that behaves like it), beside hooks that it has."""
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "response": [*hooks.get("response", ()), self._check]}

    def too_late(self) -> UnacceptableResponseError:
        """The error of a response that takes too long."""
        return UnacceptableResponseError(
            f"the answer was not complete after {self.deadline:g} s; give the model a longer deadline or ask for less"
        )

    async def _check(self, response: Any) -> None:
        if response.has_redirect_location:
            asked, location = response.request.url, response.headers["location"]
            target = asked.join(location)
            # Prompts hold passages: they go to the server that was configured and to no other.
            if target.host != asked.host or (asked.scheme == "https" and target.scheme != "https"):
                raise UnacceptableResponseError(
                    f"the server redirects to {target.scheme}://{target.host}; if that is right, give it as base_url"
                )
        stream = response.stream
        base = next((kind for kind in type(stream).__mro__ if kind.__name__ == "AsyncByteStream"), None)
        if base is not None:
            response.stream = _bounded(base)(stream, self, time.monotonic() + self.deadline)


@cache
def _bounded(base: type[Any]) -> type[Any]:
    """A bounded stream of the client's own kind: versions of `openai` bring different HTTP packages."""
    return type("BoundedStream", (_Bounded, base), {})


class _Bounded:
    def __init__(self, stream: Any, bounds: ResponseBounds, end: float) -> None:
        self._stream = stream
        self._bounds = bounds
        self._end = end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > self._bounds.max_bytes:
                raise UnacceptableResponseError(
                    f"the answer is longer than {self._bounds.max_bytes:,} bytes; is this a model server?"
                )
            if time.monotonic() > self._end:
                raise self._bounds.too_late()
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
