"""Chains and answers in pieces with `ChatOpenAI` over real HTTP."""

import asyncio
import json
from functools import reduce
from operator import add

import pytest
from langchain_openai import ChatOpenAI

from langchain_sire import LangChainChat, SireRetriever, create_ircot_chain, create_self_ask_chain
from sire_core.errors import ModelError
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.usage import UsageLimits
from sire_core.protocols import Completion, Prompt
from sire_core.reason.prompts import Reading
from support.faults import always, at_calls
from support.langchain_demo import as_langchain, chats_over_http
from support.scripted_server import ScriptedServer

QUESTION = "In which year did the author of the novel The Weather Clerk die?"
IRCOT = (
    '{"reasoning": "The novel is by Ilse Marrable.", "search": "In which year did Ilse Marrable die?"}',
    '{"reasoning": "She died in 1931.", "search": "DONE"}',
    '{"answer": "In 1931", "citations": [1], "sufficient": true}',
)
SELF_ASK = ("Follow up: In which year did Ilse Marrable die?", "1931", "So the final answer is: 1931", IRCOT[2])


def _in_order(script):
    return lambda call: script[min(call.number, len(script)) - 1]


@pytest.fixture(scope="module")
def retriever():
    return SireRetriever.from_documents(as_langchain(), recipe="flat", k=4)


@pytest.mark.parametrize(
    ("make", "script", "calls"),
    [
        (create_ircot_chain, IRCOT, [0, 1, 1, 1, 2, 3, 3, 3, 3]),
        (create_self_ask_chain, SELF_ASK, [0, 1, 1, 2, 4, 4, 4, 4]),
    ],
)
async def test_each_step_arrives_before_the_next_call_starts(retriever, chat, make, script, calls):
    with ScriptedServer(_in_order(script)) as server:
        assert [server.received for _ in make(retriever, chat(server)).stream(QUESTION)] == calls
    with ScriptedServer(_in_order(script)) as server:
        assert [server.received async for _ in make(retriever, chat(server)).astream(QUESTION)] == calls


async def test_leaving_the_stream_stops_further_requests(retriever, chat):
    with ScriptedServer(_in_order(IRCOT)) as server:
        for _ in create_ircot_chain(retriever, chat(server)).stream(QUESTION):
            if server.received:
                break
        assert server.received == 1
    with ScriptedServer(_in_order(IRCOT), latency=30.0) as server:
        task = asyncio.create_task(create_ircot_chain(retriever, chat(server)).ainvoke(QUESTION))
        while not server.received:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert server.received == 1


@pytest.mark.parametrize("native", [False, True])
async def test_a_time_limit_ends_it_with_the_evidence(retriever, chat, native):
    with ScriptedServer(_in_order(IRCOT), latency=30.0) as server:
        chain = create_ircot_chain(retriever, chat(server), timeout=0.5)
        result = await chain.ainvoke(QUESTION) if native else chain.invoke(QUESTION)
    assert (result["stop"], result["answer"]) == ("timeout", "")
    assert len(result["documents"]) == 10


TEXT = "In 1931, on the second of November, in the house where she was born"
READING = json.dumps({"answer": TEXT, "citations": [1], "sufficient": True})
DONE = '{"reasoning": "She died in 1931.", "search": "DONE"}'
PROMPT = Prompt("Answer it.", "When?")


@pytest.fixture
async def chat():
    async with chats_over_http(timeout=5) as make:
        yield make


def script(call):
    return READING if "citations" in call.instructions else DONE if "search:" in call.instructions else "Done: answer"


def said(chunks):
    return "".join(chunk.get("answer", "") for chunk in chunks)


async def gather(parts):
    came = [part async for part in parts]
    assert isinstance(came[-1], Completion)
    return came[:-1], came[-1]


@pytest.mark.parametrize("refused", [(), ("stream_options",)])
@pytest.mark.parametrize("schema", [None, Reading])
async def test_the_adapter_streams_what_it_answers(chat, schema, refused):
    usage = {} if refused else {"stream_usage": True}
    with ScriptedServer(lambda _: READING, gap=0.01) as server:
        model = LangChainChat(chat(server, **usage))
        whole = await model.complete(PROMPT, schema=schema)  # first, so that nothing is imported while pieces arrive
        before = server.sent
        seen = [(part, server.sent - before) async for part in model.stream(PROMPT, schema=schema)]
        pieces, answer = [part for part, _ in seen[:-1]], seen[-1][0]
        assert server.log[1].call.body["stream"] is True
        assert server.log[0].prompt == server.log[1].prompt
        assert server.log[0].format == server.log[1].format == ("json_schema" if schema else "")
    assert "".join(pieces) == answer.text == READING
    assert (answer.parsed, answer.text, answer.finish) == (whole.parsed, whole.text, whole.finish)
    assert answer.output_tokens > 10
    assert seen[0][1] < seen[-1][1] / 2
    assert model.meter.report().total.calls == 2


async def test_a_server_without_schemas_is_asked_in_words(chat):
    with ScriptedServer(lambda _: READING, formats=()) as server:
        model = LangChainChat(chat(server))
        for requests in (3, 4):  # the first answer costs two refusals, and is not streamed
            pieces, answer = await gather(model.stream(PROMPT, schema=Reading))
            assert "".join(pieces) == answer.text
            assert answer.parsed.answer == TEXT
            assert server.received == requests
        assert len(pieces) > 10


