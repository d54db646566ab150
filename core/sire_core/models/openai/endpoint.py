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
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from sire_core.errors import ConfigurationError, ModelError
from sire_core.models.openai.faults import (
    AdaptiveGate,
    BrokenResponseError,
    Redactor,
    RetryPolicy,
    explain_fault,
    is_bad_request,
    is_transient,
    redact_fault,
    retry_after,
    spoils_an_answer,
    status_of,
    why_unreachable,
    words_or_all,
)
from sire_core.models.openai.responses import ENCODINGS, ResponseBounds, StreamedAnswer, require_good
from sire_core.models.usage import UsageLimits
from sire_core.models.usage_meter import UsageMeter, counted

if TYPE_CHECKING:
    import ssl

    from openai import AsyncOpenAI
    from typing_extensions import Self


T = TypeVar("T")
_PLAIN_OPTIONS = frozenset(
    {"timeout", "max_retries", "organization", "project", "azure_endpoint", "api_version", "azure_deployment"}
)
"""Options of the official client that hold no keys."""

_LOCAL_KEY = "unused"  # servers of one's own take any key
_CLOSE_SECONDS = 1.0  # At the end of a process, closing must not hold it up for long
_Links = dict[asyncio.AbstractEventLoop, tuple[Any, AdaptiveGate]]


