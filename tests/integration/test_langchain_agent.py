"""The tool in LangChain's `create_agent`: with a scripted chat model, and with `ChatOpenAI` over real HTTP."""

import json

import httpx
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI

from langchain_sire import SireRetriever, create_sire_tool
from sire_core.data import demo_questions
from support.agent_server import AgentServer, ToolRequest
from support.langchain_demo import ScriptedAgent, as_langchain

create_agent = pytest.importorskip("langchain.agents", reason="langchain is a development dependency").create_agent

QUESTION = demo_questions()[0].question
TOOL = "search_documents"


def _wants(number=1, **arguments):
    return {"name": TOOL, "args": arguments, "id": str(number), "type": "tool_call"}


@pytest.fixture(scope="module")
def retriever():
    return SireRetriever.from_documents(as_langchain(), k=3)


def _asked(question=QUESTION):
    return {"messages": [{"role": "user", "content": question}]}


def test_the_retriever_run_is_inside_the_tool_run(retriever):
    runs, parents = {}, {}

    class Spy(BaseCallbackHandler):
        def on_tool_start(self, serialized, text, *, run_id, parent_run_id=None, **kwargs):
            runs["tool"] = run_id

        def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
            parents[query] = parent_run_id

    model = ScriptedAgent(turns=[[_wants(query=QUESTION)], "Done."], seen=[])
    create_agent(model, [create_sire_tool(retriever)]).invoke(_asked(), {"callbacks": [Spy()]})
    assert parents == {QUESTION: runs["tool"]}


def _about(messages):
    """Searches for whom the question names, then for whoever that passage names, then answers with the citation."""
    told = [message["content"] for message in messages if message["role"] == "tool"]
    if not told:
        return ToolRequest(TOOL, {"query": "Who wrote the novel The Weather Clerk?", "k": 2})
    if len(told) == 1:
        assert "Ilse Marrable" in told[0]
        return ToolRequest(TOOL, {"query": "In which year did Ilse Marrable die?", "k": 2})
    return "In 1931 [ilse-marrable]."


@pytest.mark.parametrize("streamed", [False, True])
async def test_chat_openai_over_http_searches_twice_and_answers(retriever, streamed):
    async with httpx.AsyncClient() as native:
        with AgentServer(_about) as server, httpx.Client() as sync:
            model = ChatOpenAI(
                model="gpt-4o-mini",
                base_url=server.base_url,
                api_key="sk-scripted",
                max_retries=0,
                streaming=streamed,
                http_client=sync,
                http_async_client=native,
            )
            agent = create_agent(model, [create_sire_tool(retriever)], system_prompt="Search before you answer.")
            state = await agent.ainvoke(_asked("In which year did the author of The Weather Clerk die?"))
    assert state["messages"][-1].content == "In 1931 [ilse-marrable]."
    found = [m.artifact for m in state["messages"] if isinstance(m, ToolMessage)]
    assert [len(documents) for documents in found] == [2, 2]
    assert len(server.requests) == 3
    assert bool(server.requests[0].get("stream")) is streamed
    schema = server.requests[0]["tools"][0]["function"]
    assert set(schema["parameters"]["properties"]) == {"query", "k", "filter", "as_of"}
    told = [m["content"] for m in server.requests[2]["messages"] if m["role"] == "tool"]
    assert told[0].startswith("[weather-clerk] ")
    assert told[1].startswith("[ilse-marrable] Ilse Marrable ")
    assert "1931" in told[1]
    assert not json.dumps(server.requests).count("input is")
