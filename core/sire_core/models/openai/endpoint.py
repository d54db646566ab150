"""`OpenAIEndpoint`: what every client of an OpenAI-compatible server has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.models.openai.responses import ResponseBounds
from sire_core.models.openai.retry import RetryPolicy
from sire_core.models.openai.transport import OpenAITransport
from sire_core.models.usage import UsageLimits
from sire_core.models.usage_meter import UsageMeter, UsageSink

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["OpenAIEndpoint"]


class OpenAIEndpoint:
    """A model behind a server: its name, connections, limits, and closing.

    Args:
        model: The model's name, with Azure the deployment's.
        stage: What its requests are counted as.
        usage: Reads (input, output) tokens from an answer; see `OpenAITransport`.
        base_url: Address of the server; None for OpenAI's own.
        api_key: None takes `OPENAI_API_KEY`.
        timeout: Seconds without anything new from the server.
        deadline: Seconds for a whole answer.
        max_bytes: Most bytes of an answer.
        max_retries: Repetitions of a failed request.
        retry: The whole back-off policy; overrides `max_retries`.
        limits: Bounds of calls and tokens, counted on `meter`.
        concurrency: Most requests under way at once.
        client_options: More arguments of the official client.

    Raises:
        ConfigurationError: The `openai` package is missing, or there is no name.
    """

    def __init__(
        self,
        model: str,
        stage: str,
        usage: Callable[[Mapping[str, Any], int], tuple[int, int]],
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        deadline: float,
        max_bytes: int,
        max_retries: int,
        retry: RetryPolicy | None,
        limits: UsageLimits | None,
        concurrency: int,
        client_options: Mapping[str, Any] | None,
    ) -> None:
        if not model:
            raise ConfigurationError(f"name the model: {type(self).__name__}('NAME')")
        self.model = model
        self.concurrency = concurrency
        self.meter = UsageMeter(limits)
        self._sink = UsageSink(((self.meter, stage),))
        self._transport = OpenAITransport(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            bounds=ResponseBounds(deadline, max_bytes),
            retry=retry or RetryPolicy(max_retries=max_retries),
            concurrency=concurrency,
            client_options=client_options,
            usage=usage,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    async def aclose(self) -> None:
        """Close the connections. The model may be used again afterwards."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
