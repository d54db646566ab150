"""Streamed answers over real HTTP: pieces before the end, faults before and after the first piece, limits, the cache."""

from __future__ import annotations

import asyncio
import itertools
import json
import re

import pytest
from pydantic import BaseModel

from sire_core import UsageLimits
from sire_core.errors import LimitExceededError, ModelError, RefusalError, UnusableAnswerError
from sire_core.models.caching import CachedModel
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.faults import RetryPolicy
from sire_core.models.usage_meter import UsageMeter
from sire_core.protocols import Completion, Prompt, StreamingModel
from sire_core.storage.call_cache import CallStore
from support.faults import always, at_calls, first
from support.http_server import HttpResponse, LoopbackServer
from support.scripted_server import ScriptedServer

pytestmark = pytest.mark.usefixtures("transport")

RETRY = RetryPolicy(max_retries=2, base=0.01, cap=0.05, seed=0)
TEXT = "Petra Quillon was born in Varn Harbour, in the year 1871."
PROMPT = Prompt("Say it.", "Where?")


class Place(BaseModel):
    name: str


def serve(text=TEXT, **settings):
    return ScriptedServer(text if callable(text) else lambda _: text, **{"stall": 2.0, **settings})


def client(server, **settings):
    return OpenAIChat("m", **{"base_url": server.base_url, "retry": RETRY, "timeout": 0.5, **settings})


async def gather(parts):
    came = [part async for part in parts]
    assert [type(part) for part in came[:-1]] == [str] * (len(came) - 1)
    assert isinstance(came[-1], Completion)
    return came[:-1], came[-1]


async def gather_into(pieces, parts):
    async for part in parts:
        pieces.append(part)


async def test_pieces_come_before_the_answer_is_complete():
    with serve(gap=0.02) as server:
        async with client(server) as model:
            assert isinstance(model, StreamingModel)
            seen = [(part, server.sent) async for part in model.stream(PROMPT)]
            whole = await model.complete(PROMPT)
    pieces, last = [part for part, _ in seen[:-1]], seen[-1][0]
    assert pieces == re.findall(r"\S+ ?", TEXT)
    assert last == whole
    assert seen[0][1] < 6
    assert seen[5][1] < 11


@pytest.mark.parametrize("usage", [True, False])
async def test_tokens_are_counted_as_the_server_tells_or_estimated(usage):
    with serve(usage=usage) as server:
        async with client(server) as model:
            _, streamed = await gather(model.stream(PROMPT))
            used = model.meter.report().total
            whole = await model.complete(PROMPT)
    assert streamed == whole
    assert (used.calls, used.input_tokens, used.output_tokens) == (1, whole.input_tokens, whole.output_tokens)
    assert whole.output_tokens > 5


async def test_a_schema_is_checked_and_repaired():
    with serve('{"name": "Varn Harbour"}') as server:
        async with client(server) as model:
            pieces, answer = await gather(model.stream(PROMPT, schema=Place))
            assert "".join(pieces) == answer.text
            assert answer.parsed == Place(name="Varn Harbour")
            server.faults = first("half_answer")
            pieces, answer = await gather(model.stream(Prompt("Say it.", "And?"), schema=Place))
            assert "".join(pieces) == '{"name": "Va'
            assert answer.parsed == Place(name="Varn Harbour")
            assert [call.call.body.get("stream", False) for call in server.log] == [True, True, False]
            server.faults = always("garbage")
            with pytest.raises(UnusableAnswerError, match="even after a repair"):
                await gather(model.stream(PROMPT, schema=Place))


@pytest.mark.parametrize("refused", [["stop"], []])
async def test_nothing_comes_after_a_stop_text(refused):
    with serve(refused=refused) as server:
        async with client(server) as model:
            pieces, answer = await gather(model.stream(PROMPT, stop=["Harbour, in", "never"]))
    assert "".join(pieces) == answer.text == "Petra Quillon was born in Varn "


@pytest.mark.parametrize(
    ("refused", "requests"), [(["stream_options"], 2), (["stream"], 2), (["stream_options", "stream"], 3)]
)
async def test_a_server_that_does_not_know_streams_is_asked_otherwise_and_only_once(refused, requests):
    with serve(refused=refused) as server:
        async with client(server) as model:
            for _ in range(2):
                pieces, answer = await gather(model.stream(PROMPT))
                assert "".join(pieces) == answer.text == TEXT
    assert server.received == requests + 1


@pytest.mark.parametrize("fault", ["rate_limit", "server_error", "reset", "timeout", "not_json"])
async def test_until_the_first_piece_a_request_is_repeated(fault):
    with serve(faults=first(fault)) as server:
        async with client(server) as model:
            pieces, answer = await gather(model.stream(PROMPT))
            assert "".join(pieces) == answer.text == TEXT
            assert server.received == model.meter.report().total.calls == 2
            server.faults = always(fault)
            with pytest.raises(ModelError, match="failed 3 times"):
                await gather(model.stream(PROMPT))
            assert server.received == 5


