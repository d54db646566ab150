"""`AgentServer`: an OpenAI-compatible chat server over real HTTP whose scripted model calls tools."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from support.chat_frames import error_response, events, json_response, whole_answer
from support.http_server import HttpRequest, HttpResponse, ModelServer

__all__ = ["AgentServer", "ToolRequest", "Turn"]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool that the scripted model wants called."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Turn = Union[str, ToolRequest, Sequence[ToolRequest]]
"""What the model says: a text, which ends the agent's run, or tools to call."""


class AgentServer(ModelServer):
    """Plays one turn per request, whole or as a stream of server-sent events, whichever the client asks for.

    For agents; `ScriptedServer` plays extraction, summaries and embeddings, and injects faults.
    """

    def __init__(self, turns: Sequence[Turn] | Callable[[Sequence[Mapping[str, Any]]], Turn]) -> None:
        super().__init__()
        self._turns = turns
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        """Every request body, in the order of arrival."""

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        if not request.path.split("?")[0].endswith("/chat/completions"):
            return error_response(404, f"there is no {request.path}")
        body = json.loads(request.body)
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
        try:
            turn = self._turns(body["messages"]) if callable(self._turns) else self._turns[number]
        except Exception as error:  # noqa: BLE001 - a broken script must show up at the client
            return error_response(500, f"the script failed: {error!r}")
        message = _message(turn, number)
        finish = "tool_calls" if "tool_calls" in message else "stop"
        if not body.get("stream"):
            return json_response(whole_answer(body, number, message, finish))
        return HttpResponse(parts=_parts(events(body, number, message, finish)))


async def _parts(lines: Sequence[bytes]) -> AsyncGenerator[bytes, None]:
    for line in lines:
        yield line


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
