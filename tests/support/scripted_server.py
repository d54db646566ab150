"""`ScriptedServer`: an OpenAI-compatible server over real HTTP that plays scripts and injects faults."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any

from sire_core.extend import estimate_tokens
from sire_core.testing.doubles import HashEmbedder, Script, ScriptedCall, default_script
from sire_core.types import digest
from support.chat_frames import content_text, error_response, events, json_response, whole_answer
from support.faults import FaultPlan, no_faults
from support.http_server import HttpRequest, HttpResponse, ModelServer

__all__ = ["LoggedCall", "ScriptedServer", "unfence"]

_JSON_WORDS = "JSON object only"
_JSON_TYPE = {"content-type": "application/json"}
# Strings and empty containers stay as they are; other closing brackets get a comma.
_CLOSING = re.compile(r'("(?:[^"\\]|\\.)*"|\[\]|\{\})|([}\]])')


def unfence(user: str) -> str:
    """The content of a prompt's data block."""
    return user.removeprefix("<data>\n").removesuffix("\n</data>")


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One request to `/chat/completions`.

    Attributes:
        call: What was asked.
        status: HTTP status of the answer; 0 when none was delivered.
        fault: What went wrong on purpose.
        prompt: Digest of all messages.
        format: The `response_format` that was asked for, empty for none.
    """

    call: ScriptedCall
    status: int
    fault: str
    prompt: str
    format: str


class ScriptedServer(ModelServer):
    """Chat (whole and streamed), embeddings and models endpoints under `base_url`.

    Args:
        script: Answers chat prompts; see `default_script` and `replay`.
        faults: What goes wrong, and when.
        formats: Forms of structured output it supports; others get a 400 that says so.
        latency: Seconds that an answer takes, or its first word when it is streamed.
        gap: Seconds between two words of a stream.
        retry_after: What a `rate_limit` asks the client to wait, in seconds.
        stall: Seconds after which a `timeout` or `stall` gives up; stopping the server ends it, too.
        usage: Whether answers tell their tokens.
        refused: Parameters that get a 400, as newer models do with `max_tokens`.
        log_path: JSONL file that gets every prompt when it arrives, so that a killed client's log survives.
        port: Port; 0 takes a free one.
    """

    def __init__(
        self,
        script: Script = default_script,
        *,
        faults: FaultPlan = no_faults,
        formats: Collection[str] = ("json_schema", "json_object"),
        latency: float = 0.0,
        gap: float = 0.0,
        retry_after: float = 0.05,
        stall: float = 30.0,
        usage: bool = True,
        refused: Collection[str] = (),
        log_path: str | Path | None = None,
        port: int = 0,
    ) -> None:
        super().__init__(port)
        self.script = script
        self.faults = faults
        self.formats = frozenset(formats)
        self.latency = latency
        self.log: list[LoggedCall] = []
        """Every chat request in the order of arrival of its answer."""
        self.embedded: list[list[str]] = []
        """Texts of every embedding request."""
        self.most_active = 0
        """Most chat requests under way at once."""
        self.sent = 0
        """Events of streams that were sent."""
        self.left = 0
        """Streams whose client went before their end."""
        self._gap = gap
        self._retry_after = retry_after
        self._stall = stall
        self._usage = usage
        self._refused = tuple(refused)
        self._log_path = None if log_path is None else Path(log_path)
        self._seen: Counter[str] = Counter()
        self._active = 0
        self._number = 0
        self._lock = threading.Lock()
        self._embedder = HashEmbedder(64)

    @property
    def received(self) -> int:
        """Chat requests that arrived so far, answered or not."""
        return self._number

    @property
    def passages(self) -> list[str]:
        """Passages of the extraction prompts so far."""
        return [str(entry.call.fields["passage"]) for entry in self.log if "passage" in entry.call.fields]

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        path = request.path.split("?")[0]
        try:
            if path.endswith("/models"):
                return json_response(
                    {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]}
                )
            body = json.loads(request.body or b"{}")
            if path.endswith("/chat/completions"):
                return await self._chat(body)
            if path.endswith("/embeddings"):
                return await self._embed(body)
        except Exception as error:  # noqa: BLE001 - a broken script must show up at the client, not vanish in a thread
            return error_response(500, f"the script failed: {error!r}")
        return error_response(404, f"there is no {path}")

    async def _embed(self, body: Mapping[str, Any]) -> HttpResponse:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        self.embedded.append(texts)
        await asyncio.sleep(self.latency)
        embedder = HashEmbedder(int(body["dimensions"])) if "dimensions" in body else self._embedder
        rows = await embedder.embed(texts)
        coded = body.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(row.tobytes()).decode("ascii") if coded else row.tolist(),
            }
            for index, row in enumerate(rows)
        ]
        return json_response(
            {"object": "list", "data": data, "usage": {"prompt_tokens": sum(map(estimate_tokens, texts))}}
        )

    async def _chat(self, body: Mapping[str, Any]) -> HttpResponse:
        self._active += 1
        self.most_active = max(self.most_active, self._active)
        try:
            call, prompt, asked = self._arrived(body)
            fault = self.faults(call) or ""
            response = self._unsupported(body, asked) or await self._failed(fault) or self._answer(call, fault)
            self.log.append(
                LoggedCall(call, response.status if response.deliver == "whole" else 0, fault, prompt, asked)
            )
            return response
        finally:
            self._active -= 1

    def _arrived(self, body: Mapping[str, Any]) -> tuple[ScriptedCall, str, str]:
        """Number and log a prompt."""
        texts = [content_text(message["content"]) for message in body["messages"]]
        form = body.get("response_format") or {}
        schema: Mapping[str, Any] | None = None
        if form.get("type") == "json_schema":
            schema = form["json_schema"]["schema"]
        elif form or _JSON_WORDS in texts[0]:
            schema = {}
        call = ScriptedCall(texts[0], unfence(texts[-1]) if len(texts) > 1 else "", schema)
        with self._lock:
            self._number += 1
            attempt = self._seen[call.input]
            self._seen[call.input] += 1
        call = ScriptedCall(call.instructions, call.data, schema, self._number, attempt, self._active, body)
        prompt = digest(*texts)
        if self._log_path is not None:
            line = {
                "number": call.number,
                "prompt": prompt,
                "instructions": call.instructions,
                "data": call.data,
                "max_tokens": body.get("max_tokens"),
                "time": time.time(),
            }
            with self._log_path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")
        return call, prompt, str(form.get("type", ""))

    def _unsupported(self, body: Mapping[str, Any], asked: str) -> HttpResponse | None:
        if asked and asked not in self.formats:
            return error_response(400, f"response_format of type {asked!r} is not supported")
        for name in self._refused:
            if name in body:
                return error_response(400, f"Unsupported parameter: '{name}' is not supported with this model.")
        return None

    async def _failed(self, fault: str) -> HttpResponse | None:
        """The response of a server that does not come to answering."""
        if fault == "timeout":
            await asyncio.sleep(self._stall)
            return HttpResponse(deliver="reset")
        await asyncio.sleep(self.latency)
        if fault == "reset":
            return HttpResponse(deliver="reset")
        if fault == "server_error":
            return error_response(500, "scripted server error")
        if fault in ("rate_limit", "rate_limit_date"):
            late = formatdate(time.time() + self._retry_after, usegmt=True)
            wait = late if fault.endswith("date") else f"{self._retry_after:g}"
            return error_response(429, "slow down", {"retry-after": wait})
        if fault == "not_json":
            return HttpResponse(body=b"<html>A proxy says hello.</html>", headers={"content-type": "text/html"})
        return None

    def _answer(self, call: ScriptedCall, fault: str) -> HttpResponse:
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        finish = "stop"
        if fault == "refusal":
            message["refusal"] = "I cannot help with that."
        elif fault == "content_filter":
            finish = "content_filter"
        else:
            message["content"] = _spoilt(self.script(call), fault)
            finish = "length" if fault == "half_answer" else "stop"
        if call.body.get("stream"):
            return self._stream(events(call.body, call.number, message, finish, usage=self._usage), fault)
        response = json_response(whole_answer(call.body, call.number, message, finish, usage=self._usage))
        if fault == "stall":
            half = response.body[: len(response.body) // 2]
            return HttpResponse(200, parts=self._parts([half], fault), deliver="half", headers=_JSON_TYPE)
        return HttpResponse(200, response.body, deliver="half") if fault == "half_body" else response

    def _stream(self, lines: list[bytes], fault: str) -> HttpResponse:
        broken = fault in ("half_body", "stall")
        lines = lines[: len(lines) // 2] if broken else lines
        return HttpResponse(parts=self._parts(lines, fault), deliver="half" if broken else "whole")

    async def _parts(self, lines: Sequence[bytes], fault: str) -> AsyncGenerator[bytes, None]:
        whole = False
        try:
            for line in lines:
                yield line
                self.sent += 1
                await asyncio.sleep(self._gap)
            if fault == "stall":
                await asyncio.sleep(self._stall)
            whole = True
        finally:
            self.left += not whole


def _spoilt(text: str, fault: str) -> str:
    if fault == "fenced":
        return f"Sure, here it is:\n```json\n{text}\n```\nAnything else?"
    if fault == "trailing_comma":
        return _CLOSING.sub(lambda match: match.group(1) or f",{match.group(2)}", text)
    if fault == "half_answer":
        return text[: len(text) // 2]
    return {"garbage": "Well, the passage {is about", "wrong_schema": '{"result": 42}', "empty": ""}.get(fault, text)
