"""How the official client of OpenAI is made, and what of that another process may know."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from sire_core.models.openai.bounds import ResponseBounds

__all__ = ["OfficialClient"]

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

    def make(self) -> AsyncOpenAI:
        """A client for the running event loop.

        Raises:
            ConfigurationError: The arguments make no client.
        """
        import openai

        options = dict(self.settings)
        if self.api_key is not None:
            options["api_key"] = self.api_key
        elif (self.base_url or os.environ.get("OPENAI_BASE_URL")) and not os.environ.get("OPENAI_API_KEY"):
            options.setdefault("api_key", _LOCAL_KEY)
        if self.base_url:
            options["base_url"] = self.base_url
        if "http_client" not in options:
            make = openai.DefaultAsyncHttpxClient
            options["http_client"] = _fast_http_client(options["timeout"]) or make(timeout=options["timeout"])
        self.bounds.apply(options["http_client"])
        try:
            if "azure_endpoint" in options:
                return openai.AsyncAzureOpenAI(**options)
            return openai.AsyncOpenAI(**options)
        except (openai.OpenAIError, TypeError, ValueError) as error:
            raise ConfigurationError(f"the OpenAI client cannot be made: {error}") from error

    def without_key(self) -> OfficialClient:
        """The same for another process, which finds the key in its environment.

        Raises:
            ConfigurationError: A key was given that is not the environment's: a pickle would hold it for all to read.
        """
        given = [self.api_key, *(value for name, value in self.settings.items() if name not in _PLAIN)]
        own = any(value is not None and value != os.environ.get("OPENAI_API_KEY") for value in given)
        if own or "@" in urlsplit(self.base_url or "").netloc:
            raise ConfigurationError(
                "A model that was given its key (api_key, a password in base_url, headers or tokens in client_options) "
                "is not sent to another process: the message would hold the key. Set OPENAI_API_KEY in "
                "both processes and leave the key out, or make the model there."
            )
        return replace(
            self, api_key=None, settings={name: value for name, value in self.settings.items() if name in _PLAIN}
        )


def _fast_http_client(timeout: float) -> Any:
    """The official aiohttp client, which the extra `openai` brings.

    The pool of the default client looks at every idle connection for every request and every pair of them: seven times
    the CPU time with 64 requests at once. None behind a proxy, which the default client knows better, and where
    `openai` was installed without its extra.
    """
    import openai

    make = getattr(openai, "DefaultAioHttpClient", None)
    if make is None or urllib.request.getproxies():
        return None
    try:
        return make(timeout=timeout)
    except RuntimeError:
        return None