class Connections:
    """Clients of the official package, one for each event loop: connections belong to the loop that opened them.

    Closed by `aclose`, and otherwise when this object goes or the process ends, so that scripts that use the sync face
    leave no open sockets behind. A pickle holds no key: the other process finds it in its environment.
    """

    def __init__(
        self,
        base_url: str | None,  # Address of the server; None for OpenAI's own (or the environment's)
        api_key: str | None,  # Key; None takes `OPENAI_API_KEY`
        settings: Mapping[str, Any],  # More arguments of the official client, `timeout` among them
        bounds: ResponseBounds,  # Of every response
        concurrency: int,
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._settings = settings
        self._bounds = bounds
        self._concurrency = concurrency
        self._url = _parsed(base_url, settings.get("base_url"), settings.get("azure_endpoint"))
        self._credentials = ""  # `user:password` of the address
        if (url := self._url) is not None and (url.username or url.password) and "azure_endpoint" not in settings:
            self._credentials = f"{unquote(url.username or '')}:{unquote(url.password or '')}"
        if self._credentials and api_key is not None:
            raise ConfigurationError("base_url holds a user or password: leave them out, or leave api_key out.")
        AdaptiveGate(concurrency)  # complain now, not at the first call
        self.redactor = self._make_redactor()
        self.has_answered = False  # Whether the server has ever answered, to whichever client
        self._lock = threading.Lock()
        self._links: _Links = {}
        weakref.finalize(self, _close_all, self._links)

    @property
    def address(self) -> str:
        """Host and port that requests go to, without what an address may hold of passwords."""
        return "api.openai.com" if self._url is None else self._url.netloc.rpartition("@")[2]

    def _given_keys(self) -> list[Any]:
        """Arguments that may hold keys."""
        return [self._api_key, *(value for name, value in self._settings.items() if name not in _PLAIN_OPTIONS)]

    def _make_redactor(self) -> Redactor:
        headers = self._settings.get("default_headers") or {}
        texts = [value for value in (*self._given_keys(), *headers.values()) if isinstance(value, str)]
        if self._url is not None and self._url.password:
            texts += [self._url.password, unquote(self._url.password), _base64(self._credentials)]
        keys = (text.removeprefix("Bearer ").strip() for text in texts)
        return Redactor(os.environ.get("OPENAI_API_KEY"), *keys)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process; refused with a key that is not the environment's, which the pickle would show."""
        has_key = any(value is not None and value != os.environ.get("OPENAI_API_KEY") for value in self._given_keys())
        if has_key or (self._base_url and self._credentials):
            raise ConfigurationError(
                "A model that was given its key (api_key, a password in base_url, headers or tokens in client_options) "
                "is not sent to another process: the message would hold the key. Set OPENAI_API_KEY in "
                "both processes and leave the key out, or make the model there."
            )
        settings = {name: value for name, value in self._settings.items() if name in _PLAIN_OPTIONS}
        return Connections, (self._base_url, None, settings, self._bounds, self._concurrency)

    async def get(self) -> tuple[Any, AdaptiveGate]:
        """The client and the gate of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop in self._links:
                return self._links[loop]
            dead = [self._links.pop(other) for other in list(self._links) if other.is_closed()]
            link = self._links[loop] = self._make_client(), AdaptiveGate(self._concurrency)
        for client, _ in dead:
            with contextlib.suppress(Exception):  # its loop is gone, and took the sockets along
                await _closed(client)
        return link

    def _make_client(self) -> AsyncOpenAI:
        import openai

        options = dict(self._settings)
        if self._api_key is not None:
            options["api_key"] = self._api_key
        elif self._credentials or (
            (self._base_url or os.environ.get("OPENAI_BASE_URL")) and not os.environ.get("OPENAI_API_KEY")
        ):
            options.setdefault("api_key", _LOCAL_KEY)
        headers = {"Accept-Encoding": ENCODINGS, **(options.get("default_headers") or {})}
        if self._url is not None and "azure_endpoint" not in options:
            options["base_url"] = self._url._replace(netloc=self.address).geturl()
        if self._credentials:  # clients refuse an address with a password beside their own header
            headers.setdefault("Authorization", f"Basic {_base64(self._credentials)}")
        if "http_client" not in options:
            options["http_client"] = _http_client(options["timeout"])
        self._bounds.apply(options["http_client"])
        options["default_headers"] = headers
        try:
            if "azure_endpoint" in options:
                return openai.AsyncAzureOpenAI(**options)
            return openai.AsyncOpenAI(**options)
        except (openai.OpenAIError, TypeError, ValueError) as error:
            raise ConfigurationError(f"the OpenAI client cannot be made: {error}") from error

    async def aclose(self) -> None:
        """Close the clients of this loop and of all others."""
        with self._lock:
            links = dict(self._links)
            self._links.clear()
        for loop, (client, _) in links.items():
            with contextlib.suppress(Exception):  # another loop may stop at any moment
                if loop.is_running() and loop is not asyncio.get_running_loop():
                    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_closed(client), loop))
                else:
                    await _closed(client)


def _parsed(*addresses: object) -> SplitResult | None:
    """The first address that is given, or the environment's; None for OpenAI's own."""
    address = next(filter(None, (*addresses, os.environ.get("OPENAI_BASE_URL"))), None)
    if address is None:
        return None
    with contextlib.suppress(ValueError):
        url = urlsplit(str(address))
        if url.scheme in ("http", "https") and url.hostname and url.port != 0:
            return url
    raise ConfigurationError(
        f"The address of the model server, {str(address).rpartition('@')[2]!r}, is no http address. It looks like "
        "http://localhost:8000/v1; special characters of a user or password in it are percent-encoded (/ is %2F)."
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _http_client(timeout: float) -> Any:
    """The official aiohttp client, which the extra `openai` brings; with a proxy, or without aiohttp, that of httpx."""
    import openai

    certificates = _trusted_certificates(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    if not urllib.request.getproxies():
        with contextlib.suppress(RuntimeError, AttributeError):  # without aiohttp; in older versions of the package
            return openai.DefaultAioHttpClient(timeout=timeout, verify=certificates)
    return openai.DefaultAsyncHttpxClient(timeout=timeout, verify=certificates)


@lru_cache(maxsize=1)
def _trusted_certificates(*_places: str | None) -> ssl.SSLContext:
    """Certificates that clients trust by default; each would read them anew. From openai 3 on httpx is httpx2."""
    import openai

    httpx = import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
    certificates: ssl.SSLContext = httpx.create_ssl_context()
    return certificates


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
                open_loop = asyncio.new_event_loop() if loop.is_closed() else loop
                open_loop.run_until_complete(asyncio.wait_for(_closed(client), _CLOSE_SECONDS))
                if open_loop is not loop:
                    open_loop.close()
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


class ServerOptions(TypedDict, total=False):
    """Options of every model behind a server.

    Attributes:
        base_url: Address of the server; None means OpenAI's.
        api_key: The key; None uses `OPENAI_API_KEY`.
        max_retries: Maximum retries of a failed request; 6 by default.
        retry: The whole back-off policy; overrides `max_retries`.
        limits: Limits of calls and tokens, counted on `meter`.
        concurrency: Maximum concurrent requests; 8 by default.
        client_options: Additional arguments of the official client; `azure_endpoint` and `api_version` for Azure.
    """

    base_url: str | None
    api_key: str | None
    max_retries: int
    retry: RetryPolicy | None
    limits: UsageLimits | None
    concurrency: int
    client_options: Mapping[str, Any] | None


class OpenAIEndpoint:
    """A model behind a server; `stage` names what requests are counted as. For the other arguments see `OpenAIChat`."""

    def __init__(
        self,
        model: str,
        *,
        timeout: float,
        bounds: ResponseBounds,
        stage: str = "",
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int = 6,
        retry: RetryPolicy | None = None,
        limits: UsageLimits | None = None,
        concurrency: int = 8,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        if not model:
            raise ConfigurationError(f"name the model: {type(self).__name__}('NAME')")
        if importlib.util.find_spec("openai") is None:
            raise ConfigurationError('this model needs the openai package: pip install "sire-rag[openai]"')
        self.model = model
        self.concurrency = concurrency
        self.meter = UsageMeter(limits)
        self._meters: tuple[tuple[UsageMeter, str], ...] = ((self.meter, stage),)
        self._bounds = bounds
        self._retry = retry or RetryPolicy(max_retries=max_retries)
        self._jitter = self._retry.jitter()
        settings = {"timeout": timeout, "max_retries": 0, **(client_options or {})}
        self._connections = Connections(base_url, api_key, settings, bounds, concurrency)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    async def aclose(self) -> None:
        """Close the connections. The model may be used again afterwards."""
        await self._connections.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
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
        client, gate = await self._connections.get()
        tries = 0
        while True:
            form.prepare()
            async with self._request(gate, form) as sent:
                waiting = ""  # may be the beginning of a key
                async with aclosing(self._pieces(client, form, sent)) as pieces:
                    async for piece in pieces:
                        if pass_on:
                            shown, waiting = self._connections.redactor.split(waiting + piece)
                            if shown:
                                yield shown
                if waiting:
                    yield self._connections.redactor.clean(waiting)
            if sent.fault is None:
                break
            if pass_on and sent.streamed.text:  # which is passed on already, so that it is not asked for again
                is_transient(sent.fault)  # raises what is no fault of the server
                raise ModelError(
                    f"the model's answer broke off after {len(sent.streamed.text)} characters: "
                    f"{explain_fault(sent.fault)}; nothing of it was stored, ask again"
                ) from sent.fault
            tries = await self._pause(gate, sent, tries, form)
        yield sent.answer or {}

    @asynccontextmanager
    async def _request(self, gate: AdaptiveGate, form: RequestForm) -> AsyncGenerator[_Try, None]:
        """Room for one request, which is counted whatever happens; its fault is noted, its answer holds no keys."""
        async with gate, counted(self._meters, *form.size) as used:
            sent = _Try(gate.wave)
            try:
                yield sent
                gate.succeeded()
            except Exception as error:  # noqa: BLE001 - sorted out by the caller; what is not the server's fault is raised
                redact_fault(error, self._connections.redactor)
                sent.fault = error
            finally:
                answer = sent.answer or sent.streamed.whole()  # what came of a stream that broke off was paid for
                if answer is not None:  # a request that failed is counted as a call; its tokens nobody knows
                    self._connections.has_answered = True
                    used[:2] = form.used(answer)
                # Vectors hold no keys.
                sent.answer = answer if form.path == "/embeddings" else self._connections.redactor.clean_value(answer)

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
        sent.streamed.require_end()
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
        headers = getattr(getattr(fault, "response", None), "headers", None)
        status, is_last, seconds = status_of(fault), tries >= self._retry.max_retries, retry_after(headers or {})
        is_refused = is_bad_request(fault, form.body)
        if is_last:  # what it cannot do, time and again, may be the form of the answer, or one of the texts
            is_refused |= bool(status in (500, 503) and "response_format" in form.body and tries)
            is_refused |= "input" in form.body and spoils_an_answer(fault)
        if form.adapts(fault, is_refused=is_refused):
            return 0
        self._connections.has_answered |= bool(status)
        if (
            why := why_unreachable(fault)
        ) and not self._connections.has_answered:  # once it has, it may only be restarting
            address = self._connections.address
            raise ModelError(f"no model server answers at {address}: {why}") from fault
        if is_refused or not is_transient(fault):
            raise ModelError(f"the model server refused the request: {explain_fault(fault)}") from fault
        if seconds is not None and seconds > self._retry.max_retry_after:
            raise ModelError(f"the model server asks to wait {seconds:.0f} s; build again later, it resumes") from fault
        if is_last:
            raise ModelError(
                f"the model server failed {tries + 1} times, last with: {explain_fault(fault)}; nothing of it was "
                "stored, the same command asks again"
            ) from fault
        wait = self._retry.delay(tries, seconds, self._jitter)
        if status == 429:
            gate.throttled(sent.wave, wait)
        await asyncio.sleep(wait)
        return tries + 1
