"""Chains and answers in pieces with `ChatOpenAI` over real HTTP."""

import json

import pytest

from langchain_sire import LangChainChat, SireRetriever, create_ircot_chain, create_self_ask_chain
from sire_core.protocols import Prompt
from sire_core.reason.prompts import Reading
from support.adapter_results import gather
from support.langchain_demo import as_langchain, chats_over_http
from support.langchain_runs import IRCOT, QUESTION, SELF_ASK
from support.scripted_server import ScriptedServer


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


async def test_a_server_without_schemas_is_asked_in_words(chat):
    with ScriptedServer(lambda _: READING, formats=()) as server:
        model = LangChainChat(chat(server))
        for requests in (2, 3):  # the first answer costs a refusal
            pieces, answer = await gather(model.stream(PROMPT, schema=Reading))
            assert "".join(pieces) == answer.text
            assert answer.parsed.answer == TEXT
            assert server.received == requests
        assert len(pieces) > 10


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