async def test_tool_calls_stream_their_arguments(chat):
    """Structured output by function calling, as older models have it."""
    from support.agent_server import AgentServer, ToolRequest

    with AgentServer([ToolRequest("Reading", json.loads(READING))] * 2) as server:
        older = ChatOpenAI(
            model="gpt-4-0613",
            base_url=server.base_url,
            api_key="sk-scripted",
            max_retries=0,
            http_async_client=chat(server).http_async_client,
        )
        model = LangChainChat(older)
        with pytest.warns(UserWarning, match="function_calling"):
            pieces, answer = await gather(model.stream(PROMPT, schema=Reading))
        assert server.requests[0]["tools"]
    assert json.loads("".join(pieces)) == json.loads(READING)
    assert answer.parsed.answer == TEXT


async def test_a_broken_stream_is_an_error_and_its_tokens_count(chat):
    with ScriptedServer(lambda _: READING, faults=always("half_body")) as server:
        model = LangChainChat(chat(server), limits=UsageLimits(max_calls=1))
        with pytest.raises(ModelError, match="the chat model failed"):
            await gather(model.stream(PROMPT, schema=Reading))
        used = model.meter.report().total
        assert (server.received, used.calls) == (1, 1)
        assert used.output_tokens > 0


@pytest.mark.parametrize("make", [create_ircot_chain, create_self_ask_chain])
@pytest.mark.parametrize("ours", [False, True])
async def test_the_answer_comes_in_pieces_that_add_up(retriever, chat, make, ours):
    with ScriptedServer(script, gap=0.01) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key="k") if ours else chat(server, stream_usage=True)
        chain = make(retriever, model)
        result = await chain.ainvoke(QUESTION)
        assert not server.sent
        seen = [(chunk, server.sent) async for chunk in chain.astream(QUESTION)]
        sync = await asyncio.to_thread(lambda: list(chain.stream(QUESTION)))
        if ours:
            await model.aclose()
    chunks = [chunk for chunk, _ in seen]
    pieces = [(chunk["answer"], sent) for chunk, sent in seen if "answer" in chunk]
    assert result["answer"] == said(chunks) == said(sync) == TEXT + " [1]"
    assert len(pieces) > 8
    assert pieces[0][1] < pieces[-1][1] - 8
    assert "answer" not in chunks[-1]
    plain = {**result, "documents": [d.model_dump(exclude={"type"}) for d in result["documents"]]}
    assert dict(reduce(add, chunks)) == dict(reduce(add, sync)) == plain
    assert json.loads(json.dumps(chunks)) == chunks


async def test_events_yield_the_pieces_of_the_chain_and_the_tokens_of_the_model(retriever, chat):
    with ScriptedServer(script) as server:
        chain = create_ircot_chain(retriever, chat(server))
        events = [event async for event in chain.astream_events(QUESTION, version="v2")]
    # Chains inside of it, as langchain-openai makes one for structured answers, stream too.
    own = [event for event in events if event["run_id"] == events[0]["run_id"]]
    chunks = [event["data"]["chunk"] for event in own if event["event"] == "on_chain_stream"]
    assert said(chunks) == events[-1]["data"]["output"]["answer"] == TEXT + " [1]"
    kinds = [event["event"] for event in events]
    assert kinds.count("on_chat_model_start") == kinds.count("on_chat_model_end") == 2
    tokens = "".join(e["data"]["chunk"].text for e in events if e["event"] == "on_chat_model_stream")
    assert tokens.endswith(READING)
    first_piece = next(i for i, e in enumerate(events) if e in own and "answer" in (e["data"].get("chunk") or {}))
    assert first_piece < len(kinds) - 1 - kinds[::-1].index("on_chat_model_end")


@pytest.mark.parametrize("native", [True, False])
async def test_an_answer_that_breaks_off_says_so(retriever, chat, native):
    with ScriptedServer(script, faults=at_calls({2: "half_body"})) as server:
        chain = create_ircot_chain(retriever, chat(server))
        if native:
            chunks = [chunk async for chunk in chain.astream(QUESTION)]
        else:
            chunks = await asyncio.to_thread(lambda: list(chain.stream(QUESTION)))
        assert server.received == 2
    result = reduce(add, chunks)
    assert result["answer"]
    assert TEXT.startswith(result["answer"])
    assert (result["stop"], result["sufficient"], len(result["documents"])) == ("model_failed", False, 10)
    assert "failed" in result["note"]
    assert result["steps"][-1]["text"] == result["answer"]


async def test_leaving_the_stream_ends_the_request(retriever, chat):
    with ScriptedServer(script, gap=0.02) as server:
        stream = create_ircot_chain(retriever, chat(server)).astream(QUESTION)
        async for chunk in stream:
            if "answer" in chunk:
                break
        await stream.aclose()
        while not server.left:
            await asyncio.sleep(0.01)
        assert server.sent < 18
        assert server.received == 2
    with ScriptedServer(script, gap=0.02) as server:

        def read():
            for chunk in create_ircot_chain(retriever, chat(server)).stream(QUESTION):
                if "answer" in chunk:
                    break

        await asyncio.to_thread(read)
        while not server.left:
            await asyncio.sleep(0.01)
        assert server.received == 2
