"""Chains and the graph with `ChatOpenAI` over real HTTP: order, streaming, cancellation, connections."""

import asyncio

import pytest

from langchain_sire import SireRetriever, create_ircot_chain, create_self_ask_chain
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


@pytest.fixture
async def chat():
    async with chats_over_http() as make:
        yield make


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


async def test_sync_and_async_give_the_same_and_count_what_the_server_counts(retriever, chat):
    results = []
    for native in (False, True):
        with ScriptedServer(_in_order(IRCOT)) as server:
            chain = create_ircot_chain(retriever, chat(server))
            results.append(await chain.ainvoke(QUESTION) if native else chain.invoke(QUESTION))
            assert server.received == results[-1]["usage"]["calls"] == 3
    assert results[0] == results[1]
    assert results[0]["answer"] == "In 1931 [1]"


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


async def test_faults_of_the_server_degrade(retriever, chat):
    with ScriptedServer(_in_order(IRCOT), faults=always("server_error")) as server:
        result = create_ircot_chain(retriever, chat(server), on_model_error="return").invoke(QUESTION)
        assert (result["stop"], len(result["documents"])) == ("model_failed", 10)
        assert "scripted server error" in result["note"]
    with ScriptedServer(_in_order(IRCOT), faults=at_calls({1: "fenced", 2: "trailing_comma"})) as server:
        assert create_ircot_chain(retriever, chat(server)).invoke(QUESTION)["answer"] == "In 1931 [1]"


async def test_four_questions_at_once_take_the_time_of_one(retriever, chat):
    with ScriptedServer(lambda _: '{"reasoning": "", "search": "DONE", "answer": "x"}', latency=1.0) as server:
        chain = create_ircot_chain(retriever, chat(server))
        results = await asyncio.wait_for(chain.abatch([QUESTION] * 4), 20)
        assert server.most_active == 4
        assert len(results) == 4
        assert len(chain.batch([QUESTION] * 4)) == 4
