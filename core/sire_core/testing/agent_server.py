"""`AgentServer`: an OpenAI-compatible chat server over real HTTP whose scripted model calls tools."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

from sire_core.models.usage import estimate_tokens
from sire_core.testing.http_server import HttpRequest, HttpResponse, LoopbackServer

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AgentServer", "ToolRequest", "Turn"]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool that the scripted model wants called."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Turn = Union[str, ToolRequest, Sequence[ToolRequest]]
"""What the model says: a text, which ends the agent's run, or tools to call."""


class AgentServer:
    """Plays one turn per request, whole or as a stream of server-sent events, whichever the client asks for.

    For agents; `ScriptedServer` plays extraction, summaries and embeddings, and injects faults.

    Args:
        turns: The turns in their order, or a function from the messages so far to the next turn. A request that has no
            turn gets status 500.
    """

    def __init__(self, turns: Sequence[Turn] | Callable[[Sequence[Mapping[str, Any]]], Turn]) -> None:
        self._turns = turns
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        """Every request body, in the order of arrival."""
        self._http = LoopbackServer(self._handle)

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

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        if not request.path.split("?")[0].endswith("/chat/completions"):
            return _error(404, f"there is no {request.path}")
        body = json.loads(request.body)
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
        try:
            turn = self._turns(body["messages"]) if callable(self._turns) else self._turns[number]
        except Exception as error:  # noqa: BLE001 - a broken script must show up at the client
            return _error(500, f"the script failed: {error!r}")
        message = _message(turn, number)
        return _events(body, number, message) if body.get("stream") else _whole(body, number, message)


def _message(turn: Turn, number: int) -> dict[str, Any]:
    if isinstance(turn, str):
        return {"role": "assistant", "content": turn}
    wanted = [turn] if isinstance(turn, ToolRequest) else turn
    calls = [
        {
            "id": f"call-{number}-{index}",
            "type": "function",
            "function": {"name": tool.name, "arguments": json.dumps(dict(tool.arguments), ensure_ascii=False)},
        }
        for index, tool in enumerate(wanted)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _whole(body: Mapping[str, Any], number: int, message: dict[str, Any]) -> HttpResponse:
    choice = {"index": 0, "message": message, "finish_reason": _finish(message)}
    answer = _frame(body, number, "chat.completion", choice) | {"usage": _usage(body, message)}
    return HttpResponse(200, json.dumps(answer).encode("utf-8"))


def _events(body: Mapping[str, Any], number: int, message: dict[str, Any]) -> HttpResponse:
    """The message in two events: what is said, and how it ends."""
    calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls", ()))]
    delta = {**message, "tool_calls": calls} if calls else message
    choices = (
        {"index": 0, "delta": delta, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": _finish(message)},
    )
    frames = [_frame(body, number, "chat.completion.chunk", choice) for choice in choices]
    frames.append({**frames[0], "choices": [], "usage": _usage(body, message)})
    lines = [f"data: {json.dumps(frame)}\n\n" for frame in frames] + ["data: [DONE]\n\n"]
    return HttpResponse(200, "".join(lines).encode("utf-8"), {"content-type": "text/event-stream"})


def _frame(body: Mapping[str, Any], number: int, kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    model = body.get("model", "scripted")
    return {"id": f"turn-{number}", "object": kind, "created": 0, "model": model, "choices": [choice]}


def _finish(message: Mapping[str, Any]) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _usage(body: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, int]:
    read, wrote = estimate_tokens(json.dumps(body["messages"])), estimate_tokens(json.dumps(message))
    return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}


def _error(status: int, message: str) -> HttpResponse:
    return HttpResponse(status, json.dumps({"error": {"message": message, "type": "scripted"}}).encode("utf-8"))
