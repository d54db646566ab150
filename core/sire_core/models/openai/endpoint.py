"""Connections and requests to an OpenAI-compatible server: our retries and limits over the official client."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib.util
import json
import os
import sys
import threading
import urllib.request
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from sire_core.errors import ConfigurationError, ModelError
from sire_core.models.openai.faults import (
    AdaptiveGate,
    BrokenResponseError,
    Redactor,
    RetryPolicy,
    explain_fault,
    headers_of,
    is_bad_request,
    is_transient,
    redact_fault,
    retries_exhausted,
    retry_after,
    spoils_an_answer,
    status_of,
    truncated_error,
    why_unreachable,
    words_or_all,
)
from sire_core.models.openai.responses import ENCODINGS, ResponseBounds, StreamedAnswer, require_good
from sire_core.models.usage import UsageLimits
from sire_core.models.usage_meter import UsageMeter, UsageSink

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from typing_extensions import Self


T = TypeVar("T")
_PLAIN = frozenset(
    {"timeout", "max_retries", "organization", "project", "azure_endpoint", "api_version", "azure_deployment"}
)
"""Options of the official client that hold no keys."""

_LOCAL_KEY = "unused"  # servers of one's own take any key


@dataclass(frozen=True, slots=True)
class OfficialClient:
    """The arguments of the official client."""

    base_url: str | None  # Address of the server; None for OpenAI's own (or the environment's)
    api_key: str | None  # Key; None takes `OPENAI_API_KEY`
    settings: Mapping[str, Any]  # More arguments, `timeout` among them
    bounds: ResponseBounds  # Of every response

    def __post_init__(self) -> None:
        if self._credentials() and self.api_key is not None:
            raise ConfigurationError("base_url holds a user or password: leave them out, or leave api_key out.")

    def make(self) -> AsyncOpenAI:
        """A client for the running event loop."""
        import openai

        options = dict(self.settings)
        if self.api_key is not None:
            options["api_key"] = self.api_key
        elif (self.base_url or os.environ.get("OPENAI_BASE_URL")) and not os.environ.get("OPENAI_API_KEY"):
            options.setdefault("api_key", _LOCAL_KEY)
        headers = {"Accept-Encoding": ENCODINGS, **(options.get("default_headers") or {})}
        if (url := self._url()) is not None and "azure_endpoint" not in options:
            options["base_url"] = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
        if credentials := self._credentials():  # clients refuse an address with a password beside their own header
            options.setdefault("api_key", _LOCAL_KEY)
            headers.setdefault("Authorization", f"Basic {base64.b64encode(credentials.encode()).decode('ascii')}")
        if "http_client" not in options:
            make = openai.DefaultAsyncHttpxClient
            options["http_client"] = _fast_http_client(options["timeout"]) or make(timeout=options["timeout"])
        self.bounds.apply(options["http_client"])
        options["default_headers"] = headers
        try:
            if "azure_endpoint" in options:
                return openai.AsyncAzureOpenAI(**options)
            return openai.AsyncOpenAI(**options)
        except (openai.OpenAIError, TypeError, ValueError) as error:
            raise ConfigurationError(f"the OpenAI client cannot be made: {error}") from error

    def _url(self) -> SplitResult | None:
        """The address that was given, parsed; None for OpenAI's own."""
        given = (
            self.base_url,
            *map(self.settings.get, ("base_url", "azure_endpoint")),
            os.environ.get("OPENAI_BASE_URL"),
        )
        if (address := next(filter(None, given), None)) is None:
            return None
        with contextlib.suppress(ValueError):
            url = urlsplit(str(address))
            if url.scheme in ("http", "https") and url.hostname and url.port != 0:
                return url
        raise ConfigurationError(
            f"The address of the model server, {str(address).rpartition('@')[2]!r}, is no http address. It looks like "
            "http://localhost:8000/v1; special characters of a user or password in it are percent-encoded (/ is %2F)."
        )

    def _credentials(self) -> str:
        """`user:password` of the address; empty if it has none."""
        url = self._url()
        named = url is not None and (url.username or url.password) and "azure_endpoint" not in self.settings
        return f"{unquote(url.username or '')}:{unquote(url.password or '')}" if url is not None and named else ""

    def address(self) -> str:
        """Host and port that requests go to, without what an address may hold of passwords."""
        url = self._url()
        return "api.openai.com" if url is None else url.netloc.rpartition("@")[2]

    def redactor(self) -> Redactor:
        """Removes the keys of these arguments and of the environment from texts."""
        headers = self.settings.get("default_headers") or {}
        given = [value for name, value in self.settings.items() if name not in _PLAIN]
        url, credentials = self._url(), self._credentials()
        texts = [value for value in (*given, *headers.values()) if isinstance(value, str)]
        if url is not None and url.password:
            encoded = base64.b64encode(credentials.encode()).decode("ascii")
            texts += [url.password, credentials.partition(":")[2], encoded]
        return Redactor(self.api_key, os.environ.get("OPENAI_API_KEY"), *map(_bare, texts))

    def without_key(self) -> OfficialClient:
        """The same for another process; refused with a key that is not the environment's, which a pickle would show."""
        given = [self.api_key, *(value for name, value in self.settings.items() if name not in _PLAIN)]
        own = any(value is not None and value != os.environ.get("OPENAI_API_KEY") for value in given)
        if own or (self.base_url and self._credentials()):
            raise ConfigurationError(
                "A model that was given its key (api_key, a password in base_url, headers or tokens in client_options) "
                "is not sent to another process: the message would hold the key. Set OPENAI_API_KEY in "
                "both processes and leave the key out, or make the model there."
            )
        return replace(
            self, api_key=None, settings={name: value for name, value in self.settings.items() if name in _PLAIN}
        )


