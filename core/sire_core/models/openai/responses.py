"""What an OpenAI-compatible server may send and answers: events of a stream, and faults worth another try."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sire_core.errors import ModelError
from sire_core.models.plain_answers import loop_at

__all__ = [
    "REQUEST_FAULTS",
    "BadRequest",
    "BrokenResponseError",
    "ResponseBounds",
    "StreamedAnswer",
    "TimedOut",
    "UnacceptableResponseError",
    "broken_off",
    "explain_fault",
    "gave_up",
    "headers_of",
    "is_timeout",
    "is_transient",
    "joined",
    "status_of",
    "unacceptable",
]


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


_CIRCLE = 600
"""Letters that have to be repeated, and after how many more they are looked for again."""
_ROUNDS = 6


def joined(content: Any) -> str:
    """The text of a message's content, which some servers give in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


class StreamedAnswer:
    """Takes the `chat.completion.chunk`s of a stream and has the `chat.completion` they stand for.

    Attributes:
        text: The text so far.
    """

    def __init__(self) -> None:
        self.text = ""
        self._refusal = ""
        self._finish = ""
        self._usage: Any = None
        self._looked_at = 0

    @property
    def ended(self) -> bool:
        """Whether the server has said how the answer ends; a stream without that was cut off."""
        return bool(self._finish)

    def add(self, event: Any) -> str:
        """The piece of text of an event, which may be empty."""
        if not isinstance(event, Mapping):
            return ""
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        choice = _mapping(choices[0] if isinstance(choices, list) and choices else None)
        self._finish = str(choice.get("finish_reason") or self._finish)
        delta = _mapping(choice.get("delta") or choice.get("message"))  # a server that cannot stream answers as a whole
        self._refusal += str(delta.get("refusal") or "")
        piece = joined(delta.get("content"))
        self.text += piece
        return piece

    def ends_circle(self) -> bool:
        """Whether the answer repeats itself again and again; it then counts as cut off here, at a limit of length.

        Small models do that until the limit, for minutes. Looked for after every few hundred letters.
        """
        if len(self.text) < self._looked_at + _CIRCLE:
            return False
        self._looked_at = len(self.text)
        loop = loop_at(self.text)
        if loop is None or len(self.text) - loop[0] < max(_CIRCLE, _ROUNDS * loop[1]):
            return False
        self._finish = "length"
        return True

    def whole(self) -> dict[str, Any] | None:
        """What a server answers that does not stream; None before anything came."""
        if not (self.text or self._refusal or self._finish or self._usage):
            return None
        message = {"role": "assistant", "content": self.text, "refusal": self._refusal or None}
        choice = {"index": 0, "message": message, "finish_reason": self._finish or None}
        return {"choices": [choice], "usage": self._usage}


REQUEST_FAULTS = frozenset({400, 404, 413, 415, 422, 501})
"""Statuses of servers that do not like the form of a request."""

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 524, 529})
_READ_FAULTS = frozenset({"TransportError", "ClientError"})  # of httpx, httpx2 and aiohttp, while a body is read


_WRAPPED = 8


class TimedOut(ModelError):  # noqa: N818 - an internal signal, as below
    """Nothing came for as long as one waits; a model that is slow, but streams, would have been heard of.

    Args:
        fault: What the client raised.
        tries: Requests that were sent so far; they count against the repetitions of the streamed ones.
    """

    def __init__(self, fault: Exception, tries: int) -> None:
        super().__init__(gave_up(fault, tries))
        self.tries = tries


class BadRequest(ModelError):  # noqa: N818 - an internal signal; users see the ModelError that it is
    """The server refused the form of the request; carries what it said."""


class BrokenResponseError(Exception):
    """A response that is not what it should be; the server may do better next time."""


def gave_up(fault: Exception, tries: int) -> str:
    """What an error says after the last try."""
    return (
        f"the model server failed {tries} times, last with: {explain_fault(fault)}; nothing of it was stored, "
        f"the same command asks again"
    )


def broken_off(fault: Exception, text: str) -> ModelError:
    """The error of a stream that broke after its first pieces: they are passed on already, so it is not repeated."""
    is_transient(fault)  # raises what is no fault of the server
    return ModelError(
        f"the model's answer broke off after {len(text)} characters: {explain_fault(fault)}; "
        f"nothing of it was stored, ask again"
    )


def status_of(fault: Exception) -> int:
    """HTTP status of a refusal, which may also come as an event of a stream; 0 for everything else."""
    body = getattr(fault, "body", None)
    code = getattr(fault, "status_code", None) or (body.get("code") if isinstance(body, dict) else None)
    return code if isinstance(code, int) else 0


def headers_of(fault: Exception) -> Mapping[str, str]:
    """Headers of a refusal."""
    response = getattr(fault, "response", None)
    return getattr(response, "headers", None) or {}


def is_transient(fault: Exception) -> bool:
    """Whether the same request may succeed later.

    Raises:
        Exception: `fault` itself, when it has nothing to do with the server.
    """
    import openai

    if status_of(fault):
        # A spent account answers 429 too, and will not recover by waiting.
        return status_of(fault) in _TRANSIENT and getattr(fault, "code", None) != "insufficient_quota"
    if unacceptable(fault) is not None:
        return False
    if any(kind.__name__ in _READ_FAULTS for kind in type(fault).__mro__):
        return True
    # Reset, time-out, half a body; no JSON, or nested too deeply, or with a number too long.
    if isinstance(fault, openai.APIConnectionError | ValueError | RecursionError | BrokenResponseError):
        return True
    if isinstance(fault, openai.APIError):
        return False
    raise fault


def is_timeout(fault: Exception) -> bool:
    """Whether the server took the request and nothing came for as long as one waits.

    A connection that breaks is none, though aiohttp's adapter calls it a time-out of connecting.
    """
    import openai

    timed_out = any(type(cause).__name__ == "ReadTimeout" for cause in _causes(fault))
    return timed_out and isinstance(fault, openai.APITimeoutError) and unacceptable(fault) is None


def unacceptable(fault: BaseException | None) -> UnacceptableResponseError | None:
    """The bound that a response broke, if that is behind a fault; clients wrap it in errors of their own."""
    return next((cause for cause in _causes(fault) if isinstance(cause, UnacceptableResponseError)), None)


def _causes(fault: BaseException | None) -> Iterator[BaseException]:
    """A fault and what is behind it."""
    for _ in range(_WRAPPED):
        if fault is None:
            return
        yield fault
        fault = fault.__cause__ or fault.__context__


def explain_fault(fault: Exception) -> str:
    """What happened, for people."""
    if (broken := unacceptable(fault)) is not None:
        return str(broken)
    body = getattr(fault, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    *_, root = _causes(fault)
    detail = f"{type(root).__name__}: {root}" if str(root) else type(root).__name__
    cause = f" ({detail[:200]})" if fault.__cause__ is not None else ""
    status = f"HTTP {status_of(fault)}: " if status_of(fault) else ""
    return f"{status}{str(message or fault or type(fault).__name__)[:300]}{cause}"
