"""What an OpenAI-compatible chat endpoint sends: whole answers, streams of events, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sire_core.extend import estimate_tokens
from support.http_server import HttpResponse

__all__ = ["content_text", "error_response", "events", "json_response", "whole_answer"]

_WORD = re.compile(r"\S+\s*|\s+")


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(status, json.dumps(value).encode("utf-8"), dict(headers or {}))


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """An error in the form that clients read."""
    error = {"message": message, "type": "scripted", "code": None, "param": None}
    return json_response({"error": error}, status, headers)


def whole_answer(
    body: Mapping[str, Any], number: int, message: Mapping[str, Any], finish: str, *, usage: bool = True
) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    answer = _frame(body, number, "chat.completion", [choice])
    return answer | {"usage": _usage(body, message)} if usage else answer


def events(
    body: Mapping[str, Any], number: int, message: Mapping[str, Any], finish: str, *, usage: bool = True
) -> list[bytes]:
    """The same as server-sent events: one for every word or tool call, how it ends, its tokens if they are asked for."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _WORD.findall(message.get("content") or "")]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(message.get("tool_calls") or ())]
    if message.get("refusal"):
        deltas.append({"refusal": message["refusal"]})
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    frames = [_frame(body, number, "chat.completion.chunk", [choice]) for choice in choices]
    if usage and (body.get("stream_options") or {}).get("include_usage"):
        frames.append(_frame(body, number, "chat.completion.chunk", []) | {"usage": _usage(body, message)})
    return [*(f"data: {json.dumps(frame)}\n\n".encode() for frame in frames), b"data: [DONE]\n\n"]


def content_text(content: Any) -> str:
    """The text of a message's content, which may come in parts or not at all."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if part.get("type") == "text")


def _frame(body: Mapping[str, Any], number: int, kind: str, choices: list[Any]) -> dict[str, Any]:
    model = body.get("model", "scripted")
    return {"id": f"scripted-{number}", "object": kind, "created": 0, "model": model, "choices": choices}


def _usage(body: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, int]:
    read = sum(estimate_tokens(content_text(part.get("content"))) for part in body["messages"])
    calls = message.get("tool_calls")
    wrote = estimate_tokens(message.get("content") or "") + (estimate_tokens(json.dumps(calls)) if calls else 0)
    return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
