"""Official clients of OpenAI: how one is made, and one per event loop."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import threading
import urllib.request
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from sire_core.errors import ConfigurationError
from sire_core.models.openai.faults import Redactor
from sire_core.models.openai.responses import ENCODINGS
from sire_core.models.openai.retry import AdaptiveGate

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from sire_core.models.openai.responses import ResponseBounds

_PLAIN = frozenset(
    {"timeout", "max_retries", "organization", "project", "azure_endpoint", "api_version", "azure_deployment"}
)
"""Options of the official client that hold no keys."""

_LOCAL_KEY = "unused"  # servers of one's own take any key


@dataclass(frozen=True, slots=True)
class OfficialClient:
    """The arguments of the official client.

    Attributes:
        base_url: Address of the server; None for OpenAI's own (or the environment's).
        api_key: Key; None takes `OPENAI_API_KEY`.
        settings: More arguments, `timeout` among them.
        bounds: Of every response.
    """

    base_url: str | None
    api_key: str | None
    settings: Mapping[str, Any]
    bounds: ResponseBounds

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


@dataclass(frozen=True, slots=True)
class _Link:
    client: Any
    gate: AdaptiveGate


_Links = dict[asyncio.AbstractEventLoop, _Link]


class LoopClients:
    """Makes a client and a gate for the event loop that asks, since connections belong to the loop that opened them.

    Clients are closed by `aclose`, and otherwise when this object goes or the process ends, so that scripts that use
    the sync face do not leave open sockets behind.

    Attributes:
        has_answered: Whether the server has ever answered, to whichever client.
    """

    def __init__(self, make: Callable[[], Any], concurrency: int) -> None:
        self._make = make
        self._concurrency = concurrency
        self._lock = threading.Lock()
        self._links: _Links = {}
        self.has_answered = False
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
