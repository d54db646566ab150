"""Servers that know no role for instructions, refuse a schema with 503, answer with no choice, or break off."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from sire_core.errors import ModelError
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.faults import RetryPolicy
from sire_core.protocols import ModelRequest, Prompt
from support.http_server import HttpRequest, HttpResponse, LoopbackServer

RETRY = RetryPolicy(max_retries=2, base=0.001, cap=0.002, seed=0)
PROMPT = Prompt("Say where she lives.", "Alma lives in Drava.")


class Place(BaseModel):
    """Where somebody lives."""

    place: str


class Server:
    """Refuses what a function of the body refuses; answers everything else."""

    def __init__(self, refuse) -> None:
        self.refuse = refuse
        self.bodies: list[dict] = []

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        body = json.loads(request.body)
        self.bodies.append(body)
        refused = self.refuse(body, len(self.bodies))
        if refused is not None:
            return refused
        message = {"role": "assistant", "content": '{"place": "Drava"}'}
        return HttpResponse(body=json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode())


def error(status: int, message: str) -> HttpResponse:
    return HttpResponse(status, json.dumps({"error": {"message": message}}).encode() if message else b"")


async def asked(server: Server, times: int = 2) -> list[str]:
    with LoopbackServer(server) as running:
        async with OpenAIChat("m", base_url=f"http://127.0.0.1:{running.port}/v1", retry=RETRY) as model:
            answers = [await model.answer(ModelRequest(PROMPT, Place)) for _ in range(times)]
    return [answer.parsed.place for answer in answers]


NO_SYSTEM = [
    (400, "System role not supported"),
    (500, "Jinja Exception: System role not supported"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (422, "Only user and assistant roles are supported!"),
    (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
    (500, "Only user, assistant and tool roles are supported"),
]


@pytest.mark.parametrize(("status", "message"), NO_SYSTEM)
async def test_instructions_go_into_the_user_s_message_where_there_is_no_role_for_them(status, message):
    def refuse(body, _):
        return error(status, message) if any(m["role"] == "system" for m in body["messages"]) else None

    server = Server(refuse)
    assert await asked(server) == ["Drava", "Drava"]
    assert len(server.bodies) == 3  # seen once, and remembered
    (only,) = server.bodies[-1]["messages"]
    assert only["role"] == "user"
    assert only["content"].startswith("Say where she lives.")
    assert "Alma lives in Drava." in only["content"]
    assert server.bodies[-1]["response_format"]["type"] == "json_schema", "the schema was not what was refused"


@pytest.mark.parametrize("message", ["", "the backend is unavailable", "structured output is not supported"])
async def test_a_schema_that_is_refused_with_503_is_given_up(message):
    server = Server(lambda body, _: error(503, message) if "response_format" in body else None)
    assert await asked(server) == ["Drava", "Drava"]
    assert "response_format" not in server.bodies[-1]


async def test_a_server_that_is_only_busy_keeps_its_schema():
    server = Server(lambda body, number: error(503, "") if number in (2, 3) else None)
    assert await asked(server) == ["Drava", "Drava"]
    assert server.bodies[-1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("choices", [[], None])
async def test_an_answer_without_a_choice_is_asked_for_again(choices):
    empty = HttpResponse(body=json.dumps({"choices": choices}).encode())
    assert await asked(Server(lambda _, number: empty if number == 1 else None), 1) == ["Drava"]
    with pytest.raises(ModelError, match=r"failed 3 times.*no message"):
        await asked(Server(lambda *_: empty), 1)


async def test_a_stream_that_is_cut_off_is_an_error_and_is_not_passed_for_an_answer():
    event = b'data: {"choices": [{"delta": {"content": "Dra"}}]}\n\n'
    cut = HttpResponse(headers={"content-type": "text/event-stream"}, body=event)
    with LoopbackServer(Server(lambda *_: cut)) as running:
        async with OpenAIChat("m", base_url=f"http://127.0.0.1:{running.port}/v1", retry=RETRY) as model:
            with pytest.raises(ModelError, match="broke off after 3 characters"):
                [part async for part in model.stream(PROMPT)]
