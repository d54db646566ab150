"""`create_sire_tool`: what the model passes, reads and gets told."""

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import SireRetriever, create_sire_tool
from sire_core.errors import ConfigurationError, StorageError


@pytest.fixture
def tool(index_of):
    return create_sire_tool(SireRetriever(index=index_of(), k=3), "atlas", "Knows the islands.")


def _call(**arguments):
    return ToolCall(name="atlas", args=arguments, id="1", type="tool_call")


def test_schema_for_the_model_has_the_arguments_of_a_search_only(tool):
    function = convert_to_openai_tool(tool)["function"]
    assert (function["name"], function["description"]) == ("atlas", "Knows the islands.")
    assert set(function["parameters"]["properties"]) == {"query", "k", "filter", "as_of"}
    assert function["parameters"]["required"] == ["query"]


def test_trap_the_query_reaches_the_retriever_as_the_model_wrote_it(tool, index_of, question):
    asked = []

    class Spy(BaseCallbackHandler):
        def on_retriever_start(self, serialized, query, **kwargs):
            asked.append(query)

    tool.invoke({"query": question}, {"callbacks": [Spy()]})
    assert asked == [question]


async def test_text_is_cited_and_documents_are_the_artifact(tool, index_of, question):
    message = tool.invoke(_call(query=question, k=2))
    assert isinstance(message, ToolMessage)
    assert message.artifact == SireRetriever(index=index_of()).invoke(question, k=2)
    first = message.artifact[0]
    assert message.content.startswith(f"[{', '.join(first.metadata['sire']['doc_ids'])}] {first.page_content[:20]}")
    assert message.content.count("\n\n[") == 1
    native = await tool.ainvoke(_call(query=question, k=2))
    assert (native.content, native.artifact) == (message.content, message.artifact)


async def test_k_and_filter_work_in_sync_and_async(tool, question):
    for message in (
        tool.invoke(_call(query=question, k=7, filter={"kind": "person"})),
        await tool.ainvoke(_call(query=question, k=7, filter="kind=person")),
    ):
        assert len(message.artifact) == 7
        assert all(d.metadata["kind"] == "person" for d in message.artifact)
    assert len(tool.invoke(_call(query=question)).artifact) == 3


def test_a_model_cannot_widen_the_retrievers_filter(index_of, question):
    mine = create_sire_tool(SireRetriever(index=index_of(), filter={"kind": "person"}), "atlas")
    message = mine.invoke(_call(query=question, filter={"kind": "ship"}))
    assert message.content.startswith("Nothing was found.")
    assert message.artifact == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": "who", "k": 0}, "k: Input should be greater than or equal to 1"),
        ({"query": "who", "k": 1000}, "k: Input should be less than or equal to 50"),
        ({"query": "who", "top_k": 3}, "top_k: Extra inputs"),
        ({"k": 3}, "query: Field required"),
        ({"query": "who", "filter": {"year": {"like": 1}}}, "Unknown filter operator 'like'"),
        ({"query": "   "}, "is empty"),
    ],
)
async def test_wrong_arguments_are_told_to_the_model(tool, arguments, words):
    for message in (tool.invoke(_call(**arguments)), await tool.ainvoke(_call(**arguments))):
        assert message.status == "error"
        assert words in message.content
        assert "pydantic.dev" not in message.content


def test_what_is_no_fault_of_the_model_raises(tmp_path):
    from sire_core.index import Index

    with pytest.raises(StorageError):
        create_sire_tool(Index(tmp_path / "nothing")).invoke(_call(query="who"))


def test_only_ours_is_taken():
    from langchain_core.embeddings import DeterministicFakeEmbedding

    with pytest.raises(ConfigurationError, match="create_retriever_tool"):
        create_sire_tool(InMemoryVectorStore(DeterministicFakeEmbedding(size=4)).as_retriever())
    with pytest.raises(ConfigurationError, match="str is no SireRetriever"):
        create_sire_tool("folder")