@pytest.mark.parametrize("fault", ["half_body", "stall"])
async def test_a_stream_that_breaks_is_a_clear_error_and_is_not_repeated(fault):
    with serve(faults=always(fault)) as server:
        async with client(server) as model:
            pieces = []
            with pytest.raises(ModelError, match=r"broke off after \d+ characters"):
                await gather_into(pieces, model.stream(PROMPT))
            used = model.meter.report().total
            assert TEXT.startswith("".join(pieces))
            assert server.received == used.calls == 1
            assert used.input_tokens > 0
            assert used.output_tokens >= len(pieces) > 2
            server.faults = lambda _: None
            assert (await gather(model.stream(PROMPT)))[1].text == TEXT


@pytest.mark.parametrize("fault", ["refusal", "content_filter"])
async def test_a_refusal_is_one(fault):
    with serve(faults=always(fault)) as server:
        async with client(server) as model:
            with pytest.raises(RefusalError):
                await gather(model.stream(PROMPT))
            assert server.received == 1


def raw(respond):
    """A server that answers the n-th request with `respond(n)`."""
    numbers = itertools.count(1)

    async def handle(_request):
        return respond(next(numbers))

    return LoopbackServer(handle)


async def event(text):
    yield f"data: {text}\n\n".encode()


async def test_an_error_in_the_place_of_an_answer_is_one_and_may_pass():
    busy = '{"error": {"message": "still loading", "type": "x", "code": 503}}'
    final = '{"error": {"message": "no such voice", "type": "x", "code": null}}'
    with raw(lambda number: HttpResponse(parts=event(busy if number < 3 else final))) as server:
        async with OpenAIChat("m", base_url=f"http://127.0.0.1:{server.port}", retry=RETRY) as model:
            with pytest.raises(ModelError, match="no such voice"):
                await gather(model.stream(PROMPT))
            assert model.meter.report().total.calls == 3


async def test_a_server_that_answers_as_a_whole_gives_one_piece():
    message = {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    with raw(lambda _: HttpResponse(200, body)) as server:
        async with OpenAIChat("m", base_url=f"http://127.0.0.1:{server.port}", retry=RETRY) as model:
            pieces, answer = await gather(model.stream(PROMPT))
    assert pieces == [answer.text] == [TEXT]


async def test_an_empty_answer_is_none():
    with serve(faults=always("empty")) as server:
        async with client(server) as model:
            with pytest.raises(UnusableAnswerError, match="nothing"):
                await gather(model.stream(PROMPT))


async def test_limits_hold():
    with serve() as server:
        async with client(server, limits=UsageLimits(max_calls=1)) as model:
            await gather(model.stream(PROMPT))
            with pytest.raises(LimitExceededError):
                await gather(model.stream(PROMPT))
        async with client(server, limits=UsageLimits(max_tokens=50)) as model:
            with pytest.raises(LimitExceededError):
                await gather(model.stream(PROMPT, max_tokens=100))
        assert server.received == 1


@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_leaving_closes_the_connection(how):
    with serve(gap=0.02) as server:
        async with client(server, concurrency=1) as model:
            came = asyncio.Event()

            async def read(parts):
                async for _ in parts:
                    came.set()
                    if how == "closed":
                        break
                await parts.aclose()

            task = asyncio.create_task(read(model.stream(PROMPT)))
            await came.wait()
            if how == "cancelled":
                task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() == (how == "cancelled")
            while not server.left:
                await asyncio.sleep(0.01)
            assert server.sent < 8
            assert model.meter.report().total.output_tokens > 0
            server._gap = 0.0
            assert (await gather(model.stream(PROMPT)))[1].text == TEXT  # its place is free again


async def test_the_call_cache_keeps_one_answer_and_plays_it_again():
    store, meter = CallStore(), UsageMeter()
    with serve('{"name": "Varn Harbour"}', faults=at_calls({1: "half_body"})) as server:
        async with client(server) as model:
            cached = CachedModel(model, store, "s", meter=meter)
            assert isinstance(cached, StreamingModel)
            with pytest.raises(ModelError, match="broke off"):
                await gather(cached.stream(PROMPT, schema=Place))
            pieces, streamed = await gather(cached.stream(PROMPT, schema=Place))
            assert len(pieces) > 2
            again, replayed = await gather(cached.stream(PROMPT, schema=Place))
            assert replayed.parsed == streamed.parsed == (await cached.complete(PROMPT, schema=Place)).parsed
            assert "".join(again) == replayed.text
            assert server.received == 2
            assert (meter.report().total.calls, meter.report().total.cached) == (2, 2)


async def test_an_abandoned_stream_is_not_kept_and_whoever_waits_asks_itself():
    with serve(gap=0.02) as server:
        async with client(server) as model:
            cached = CachedModel(model, CallStore(), "s")
            leaving = cached.stream(PROMPT)
            await anext(leaving)
            waiting = asyncio.create_task(gather(cached.stream(PROMPT)))
            await asyncio.sleep(0.02)
            await leaving.aclose()
            assert (await waiting)[1].text == TEXT
    assert server.received == 2
