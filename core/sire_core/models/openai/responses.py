"""Bounds and checks of responses, and the answer that a stream of events stands for."""

from __future__ import annotations

import time
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sire_core.models.answer_parsing import loop_at
from sire_core.models.base import known_finish
from sire_core.models.openai.faults import (
    BrokenResponseError,
    UnacceptableResponseError,
    server_words,
    words_or_all,
)


@dataclass(frozen=True, slots=True)
class ResponseBounds:
    """Bounds of every response of a client."""

    deadline: float  # Most seconds from a request to the end of its response
    max_bytes: int  # Most bytes of a response

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
            url = response.request.url
            target = url.join(response.headers["location"])
            # Prompts hold passages: they go to the server that was configured and to no other.
            is_same = (target.scheme, target.netloc) == (url.scheme, url.netloc)
            if not is_same or target.userinfo not in (b"", url.userinfo):
                address = f"{target.scheme}://{target.netloc.decode('ascii', 'replace')}"
                raise UnacceptableResponseError(
                    f"the server redirects to {address}; if that is right, give it as base_url"
                )
        encoding = response.headers.pop("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", *_PACKED):
            raise UnacceptableResponseError(f"the answer is packed as {encoding[:40]!r}, which was not asked for")
        stream = response.stream
        base = next((kind for kind in type(stream).__mro__ if kind.__name__ == "AsyncByteStream"), None)
        if base is not None:
            response.stream = _bounded(base)(stream, self, time.monotonic() + self.deadline, encoding in _PACKED)


ENCODINGS = "gzip, deflate"  # Accepted encodings of responses: those that can be unpacked up to a bound
_PACKED = ("gzip", "x-gzip", "deflate")


@cache
def _bounded(base: type[Any]) -> type[Any]:
    """A bounded stream of the client's own kind: versions of `openai` bring different HTTP packages."""
    return type("BoundedStream", (_Bounded, base), {})


class _Bounded:
    """The body of a response, unpacked, up to its bounds."""

    def __init__(self, stream: Any, bounds: ResponseBounds, end: float, is_packed: bool) -> None:
        self._stream = stream
        self._bounds = bounds
        self._end = end
        # Finds out by itself which of the headers stands before the data
        self._unpacked = zlib.decompressobj(32 + zlib.MAX_WBITS) if is_packed else None

    def _unpack(self, part: bytes) -> bytes:
        """Unpack a part of the body, up to one byte more than is allowed."""
        if self._unpacked is None:
            return part
        try:
            return self._unpacked.decompress(part, self._bounds.max_bytes + 1)
        except zlib.error as error:
            raise BrokenResponseError(f"the answer cannot be unpacked ({error})") from error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for packed in self._stream:
            part = self._unpack(packed)
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


_CIRCLE = 600  # Letters that have to be repeated, and after how many more they are looked for again
_ROUNDS = 6


def joined(content: Any) -> str:
    """The text of a message's content, which some servers give in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def choice_of(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice of an answer or of an event, which may hold an error; empty without one."""
    choices = answer.get("choices")
    choice = _mapping(choices[0] if isinstance(choices, list) and choices else None)
    if error := answer.get("error") or choice.get("error"):
        raise BrokenResponseError.of(error)
    return choice


class StreamedAnswer:
    """Takes the `chat.completion.chunk`s of a stream and has the `chat.completion` they stand for."""

    def __init__(self) -> None:
        self.text = ""  # The text so far
        self._refusal = ""
        self._thoughts = ""  # name of the field in which the server puts what the model thinks
        self._finish = ""
        self._usage: Any = None
        self._other: Mapping[str, Any] = {}
        self._looked_at = 0

    def require_end(self) -> None:
        """Raise when the server has not said how the answer ends; an event that is no part of it may say why."""
        if not self._finish and server_words(self._other):
            raise BrokenResponseError.of(self._other)
        if not self._finish:
            raise BrokenResponseError("the stream ended before the answer did")

    def add(self, event: Any) -> str:
        """The piece of text of an event, which may be empty."""
        if not isinstance(event, Mapping):
            return ""
        self._usage = event.get("usage") or self._usage
        self._other = self._other if "choices" in event or "usage" in event else event
        choice = choice_of(event)
        self._finish = str(choice.get("finish_reason") or self._finish)
        delta = _mapping(choice.get("delta") or choice.get("message"))  # a server that cannot stream answers as a whole
        self._refusal += str(delta.get("refusal") or "")
        self._thoughts = self._thoughts or thoughts_of(delta)
        piece = joined(delta.get("content"))
        self.text += piece
        return piece

    def ends_circle(self) -> bool:
        """True if the answer repeats itself again and again; it then counts as cut off here, at a limit of length."""
        if len(self.text) < self._looked_at + _CIRCLE:
            return False
        self._looked_at = len(self.text)
        loop = loop_at(self.text)
        if loop is None or len(self.text) - loop[0] < max(_CIRCLE, _ROUNDS * loop[1]):
            return False
        self._finish = "length"
        return True

    def whole(self) -> dict[str, Any] | None:
        """The answer in the form of a server that does not stream; None before anything came."""
        if not (self.text or self._refusal or self._thoughts or self._finish or self._usage):
            return None
        message = {"role": "assistant", "content": self.text, "refusal": self._refusal or None}
        message |= {self._thoughts: "..."} if self._thoughts else {}
        choice = {"index": 0, "message": message, "finish_reason": self._finish or None}
        return {"choices": [choice], "usage": self._usage}


_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")


def thoughts_of(message: Mapping[str, Any]) -> str:
    """Name of the field of a message that holds what the model thought; empty where there is none."""
    parts = message.get("content")
    if isinstance(parts, list) and any(_mapping(part).get("type") in ("thinking", "reasoning") for part in parts):
        return "content"
    return next((name for name in _THOUGHTS if str(message.get(name) or "").strip()), "")


def finish_of(choice: Mapping[str, Any]) -> str:
    """Finish of an answer: `stop`, `length` or `refusal`; `stop` if the server does not state one."""
    reason = choice.get("finish_reason")
    finish = known_finish(reason)
    if finish is None:
        raise BrokenResponseError(f"the answer broke off: finish_reason is {str(reason)[:60]!r}")
    return finish


def require_good(answer: Mapping[str, Any]) -> None:
    """Raise when a response of status 200 holds an error, or an answer that broke off."""
    finish_of(choice_of(answer))
    if "choices" in answer and not answer["choices"]:
        raise BrokenResponseError(f"the response has no message: {words_or_all(answer)}")
