"""Answers of both adapters that come piece by piece, over real HTTP: of the model, and of the reasoning."""

import asyncio
import json

import httpx
import pytest

from sire_core.errors import ModelError
from sire_core.models.openai.client import OpenAIChat
from sire_core.protocols import Prompt, StreamingModel
from sire_core.reason.prompts import Reading
from support.adapter_results import gather
from support.agent_server import AgentServer, ToolRequest
from support.faults import always, at_calls
from support.scripted_server import ScriptedServer

pytest.importorskip("langchain_openai", reason="langchain-openai is a development dependency")
pytest.importorskip("llama_index.llms.openai", reason="llama-index-llms-openai is a development dependency")

QUESTION = "In which year did the author of the novel The Weather Clerk die?"
TEXT = 'In 1931, on the second of November, in the house where \u00e9very room had a "lamp" of its own'
SAID = json.dumps({"answer": TEXT, "citations": [1], "sufficient": True})
DONE = '{"reasoning": "She died in 1931.", "search": "DONE"}'
PROMPT = Prompt("Answer it.", "When?")


@pytest.fixture
async def chat(adapter):
    """A client of a server, whose connections are closed at the end."""
    async with httpx.AsyncClient(timeout=5) as native:
        with httpx.Client(timeout=5) as sync:
            yield lambda server, **more: adapter.chat(server, sync, native, **more)


def script(call):
    return SAID if "citations" in call.instructions else DONE if "search:" in call.instructions else "Done: answer"


@pytest.mark.parametrize("schema", [None, Reading])
async def test_a_model_streams_what_it_answers(adapter, chat, schema):
    with ScriptedServer(lambda _: SAID, gap=0.01) as server:
        model = adapter.bridged(chat(server))
        assert isinstance(model, StreamingModel)
        whole = await model.complete(PROMPT, schema=schema)  # first, so that nothing is imported while pieces arrive
        before = server.sent
        seen = [(part, server.sent - before) async for part in model.stream(PROMPT, schema=schema)]
        pieces, answer = [part for part, _ in seen[:-1]], seen[-1][0]
        assert server.log[1].call.body["stream"] is True
        assert server.log[0].prompt == server.log[1].prompt
        assert server.log[0].format == server.log[1].format
    assert "".join(pieces) == answer.text == SAID
    assert (answer.parsed, answer.text, answer.finish) == (whole.parsed, whole.text, whole.finish)
    assert (answer.input_tokens, answer.output_tokens) == (whole.input_tokens, whole.output_tokens)
    assert seen[0][1] < seen[-1][1] / 2


@pytest.mark.filterwarnings("ignore:.*function_calling")  # LangChain, of models that know no schemas
async def test_the_arguments_of_a_function_stream(adapter, chat):
    with AgentServer([ToolRequest("Reading", json.loads(SAID))] * 2) as server:
        pieces, answer = await gather(adapter.bridged(chat(server, functions=True)).stream(PROMPT, schema=Reading))
        assert server.requests[0]["tools"]
    assert json.loads("".join(pieces)) == json.loads(SAID)
    assert answer.parsed.answer == TEXT


async def test_a_broken_stream_is_an_error_and_its_tokens_count(adapter, chat):
    with ScriptedServer(lambda _: SAID, faults=always("half_body")) as server:
        model = adapter.bridged(chat(server))
        with pytest.raises(ModelError, match="failed"):
            await gather(model.stream(PROMPT, schema=Reading))
        assert server.received == 1
    if hasattr(model, "meter"):
        used = model.meter.report().total
        assert used.calls == 1
        assert used.output_tokens > 0


async def test_a_flawed_answer_is_repaired(adapter, chat):
    with ScriptedServer(lambda call: SAID[:30] if call.number == 1 else SAID) as server:
        pieces, answer = await gather(adapter.bridged(chat(server)).stream(PROMPT, schema=Reading))
        assert server.received == 2
    assert "".join(pieces) == SAID[:30]
    assert answer.parsed.answer == TEXT


@pytest.fixture
def reasoner(adapter, index_of):
    return lambda llm, via="ircot", **options: adapter.reasoner(via, adapter.over(index_of(), k=4), llm, **options)


def ids(answer):
    return [found.id if hasattr(found, "page_content") else found.node_id for found in answer.found]


@pytest.mark.parametrize(("via", "ours"), [("ircot", False), ("self-ask", True)])
async def test_the_answer_comes_in_pieces_that_add_up(adapter, chat, reasoner, via, ours):
    with ScriptedServer(script, gap=0.01) as server:
        llm = OpenAIChat("m", base_url=server.base_url, api_key="k") if ours else chat(server)
        whole = await adapter.ask(reasoner(llm, via), QUESTION)
        assert not server.sent
        streaming = reasoner(llm, via, streaming=True)
        seen = [(part, server.sent) async for part in adapter.astream(streaming, QUESTION)]
        in_sync = await asyncio.to_thread(lambda: list(adapter.stream(streaming, QUESTION)))
        if ours:
            await llm.aclose()
    pieces = [piece for piece, _ in seen[:-1]]
    assert "".join(pieces) == "".join(in_sync[:-1]) == whole.text == TEXT + " [1]"
    assert len(pieces) > 8
    assert seen[0][1] < seen[-2][1] - 8
    for given in (seen[-1][0], in_sync[-1]):
        assert (given.text, ids(given)) == (whole.text, ids(whole))
        for key in ("steps", "stop", "sufficient", "citations", "note"):
            assert given.rest[key] == whole.rest[key]


@pytest.mark.parametrize("native", [True, False])
async def test_an_answer_that_breaks_off_says_so(adapter, chat, reasoner, native):
    with ScriptedServer(script, faults=at_calls({2: "half_body"})) as server:
        asked = reasoner(chat(server), streaming=True)
        if native:
            *pieces, result = [part async for part in adapter.astream(asked, QUESTION)]
        else:
            *pieces, result = await asyncio.to_thread(lambda: list(adapter.stream(asked, QUESTION)))
        assert server.received == 2
    assert result.text == "".join(pieces) != ""
    assert TEXT.startswith(result.text)
    assert (result.rest["stop"], result.rest["sufficient"], len(result.found)) == ("model_failed", False, 10)
    assert "failed" in result.rest["note"]
    assert result.rest["steps"][-1]["text"] == result.text


@pytest.mark.parametrize("native", [True, False])
async def test_leaving_the_stream_ends_the_request(adapter, chat, reasoner, native):
    if adapter.name == "llama-index" and not native:
        pytest.skip("LlamaIndex's client of OpenAI never closes a sync stream")
    with ScriptedServer(script, gap=0.1) as server:
        asked = reasoner(chat(server), streaming=True)
        if native:
            parts = adapter.astream(asked, QUESTION)
            await anext(parts)
            await parts.aclose()
        else:
            parts = adapter.stream(asked, QUESTION)
            await asyncio.to_thread(next, parts)
            await asyncio.to_thread(parts.close)
        while not server.left:
            await asyncio.sleep(0.01)
        assert server.sent < 18
        assert server.received == 2
