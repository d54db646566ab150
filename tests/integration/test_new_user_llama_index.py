"""A newcomer's day with LlamaIndex, in the order of the guide: drop-in, filters, updates, streams, an agent by tool, MCP and skill."""

import httpx
import pytest
from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.tools import FunctionTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_sire import IRCoTQueryEngine, SireRetriever, create_sire_tool
from sire_core.data import demo_documents
from support.agent_server import AgentServer, ToolRequest
from support.command import run
from support.newcomer import ANSWER, NEEDED, QUESTION, STEPS, mcp_client, skill_commands
from support.scripted_server import ScriptedServer

openai = pytest.importorskip("llama_index.llms.openai", reason="llama-index-llms-openai is a development dependency")

# LlamaIndex's agents look at deprecated attributes of pydantic.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211"),
]


class InWords(openai.OpenAI):
    """A model that is asked in words; the scripted server calls functions only for agents."""

    @property
    def metadata(self):
        return super().metadata.model_copy(update={"is_function_calling_model": False})


@pytest.fixture
async def client():
    async with httpx.AsyncClient() as native:
        with httpx.Client() as sync:
            yield lambda server, kind=openai.OpenAI: kind(
                "gpt-4o-mini",
                api_base=server.base_url,
                api_key="sk-scripted",
                max_retries=0,
                http_client=sync,
                async_http_client=native,
            )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("day") / "my-index"


@pytest.fixture(scope="module")
def retriever(folder):
    documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
    return SireRetriever.from_documents(documents, persist_dir=folder, recipe="sire", similarity_top_k=3)


def test_drop_in_filters_and_updates(retriever, folder):
    assert {found.node.ref_doc_id for found in retriever.retrieve(QUESTION)} >= NEEDED
    ships = retriever.as_retriever(filters=MetadataFilters(filters=[MetadataFilter(key="kind", value="ship")]))
    assert {found.node.metadata["kind"] for found in ships.retrieve("Northern Wren")} == {"ship"}
    pier = Document(id_="pier", text="The pier of Lindle opened in 1904.")
    assert str(retriever.insert(pier)).startswith("1 added")
    assert retriever.retrieve("When did the pier of Lindle open?")[0].node.ref_doc_id == "pier"
    retriever.delete_ref_doc("pier")
    with SireRetriever.from_persist_dir(folder).index as index:
        assert len(index.documents()) == len(demo_documents())


async def test_streamed_ircot_with_citations(retriever, client):
    with ScriptedServer(lambda call: STEPS[min(call.number, 3) - 1], gap=0.02) as server:
        response = await IRCoTQueryEngine(retriever, llm=client(server, InWords), streaming=True).aquery(QUESTION)
        pieces = [piece async for piece in response.async_response_gen()]
        assert server.received == 3
    assert "".join(pieces) == ANSWER
    assert len(pieces) > 1
    assert response.source_nodes[0].node.ref_doc_id in NEEDED


async def outputs_of(tools, script, client):
    """What tools gave an agent whose model follows a script."""
    with AgentServer([*script, "Varn Harbour"]) as server:
        agent = FunctionAgent(tools=tools, llm=client(server), system_prompt="Use tools.", streaming=False)
        handler = agent.run(QUESTION)
        outputs = [str(e.tool_output) async for e in handler.stream_events() if isinstance(e, ToolCallResult)]
        assert "Varn Harbour" in str(await handler)
    return outputs


async def test_an_agent_searches_by_tool(retriever, client):
    script = [ToolRequest("search_documents", {"query": QUESTION, "k": 3})]
    [found] = await outputs_of([create_sire_tool(retriever)], script, client)
    assert all(name in found for name in NEEDED)


async def test_an_agent_searches_over_mcp(retriever, folder, client):
    async with mcp_client(folder) as mcp:

        async def call(name: str, arguments: dict) -> str:
            return (await mcp.call_tool(name, arguments)).content[0].text

        def tool(spec):
            async def run_tool(**arguments) -> str:
                return await call(spec.name, arguments)

            return FunctionTool.from_defaults(async_fn=run_tool, name=spec.name, description=spec.description)

        tools = [tool(spec) for spec in (await mcp.list_tools()).tools]
        script = [ToolRequest("search", {"query": QUESTION, "k": 3}), ToolRequest("open", {"doc_id": "petra-quillon"})]
        found, opened = await outputs_of(tools, script, client)
    assert all(name in found for name in NEEDED)
    assert "Petra Quillon" in opened


async def test_an_agent_follows_the_skill(retriever, folder, client):
    def shell(words: list[str]) -> str:
        """Runs the command sire."""
        return run(*words).stdout

    script = [ToolRequest("shell", {"words": command}) for command in skill_commands(folder)[:2]]
    found, shown = await outputs_of([FunctionTool.from_defaults(shell)], script, client)
    assert all(name in found for name in NEEDED)
    assert "Varn Harbour" in shown
