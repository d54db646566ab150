"""Our tools in LlamaIndex's `FunctionAgent`, whose model and ours are `OpenAI` clients over real HTTP."""

import json

import httpx
import pytest
from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.tools import QueryEngineTool

from llama_index_sire import IRCoTQueryEngine, SireRetriever, create_sire_answer_tool, create_sire_tool
from sire_core.data import demo_documents
from support.agent_server import AgentServer, ToolRequest
from support.scripted_server import ScriptedServer

openai = pytest.importorskip("llama_index.llms.openai", reason="llama-index-llms-openai is a development dependency")

# LlamaIndex's agents look at deprecated attributes of pydantic.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211"),
]
CLIENTS = {}
QUESTION = "In which year did the author of the novel The Weather Clerk die?"
SECOND = "In which year did Ilse Marrable die?"


def reasoning(call):
    """IRCoT: thinks after what it was shown, and cites the passage that says it."""
    if "citations" in call.instructions:
        shown = json.dumps(call.fields, ensure_ascii=False)
        known = "1931" in shown
        return json.dumps({"answer": "1931" if known else "", "citations": [1] if known else [], "sufficient": known})
    done = "reasoning" in call.fields
    return json.dumps({"reasoning": "It is by Ilse Marrable.", "search": "DONE" if done else SECOND})


@pytest.fixture(autouse=True)
async def http():
    """Connections of the test; LlamaIndex's own are never closed."""
    async with httpx.AsyncClient() as native:
        with httpx.Client() as sync:
            CLIENTS.update(http_client=sync, async_http_client=native)
            yield
    CLIENTS.clear()


def client_of(server):
    return openai.OpenAI("gpt-4o-mini", api_base=server.base_url, api_key="sk-scripted", max_retries=0, **CLIENTS)


def agent_of(tools, server, *, streaming):
    return FunctionAgent(
        tools=tools, llm=client_of(server), system_prompt="Use your tools before you answer.", streaming=streaming
    )


@pytest.fixture(scope="module")
def retriever():
    documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
    return SireRetriever.from_documents(documents, similarity_top_k=4)


def told(messages):
    return [message["content"] for message in messages if message["role"] == "tool"]


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_agent_asks_for_an_answer_corrects_itself_and_checks_it(retriever, streaming):
    def turns(messages):
        read = told(messages)
        if not read:
            return ToolRequest("answer_from_documents", {"question": QUESTION, "depth": 3})
        if len(read) == 1:
            assert "there is no argument depth" in read[0]
            return ToolRequest("answer_from_documents", {"question": QUESTION, "k": 3})
        if len(read) == 2:
            assert read[1].startswith("1931 [")
            return ToolRequest("search_documents", {"query": SECOND, "k": 1, "filter": {"kind": "person"}})
        return "In 1931 [ilse-marrable]."

    with ScriptedServer(reasoning) as thinker, AgentServer(turns) as server:
        tools = [
            create_sire_answer_tool(IRCoTQueryEngine(retriever, llm=client_of(thinker))),
            create_sire_tool(retriever),
        ]
        handler = agent_of(tools, server, streaming=streaming).run(QUESTION)
        results = [event async for event in handler.stream_events() if isinstance(event, ToolCallResult)]
        assert str(await handler) == "In 1931 [ilse-marrable]."
    refused, answered, searched = (found.tool_output for found in results)
    assert refused.is_error
    response = answered.raw_output
    assert (response.metadata["sufficient"], response.metadata["usage"]["retrievals"]) == (True, 2)
    assert len(thinker.log) == response.metadata["usage"]["calls"] == 3
    assert len(response.source_nodes) == 3
    cited = response.source_nodes[response.metadata["citations"][0] - 1].node.ref_doc_id
    assert answered.content.startswith(f"1931 [{cited}]\n\nSources:\n[{cited}] ")
    assert searched.content.startswith("[ilse-marrable] Ilse Marrable ")
    assert bool(server.requests[0].get("stream")) is streaming
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in server.requests[0]["tools"]}
    assert set(offered["answer_from_documents"]["properties"]) == {"query", "k", "filter", "as_of", "show_steps"}
    assert set(offered["search_documents"]["properties"]) == {"query", "k", "filter", "as_of", "max_tokens"}


async def test_an_engine_behind_llama_indexs_own_tool_says_what_its_citations_are(retriever):
    def turns(messages):
        read = told(messages)
        if not read:
            return ToolRequest("novels", {"input": QUESTION})
        assert "Sources:\n[1] " in read[0]
        return "In 1931."

    with ScriptedServer(reasoning) as thinker, AgentServer(turns) as server:
        engine = IRCoTQueryEngine(retriever, llm=client_of(thinker))
        tool = QueryEngineTool.from_defaults(engine, name="novels", description="Knows novels and their authors.")
        assert str(await agent_of([tool], server, streaming=False).run(QUESTION)) == "In 1931."
