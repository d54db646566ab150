"""A newcomer's day with LlamaIndex, in the order of the guide: drop-in, filters, updates, streams, an agent."""

import httpx
import pytest
from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_sire import IRCoTQueryEngine, SireRetriever, create_sire_tool
from sire_core.data import demo_documents
from support.agent_server import AgentServer, ToolRequest
from support.scripted_server import ScriptedServer

openai = pytest.importorskip("llama_index.llms.openai", reason="llama-index-llms-openai is a development dependency")

# LlamaIndex's agents look at deprecated attributes of pydantic.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211"),
]
QUESTION = "Where was the director of the film The Salt Lantern born?"
NEEDED = {"salt-lantern", "petra-quillon"}
STEPS = (
    '{"reasoning": "The Salt Lantern was directed by Petra Quillon.", "search": "Where was Petra Quillon born?"}',
    '{"reasoning": "She was born in Varn Harbour.", "search": "DONE"}',
    '{"answer": "She was born in Varn Harbour, in the room above the smokehouse [1].", "citations": [1], "sufficient": true}',
)


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
    assert "".join(pieces) == "She was born in Varn Harbour, in the room above the smokehouse [1]."
    assert len(pieces) > 1
    assert response.source_nodes[0].node.ref_doc_id in NEEDED


async def test_an_agent_searches_by_tool(retriever, client):
    script = [ToolRequest("search_documents", {"query": QUESTION, "k": 3}), "Varn Harbour"]
    with AgentServer(script) as server:
        agent = FunctionAgent(
            tools=[create_sire_tool(retriever)], llm=client(server), system_prompt="Use tools.", streaming=False
        )
        handler = agent.run(QUESTION)
        results = [event async for event in handler.stream_events() if isinstance(event, ToolCallResult)]
        await handler
    assert all(name in str(results[0].tool_output) for name in NEEDED)
