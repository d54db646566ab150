"""A newcomer's day with LangChain, in the order of the guide: drop-in, filters, updates, streams, agents, MCP, a skill."""

import json

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage

from langchain_sire import SireMiddleware, SireRetriever, create_ircot_chain, create_sire_tool
from sire_core.data import demo_documents
from support.agent_server import AgentServer, ToolRequest
from support.command import run
from support.langchain_demo import chats_over_http
from support.newcomer import ANSWER, NEEDED, QUESTION, STEPS, mcp_client, skill_commands
from support.scripted_server import ScriptedServer


@pytest.fixture
async def chat():
    async with chats_over_http() as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("day") / "my-index"


@pytest.fixture(scope="module")
def retriever(folder):
    documents = [Document(d.text, id=d.id, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
    return SireRetriever.from_documents(documents, path=folder, recipe="sire", k=4)


def test_drop_in_filters_and_updates(retriever, folder):
    assert {document.id for document in retriever.invoke(QUESTION, k=3)} >= NEEDED
    assert {d.metadata["kind"] for d in retriever.invoke("Northern Wren", filter={"kind": "ship"})} == {"ship"}
    retriever.add_documents([Document("The pier of Lindle opened in 1904.", id="pier", metadata={"kind": "building"})])
    assert retriever.invoke("When did the pier of Lindle open?", k=1)[0].id == "pier"
    assert "1 removed" in str(retriever.delete_documents(["pier"]))
    with SireRetriever.load(folder).index as index:
        assert len(index.documents()) == len(demo_documents())


async def test_streamed_ircot_with_citations(retriever, chat):
    with ScriptedServer(lambda call: STEPS[min(call.number, 3) - 1], gap=0.02) as server:
        chunks = [chunk async for chunk in create_ircot_chain(retriever, chat(server)).astream(QUESTION)]
        assert server.received == 3
    pieces = [chunk["answer"] for chunk in chunks if chunk.get("answer")]
    assert "".join(pieces) == ANSWER
    assert len(pieces) > 1  # tokens, as the model writes them
    kinds = [step["type"] for chunk in chunks for step in chunk["steps"]]
    assert kinds[:4] == ["retrieved", "thought", "sub_question", "retrieved"]
    [result] = [chunk for chunk in chunks if "citations" in chunk]
    assert result["documents"][result["citations"][0] - 1]["id"] in NEEDED
    assert result["usage"]["calls"] == 3


async def test_an_agent_searches_by_tool_and_by_middleware(retriever, chat):
    ask = {"messages": [HumanMessage(QUESTION)]}
    with AgentServer([ToolRequest("search_documents", {"query": QUESTION, "k": 3}), "Varn Harbour"]) as server:
        said = (await create_agent(chat(server), [create_sire_tool(retriever)]).ainvoke(ask))["messages"]
    [shown] = [message for message in said if isinstance(message, ToolMessage)]
    assert all(f"[{name}]" in shown.content or name in shown.content for name in NEEDED)
    assert {document.id for document in shown.artifact} >= NEEDED
    with AgentServer(["Varn Harbour"]) as server:
        await create_agent(chat(server), [], middleware=[SireMiddleware(retriever)]).ainvoke(ask)
        assert "smokehouse in Varn Harbour" in json.dumps(server.requests[0]["messages"])


async def test_an_agent_searches_over_mcp(retriever, folder):
    async with mcp_client(folder) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["search", "ask"]
        found = (await client.call_tool("search", {"query": QUESTION, "k": 3})).structured_content
        assert {name for hit in found["hits"] for name in hit["doc_ids"]} >= NEEDED
        opened = (await client.call_tool("open", {"id": "petra-quillon"})).structured_content
        assert opened["title"] == "Petra Quillon"


def test_an_agent_follows_the_skill(retriever, folder):
    search, show, *_ = skill_commands(folder)
    hits = json.loads(run(*search).stdout)
    assert {name for hit in hits[:3] for name in hit["doc_ids"]} >= NEEDED
    assert "Varn Harbour" in run(*show).stdout