def _bare(value: str) -> str:
    """The key in the value of a header."""
    return value.removeprefix("Bearer ").strip()


def _fast_http_client(timeout: float) -> Any:
    """The official aiohttp client, which the extra `openai` brings."""
    import openai

    make = getattr(openai, "DefaultAioHttpClient", None)
    if make is None or urllib.request.getproxies():
        return None
    try:
        return make(timeout=timeout)
    except RuntimeError:
        return None


# At the end of a process, closing must not hold it up for long.
_CLOSE_SECONDS = 1.0


_Links = dict[asyncio.AbstractEventLoop, tuple[Any, AdaptiveGate]]


class LoopClients:
    """Makes a client and a gate for the event loop that asks, since connections belong to the loop that opened them.

    Clients are closed by `aclose`, and otherwise when this object goes or the process ends, so that scripts that use
    the sync face do not leave open sockets behind.
    """

    def __init__(self, make: Callable[[], Any], concurrency: int) -> None:
        self._make = make
        self._concurrency = concurrency
        self._lock = threading.Lock()
        self._links: _Links = {}
        self.has_answered = False  # Whether the server has ever answered, to whichever client
        AdaptiveGate(concurrency)  # complain now, not at the first call
        weakref.finalize(self, _close_all, self._links)

    async def get(self) -> tuple[Any, AdaptiveGate]:
        """The client and the gate of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop in self._links:
                return self._links[loop]
            dead = [self._links.pop(other) for other in list(self._links) if other.is_closed()]
            link = self._links[loop] = self._make(), AdaptiveGate(self._concurrency)
        for client, _ in dead:
            with contextlib.suppress(Exception):  # its loop is gone, and took the sockets along
                await _closed(client)
        return link

    async def aclose(self) -> None:
        """Close the clients of this loop and of all others."""
        with self._lock:
            links = dict(self._links)
            self._links.clear()
        here = asyncio.get_running_loop()
        for loop, (client, _) in links.items():
            if loop is here:
                await _closed(client)
                continue
            with contextlib.suppress(Exception):  # another loop may stop at any moment
                if loop.is_running():
                    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_closed(client), loop))
                else:
                    await _closed(client)


async def _closed(client: Any) -> None:
    """Close a client, and let the loop close its sockets: transports do so in its next turn."""
    await client.close()
    await asyncio.sleep(0)


def _close_all(links: _Links) -> None:
    """Close what is left, from wherever the last reference or the process ends."""
    in_loop = asyncio._get_running_loop()  # noqa: SLF001 - the public function raises where there is none
    for loop, (client, _) in links.items():
        with contextlib.suppress(Exception):
            if loop.is_running():
                done = asyncio.run_coroutine_threadsafe(_closed(client), loop)
                if in_loop is None:
                    done.result(_CLOSE_SECONDS)
            elif in_loop is None:
                own = asyncio.new_event_loop() if loop.is_closed() else loop
                own.run_until_complete(asyncio.wait_for(_closed(client), _CLOSE_SECONDS))
                if own is not loop:
                    own.close()
    links.clear()


@dataclass(slots=True)
class _Try:
    """One request of those that an answer takes."""

    wave: int
    answer: dict[str, Any] | None = None
    streamed: StreamedAnswer = field(default_factory=StreamedAnswer)
    fault: Exception | None = None


class RequestForm(ABC):
    """One request, in the form that the server is known to take; it may be prepared again after a fault."""

    path: str
    body: dict[str, Any]
    size: tuple[int, int | None]  # Tokens of the prompt, and most tokens of the answer (None: unbounded)

    @abstractmethod
    def prepare(self) -> None:
        """Set `body` and `size`."""

    @abstractmethod
    def adapts(self, fault: Exception, *, is_refused: bool) -> bool:
        """Learn from a fault, which may be a refusal of the body; whether another form is to be tried at once."""

    @abstractmethod
    def used(self, answer: Mapping[str, Any]) -> tuple[int, int]:
        """Tokens (input, output) of an answer as the server counts them, where that can be, else estimated."""


class OpenAIEndpoint:
    """A model behind a server; see `OpenAIChat` for the arguments.

    A pickle holds no key: the other process finds it in its environment. `stage` names what requests are counted as.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        bounds: ResponseBounds,
        retry: RetryPolicy,
        limits: UsageLimits | None,
        concurrency: int,
        client_options: Mapping[str, Any] | None,
        stage: str = "",
    ) -> None:
        if not model:
            raise ConfigurationError(f"name the model: {type(self).__name__}('NAME')")
        if importlib.util.find_spec("openai") is None:
            raise ConfigurationError('this model needs the openai package: pip install "sire-rag[openai]"')
        self.model = model
        self.concurrency = concurrency
        self.meter = UsageMeter(limits)
        self._sink = UsageSink(((self.meter, stage),))
        self._bounds = bounds
        self._retry = retry
        self._jitter = retry.jitter()
        settings = {"timeout": timeout, "max_retries": 0, **(client_options or {})}
        self._official = OfficialClient(base_url, api_key, settings, bounds)
        self._connect()

    def _connect(self) -> None:
        self._redactor = self._official.redactor()
        self._clients = LoopClients(self._official.make, self.concurrency)

    def __getstate__(self) -> dict[str, Any]:
        """For another process, with connections of its own; see `OfficialClient.without_key`."""
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_clients", "_redactor")}
        return {**kept, "_official": self._official.without_key()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._connect()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    async def aclose(self) -> None:
        """Close the connections. The model may be used again afterwards."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def post(self, form: RequestForm) -> dict[str, Any]:
        """The answer to a request; a streamed one is read to its end first."""
        answer: dict[str, Any] = {}
        async with aclosing(self.post_stream(form, pass_on=False)) as parts:
            async for part in parts:
                answer = part if isinstance(part, dict) else answer
        return answer

    async def post_stream(
        self, form: RequestForm, *, pass_on: bool = True
    ) -> AsyncGenerator[str | dict[str, Any], None]:
        """The pieces of a streamed answer, then the whole of it; asked for again until it is whole or a piece is out.

        Closing the generator closes the connection. A stream that breaks off is counted with the tokens that came.
        """
        client, gate = await self._clients.get()
        tries = 0
        while True:
            form.prepare()
            async with self._request(gate, form) as sent:
                waiting = ""  # may be the beginning of a key
                async with aclosing(self._pieces(client, form, sent)) as pieces:
                    async for piece in pieces:
                        if pass_on:
                            shown, waiting = self._redactor.split(waiting + piece)
                            if shown:
                                yield shown
                if waiting:
                    yield self._redactor.clean(waiting)
            if sent.fault is None:
                break
            if pass_on and sent.streamed.text:
                raise truncated_error(sent.fault, sent.streamed.text) from sent.fault
            tries = await self._pause(gate, sent, tries, form)
        yield sent.answer or {}

    @asynccontextmanager
    async def _request(self, gate: AdaptiveGate, form: RequestForm) -> AsyncGenerator[_Try, None]:
        """Room for one request, which is counted whatever happens; its fault is noted, its answer holds no keys."""
        async with gate, self._sink.counted(*form.size) as used:
            sent = _Try(gate.wave)
            try:
                yield sent
                gate.succeeded()
            except Exception as error:  # noqa: BLE001 - sorted out by the caller; what is not the server's fault is raised
                redact_fault(error, self._redactor)
                sent.fault = error
            finally:
                answer = sent.answer or sent.streamed.whole()  # what came of a stream that broke off was paid for
                if answer is not None:  # a request that failed is counted as a call; its tokens nobody knows
                    self._clients.has_answered = True
                    used[:2] = form.used(answer)
                # Vectors hold no keys.
                sent.answer = answer if form.path == "/embeddings" else self._redactor.clean_value(answer)

    async def _pieces(self, client: AsyncOpenAI, form: RequestForm, sent: _Try) -> AsyncGenerator[str, None]:
        """Send one request and read its answer to the end; the text of a streamed one as it comes."""
        if not form.body.get("stream"):
            answer = await self._in_time(client.post(form.path, cast_to=object, body=form.body))
            if not isinstance(answer, dict):
                raise BrokenResponseError(f"the response is not a JSON object: {words_or_all(answer)}")
            sent.answer = answer
            require_good(answer)
            return
        async with aclosing(self._events(client, form)) as events:
            async for event in events:
                if piece := sent.streamed.add(event):
                    yield piece
                    if sent.streamed.ends_circle():
                        return  # which closes the connection, so that the server stops writing
        if not sent.streamed.ended:
            raise sent.streamed.broken_off()
        require_good(sent.streamed.whole() or {})

    async def _events(self, client: AsyncOpenAI, form: RequestForm) -> AsyncGenerator[Any, None]:
        """The events of a stream; of a server that cannot stream its answer."""
        import openai

        kind = openai.AsyncStream[object]
        stream = await self._in_time(
            client.post(form.path, cast_to=object, body=form.body, stream=True, stream_cls=kind)
        )
        try:
            if "event-stream" in stream.response.headers.get("content-type", ""):
                async for event in stream:
                    yield event
            else:
                yield json.loads(await stream.response.aread())
        finally:
            await stream.close()

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

    async def _pause(self, gate: AdaptiveGate, sent: _Try, tries: int, form: RequestForm) -> int:
        """Wait before the next try, and count it; or raise the final error. Another form is tried at once."""
        fault = sent.fault
        assert fault is not None
        status, is_last, asked = status_of(fault), tries >= self._retry.max_retries, retry_after(headers_of(fault))
        is_refused = is_bad_request(fault, form.body)
        if is_last:  # what it cannot do, time and again, may be the form of the answer, or one of the texts
            is_refused |= bool(status == 500 and "response_format" in form.body and tries)
            is_refused |= "input" in form.body and spoils_an_answer(fault)
        if form.adapts(fault, is_refused=is_refused):
            return 0
        self._clients.has_answered |= bool(status)
        if (why := why_unreachable(fault)) and not self._clients.has_answered:  # once it has, it may only be restarting
            address = self._official.address()
            raise ModelError(f"no model server answers at {address}: {why}; start it, or check base_url") from fault
        if is_refused or not is_transient(fault):
            raise ModelError(f"the model server refused the request: {explain_fault(fault)}") from fault
        if asked is not None and asked > self._retry.max_retry_after:
            raise ModelError(f"the model server asks to wait {asked:.0f} s; build again later, it resumes") from fault
        if is_last:
            raise ModelError(retries_exhausted(fault, tries + 1)) from fault
        wait = self._retry.delay(tries, asked, self._jitter)
        if status == 429:
            gate.throttled(sent.wave, wait)
        await asyncio.sleep(wait)
        return tries + 1
