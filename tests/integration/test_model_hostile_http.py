"""Model servers that drip, flood, nest, redirect, or are just slow, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from sire_core.errors import ModelError
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.faults import RetryPolicy
from sire_core.protocols import Prompt
from support.http_server import HttpRequest, HttpResponse, LoopbackServer

pytestmark = pytest.mark.usefixtures("transport")

RETRY = RetryPolicy(max_retries=1, base=0.01, cap=0.02, seed=0)
PROMPT = Prompt("Say it.", "Alma lives in Drava.")
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Drava"}, "finish_reason": "stop"}]}


class Server:
    """Answers with what it is given, and counts."""

    def __init__(self, answer):
        self.answer = answer
        self.requests: list[HttpRequest] = []

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        return self.answer(request)


def event(content: str, finish: str | None = None) -> bytes:
    data = {"choices": [{"delta": {"content": content}, "finish_reason": finish}]}
    return f"data: {json.dumps(data)}\n\n".encode()


async def drip(part: bytes, pause: float, times: int = 10_000):
    for _ in range(times):
        yield part
        await asyncio.sleep(pause)


def chat(server: LoopbackServer, **settings) -> OpenAIChat:
    url = f"http://127.0.0.1:{server.port}/v1"
    model = OpenAIChat("m", **{"base_url": url, "retry": RETRY, "timeout": 5.0, "deadline": 0.6, **settings})
    model._features.format = 2
    return model


async def ask(server: Server, **settings) -> str:
    with LoopbackServer(server) as running:
        async with chat(running, **settings) as model:
            return (await model.complete(PROMPT)).text


async def streamed(server: Server, **settings) -> list:
    with LoopbackServer(server) as running:
        async with chat(running, **settings) as model:
            return [part async for part in model.stream(PROMPT)]


@pytest.mark.parametrize("how", [ask, streamed])
async def test_a_server_that_sends_a_byte_now_and_then_is_left_at_the_deadline(how):
    server = Server(lambda _: HttpResponse(headers={"content-type": "application/json"}, parts=drip(b" ", 0.05)))
    started = time.monotonic()
    with pytest.raises(ModelError, match="not complete after"):
        await how(server)
    assert time.monotonic() - started < 10
    assert len(server.requests) == 1  # the next answer would drip as well


async def test_an_endless_stream_of_events_ends_at_the_deadline():
    server = Server(lambda _: HttpResponse(parts=drip(b": still here\n\n", 0.02)))
    with pytest.raises(ModelError, match="not complete after"):
        await streamed(server)


@pytest.mark.parametrize("how", [ask, streamed])
async def test_a_body_without_end_is_refused(how, monkeypatch):
    monkeypatch.setattr("sire_core.models.openai.client._MAX_BYTES", 100_000)
    server = Server(lambda _: HttpResponse(headers={"content-type": "application/json"}, parts=drip(b"1" * 5000, 0)))
    with pytest.raises(ModelError, match="longer than 100,000 bytes"):
        await how(server, deadline=30.0)
    assert len(server.requests) == 1


NESTED = b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize(
    "body",
    [NESTED, b'{"choices": ' + b"1" * 10_000 + b"}", b"\xff\xfe{}", b'{"choices": 5}', b'{"choices": [5]}', b"[]"],
)
@pytest.mark.parametrize("how", [ask, streamed])
async def test_answers_that_no_parser_takes_are_one_clear_error(how, body):
    with pytest.raises(ModelError):
        await how(Server(lambda _: HttpResponse(body=body)), deadline=30.0)


@pytest.mark.parametrize("nested", [NESTED, b'{"choices": [5]}', b'{"choices": [{"delta": 5}]}', b'{"choices": 5}'])
async def test_events_that_no_parser_takes_are_one_clear_error(nested):
    with pytest.raises(ModelError):
        await streamed(Server(lambda _: HttpResponse(parts=drip(b"data: " + nested + b"\n\n", 0, 2))), deadline=30.0)


async def test_a_redirect_on_the_same_host_is_followed():
    def answer(request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/v1/chat"):
            return HttpResponse(status=307, headers={"location": "/v2/chat/completions"})
        return HttpResponse(body=json.dumps(ANSWER).encode())

    assert await ask(Server(answer), deadline=30.0) == "Drava"


async def test_a_slow_model_is_asked_for_a_stream_and_its_answer_is_kept():
    """Three tokens a second take longer than one waits for news, but there is always news."""

    async def slowly():
        for piece in ("Alma ", "lives ", "in ", "Drava"):
            await asyncio.sleep(0.15)
            yield event(piece)
        yield event("", "stop")
        yield b"data: [DONE]\n\n"

    async def silence():
        await asyncio.sleep(5)
        yield b"{}"

    def answer(request: HttpRequest) -> HttpResponse:
        return HttpResponse(parts=slowly() if json.loads(request.body).get("stream") else silence())

    server = Server(answer)
    with LoopbackServer(server) as running:
        async with chat(running, timeout=0.4, deadline=30.0) as model:
            for _ in range(2):
                assert (await model.complete(PROMPT)).text == "Alma lives in Drava"
    assert [bool(json.loads(request.body).get("stream")) for request in server.requests] == [False, True, True]
