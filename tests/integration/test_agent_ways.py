"""An agent of each framework finds both documents over MCP (official client), by the skill's commands, and as files."""

import os
import re
import shlex
import sys
from contextlib import asynccontextmanager

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from langchain_sire import SireRetriever
from sire_core import Index
from sire_core.data import demo_documents
from support.agent_server import AgentServer, ToolRequest
from support.command import run
from support.langchain_demo import chats_over_http

QUESTION = "Where was the director of the film The Salt Lantern born?"
NEEDED = {"salt-lantern", "petra-quillon"}

# LlamaIndex's agents look at deprecated attributes of pydantic.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ways") / "my-index"
    with Index(path, recipe="sire") as index:
        index.build(demo_documents())
    return path


@asynccontextmanager
async def over_mcp(folder):
    """The tools of `sire mcp` as functions, by name, and what the agent calls."""
    words = ["-c", "from sire_core.cli import main; main()", "mcp", str(folder)]
    server = stdio_client(StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ)))
    async with Client(server) as client:

        async def search(query: str, k: int) -> str:
            """Search documents."""
            return (await client.call_tool("search", {"query": query, "k": k})).content[0].text

        async def open_(doc_id: str) -> str:
            """Open a document."""
            return (await client.call_tool("open", {"doc_id": doc_id})).content[0].text

        calls = [ToolRequest("search", {"query": QUESTION, "k": 3}), ToolRequest("open", {"doc_id": "petra-quillon"})]
        yield {"search": search, "open": open_}, calls


@asynccontextmanager
async def by_skill(folder):
    """A shell for `sire`, and the commands that the skill shows, as an agent fills them in."""

    async def shell(words: list[str]) -> str:
        """Run a command of sire."""
        return run(*words).stdout

    commands = re.findall(r"^sire (.+)$", run("skill", folder).stdout, re.MULTILINE)[:2]
    values = {"QUESTION": QUESTION, "DOC_ID": "petra-quillon"}
    words = [[values.get(word, word) for word in shlex.split(command)] for command in commands]
    yield {"shell": shell}, [ToolRequest("shell", {"words": each}) for each in words]


@asynccontextmanager
async def by_files(folder):
    """Documents as files, which a Deep Agent has as they are, and another agent as tools."""
    pytest.importorskip("deepagents")
    from langchain_sire import SireBackend

    backend = SireBackend(SireRetriever.load(folder, k=3))

    async def grep(pattern: str) -> str:
        """Find files."""
        return str((await backend.agrep(pattern)).matches)

    async def read(file_path: str) -> str:
        """Read a file."""
        return (await backend.aread(file_path)).file_data["content"]

    calls = [ToolRequest("grep", {"pattern": QUESTION}), ToolRequest("read", {"file_path": "/petra-quillon"})]
    yield {"grep": grep, "read": read}, calls


async def langchain_outputs(server, tools):
    async with chats_over_http() as chat:
        made = [StructuredTool.from_function(coroutine=function, name=name) for name, function in tools.items()]
        state = await create_agent(chat(server), made).ainvoke({"messages": [HumanMessage(QUESTION)]})
    return [str(message.content) for message in state["messages"] if isinstance(message, ToolMessage)]


async def llama_index_outputs(server, tools):
    async with httpx.AsyncClient() as native:
        with httpx.Client() as sync:
            keys = {"api_base": server.base_url, "api_key": "sk-scripted", "max_retries": 0}
            model = OpenAI("gpt-4o-mini", http_client=sync, async_http_client=native, **keys)
            made = [FunctionTool.from_defaults(async_fn=function, name=name) for name, function in tools.items()]
            handler = FunctionAgent(tools=made, llm=model, system_prompt="Use tools.", streaming=False).run(QUESTION)
            events = [event async for event in handler.stream_events() if isinstance(event, ToolCallResult)]
            await handler
    return [str(event.tool_output) for event in events]


@pytest.mark.parametrize("way", [over_mcp, by_skill, by_files])
@pytest.mark.parametrize("outputs_of", [langchain_outputs, llama_index_outputs])
async def test_an_agent_finds_both_documents(outputs_of, way, folder):
    async with way(folder) as (tools, calls):
        with AgentServer([*calls, "Varn Harbour"]) as server:
            found, opened = await outputs_of(server, tools)
    assert all(name in found for name in NEEDED)
    assert "Petra Quillon" in opened
