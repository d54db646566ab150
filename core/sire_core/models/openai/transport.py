"""Requests to an OpenAI-compatible server: one client per event loop, our retries, our limits."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError, ModelError
from sire_core.models.openai.connections import LoopClients, OfficialClient
from sire_core.models.openai.faults import (
    BadRequest,
    BrokenResponseError,
    TimedOut,
    explain_fault,
    headers_of,
    is_bad_request,
    is_timeout,
    is_transient,
    redact_fault,
    retries_exhausted,
    status_of,
    truncated_error,
    why_unreachable,
)
from sire_core.models.openai.responses import StreamedAnswer, require_good
from sire_core.models.openai.retry import RetryPolicy, retry_after
from sire_core.models.usage_meter import Reservation, UsageMeter, UsageSink

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from sire_core.models.openai.responses import ResponseBounds

__all__ = ["OpenAITransport"]

T = TypeVar("T")


class OpenAITransport:
    """Sends JSON and returns JSON.

    Pickled, it takes no key along: the other process finds it in its environment.

    Args:
        base_url: Address of the server; None for OpenAI's own (or the environment's).
        api_key: Key; None takes `OPENAI_API_KEY`. A server given by `base_url` may do without.
        timeout: Seconds without anything new.
        bounds: Of every response.
        retry: When to send again.
        concurrency: Most requests under way at once.
        client_options: More arguments of the official client (`default_headers`, `organization` …); with
            `azure_endpoint` the Azure client is used.
        usage: Reads (input, output) tokens from an answer, given the estimate of the former.

    Raises:
        ConfigurationError: The `openai` package is missing.
    """

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        bounds: ResponseBounds,
        retry: RetryPolicy,
        concurrency: int,
        client_options: Mapping[str, Any] | None,
        usage: Callable[[Mapping[str, Any], int], tuple[int, int]],
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise ConfigurationError('this model needs the openai package: pip install "sire-rag[openai]"')
        self.retry = retry
        self.concurrency = concurrency
        self._usage = usage
        self._jitter = retry.jitter()
        self._bounds = bounds
        settings = {"timeout": timeout, "max_retries": 0, **(client_options or {})}
        self._official = OfficialClient(base_url, api_key, settings, bounds)
        self._redactor = self._official.redactor()
        self._clients = LoopClients(self._official.make, concurrency)
        self._has_answered = False

    def __getstate__(self) -> dict[str, Any]:
        """For another process, with connections of its own; see `OfficialClient.without_key`."""
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_clients", "_redactor")}
        return {**kept, "_official": self._official.without_key()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._redactor = self._official.redactor()
        self._clients = LoopClients(self._official.make, self.concurrency)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        tokens: tuple[int, int],
        sink: UsageSink,
        *,
        may_stream: bool = False,
        tries: int = 0,
    ) -> Any:
        """Send a request until it is answered; one with `stream` in it is read to its end first.

        Args:
            path: `/chat/completions` or `/embeddings`.
            body: The request.
            tokens: Estimated tokens of the prompt and most tokens of the answer.
            sink: Who counts it.
            may_stream: Whether the caller would rather have it streamed than asked again after a time-out.
            tries: Requests that were sent for the same answer before.

        Raises:
            BadRequest: The server refuses the form of the request.
            TimedOut: See `may_stream`.
            ModelError: It failed for good.
            LimitExceededError: A limit would be passed.
        """
        client, gate = await self._clients.get()
        attempt = tries
        while True:
            async with gate:
                wave = gate.wave
                answer, fault = await self._send(client, path, body, tokens, sink)
                if fault is None:
                    gate.succeeded()
                    return self._clean(path, answer or {})
                redact_fault(fault, self._redactor)
                if may_stream and is_timeout(fault):
                    raise TimedOut(fault, attempt + 1) from fault
                wait = self._wait(fault, attempt, body)
                if status_of(fault) == 429:
                    gate.throttled(wave, wait)
            attempt += 1
            await asyncio.sleep(wait)

    async def _send(
        self, client: AsyncOpenAI, path: str, body: Mapping[str, Any], tokens: tuple[int, int], sink: UsageSink
    ) -> tuple[Any, Exception | None]:
        """Send a request once; return the answer and what went wrong."""
        streamed = StreamedAnswer()
        taken = await sink.reserve(sum(tokens))
        answer: Any = None
        fault: Exception | None = None
        try:
            if body.get("stream"):
                async with aclosing(self._pieces(client, path, body, streamed)) as pieces:
                    async for _ in pieces:
                        pass
            else:
                answer = await self._in_time(client.post(path, cast_to=object, body=dict(body)))
                if not isinstance(answer, dict):
                    answer, fault = None, BrokenResponseError("the response is not a JSON object")
                else:
                    require_good(answer)
        except Exception as error:  # noqa: BLE001 - the caller sorts it out, and raises what is not the server's fault
            fault = error
        finally:
            answer = answer or streamed.whole()  # what came of a stream that broke off was paid for
            self._settle(taken, answer, tokens[0])
        return answer, fault

    async def _in_time(self, request: Awaitable[T]) -> T:
        """Wait for a response; even one whose head comes a byte at a time."""
        try:
            if sys.version_info < (3, 11):
                return await asyncio.wait_for(request, self._bounds.deadline)
            # Stays in this task, so that what came before a connection broke is still read.
            async with asyncio.timeout(self._bounds.deadline):
                return await request
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise self._bounds.too_late() from error

    async def stream(
        self, path: str, body: Mapping[str, Any], tokens: tuple[int, int], sink: UsageSink
    ) -> AsyncGenerator[str | dict[str, Any], None]:
        """Send a request and pass its answer on while it comes; repeated as in `post`, but only until the first piece.

        Closing the generator closes the connection.

        Args:
            path: As for `post`, as for the rest.
            body: The request, with `stream` in it.
            tokens: See `post`.
            sink: Who counts it; a stream that breaks off is counted with the tokens that came.

        Yields:
            Pieces of the text, then what a server answers that does not stream.

        Raises:
            BadRequest: The server refuses the form of the request.
            ModelError: It failed for good, or broke off.
            LimitExceededError: A limit would be passed.
        """
        client, gate = await self._clients.get()
        attempt = 0
        while True:
            answer = StreamedAnswer()
            async with gate:
                wave = gate.wave
                taken = await sink.reserve(sum(tokens))
                fault: Exception | None = None
                try:
                    async with aclosing(self._pieces(client, path, body, answer)) as pieces:
                        waiting = ""  # may be the beginning of a key
                        async for piece in pieces:
                            shown, waiting = self._redactor.split(waiting + piece)
                            if shown:
                                yield shown
                        if waiting:
                            yield self._redactor.clean(waiting)
                except Exception as error:  # noqa: BLE001 - as in `post`
                    fault = error
                finally:
                    self._settle(taken, answer.whole(), tokens[0])
                if fault is None:
                    gate.succeeded()
                    break
                redact_fault(fault, self._redactor)
                if answer.text:
                    raise truncated_error(fault, answer.text) from fault
                wait = self._wait(fault, attempt, body)
                if status_of(fault) == 429:
                    gate.throttled(wave, wait)
            attempt += 1
            await asyncio.sleep(wait)
        yield self._clean(path, answer.whole() or {})

    async def _pieces(
        self, client: AsyncOpenAI, path: str, body: Mapping[str, Any], answer: StreamedAnswer
    ) -> AsyncGenerator[str, None]:
        """The text of one streamed answer, which is also collected."""
        async with aclosing(self._events(client, path, body)) as events:
            async for event in events:
                if piece := answer.add(event):
                    yield piece
                    if answer.ends_circle():
                        return  # which closes the connection, so that the server stops writing
        if not answer.ended:
            raise BrokenResponseError("the stream ended before the answer did")
        require_good(answer.whole() or {})

    async def _events(self, client: AsyncOpenAI, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The events of a stream; of a server that cannot stream its answer."""
        import openai

        request = client.post(path, cast_to=object, body=dict(body), stream=True, stream_cls=openai.AsyncStream[object])
        stream = await self._in_time(request)
        try:
            if "event-stream" in stream.response.headers.get("content-type", ""):
                async for event in stream:
                    yield event
            else:
                yield json.loads(await stream.response.aread())
        finally:
            await stream.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop and of others."""
        await self._clients.aclose()

    def _settle(self, taken: list[tuple[UsageMeter, Reservation]], answer: Any, estimate: int) -> None:
        # A request that failed is counted as a call; what it cost in tokens nobody knows.
        self._has_answered = self._has_answered or answer is not None
        read, wrote = (0, 0) if answer is None else self._usage(answer, estimate)
        for meter, reservation in taken:
            meter.settle(reservation, read, wrote)

    def _clean(self, path: str, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer without keys that the server may have sent back; vectors hold none."""
        cleaned: dict[str, Any] = answer if path == "/embeddings" else self._redactor.clean_value(answer)
        return cleaned

    def _wait(self, fault: Exception, attempt: int, body: Mapping[str, Any]) -> float:
        """Seconds before the next try, or the final error."""
        asked = retry_after(headers_of(fault))
        if is_bad_request(fault, body):
            raise BadRequest(fault) from fault
        self._has_answered = self._has_answered or bool(status_of(fault))
        if (why := why_unreachable(fault)) and not self._has_answered:  # once it has, it may only be restarting
            address = self._official.address()
            raise ModelError(f"no model server answers at {address}: {why}; start it, or check base_url") from fault
        if not is_transient(fault):
            raise ModelError(f"the model server refused the request: {explain_fault(fault)}") from fault
        if asked is not None and asked > self.retry.max_retry_after:
            raise ModelError(f"the model server asks to wait {asked:.0f} s; build again later, it resumes") from fault
        if attempt >= self.retry.max_retries:
            # What it cannot do, time and again, may be the form of the answer, or one of the texts.
            if status_of(fault) == 500 and (("response_format" in body and attempt) or "input" in body):
                raise BadRequest(fault) from fault
            raise ModelError(retries_exhausted(fault, attempt + 1)) from fault
        return self.retry.delay(attempt, asked, self._jitter)
