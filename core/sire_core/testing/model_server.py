"""`ModelServer`: what the scripted model servers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING

from sire_core.testing.http_server import HttpRequest, HttpResponse, LoopbackServer

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ModelServer"]


class ModelServer(ABC):
    """An OpenAI-compatible server under `base_url`, from `start` (or `with`) to `stop`.

    Args:
        port: Port; 0 takes a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self._http = LoopbackServer(self._handle, port)

    @property
    def base_url(self) -> str:
        """What a client takes as its `base_url`."""
        return f"http://127.0.0.1:{self._http.port}/v1"

    def start(self) -> Self:
        """Listen."""
        self._http.start()
        return self

    def stop(self) -> None:
        """Close."""
        self._http.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    async def _handle(self, request: HttpRequest) -> HttpResponse:
        """Answer a request."""
