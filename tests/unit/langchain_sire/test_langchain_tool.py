"""Tools for agents, and reasoning over retrievers that are not ours."""

import json

import pytest
from langchain_core.documents import Document
from langchain_core.messages import ToolCall
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import BaseModel, Field

from langchain_sire import (
    SireRetriever,
    create_ircot_chain,
    create_ircot_graph,
    create_self_ask_graph,
    create_sire_answer_tool,
    create_sire_tool,
)
from sire_core.errors import ConfigurationError, StorageError
from support.langchain_adapter import LangChain
from support.langchain_chat import model
from support.langchain_runs import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK, Runs


@pytest.fixture
def tool(index_of):
    return create_sire_tool(SireRetriever(index=index_of(), k=3), "atlas", "Knows the islands.")


def _call(**arguments):
    return ToolCall(name="atlas", args=arguments, id="1", type="tool_call")


async def test_a_filter_without_meaning_is_told_to_the_model(tool):
    call = _call(query="who", filter={"year": {"like": 1}})
    for message in (tool.invoke(call), await tool.ainvoke(call)):
        assert message.status == "error"
        assert "Unknown filter operator 'like'" in message.content


def test_what_is_no_fault_of_the_model_raises(tmp_path):
    from sire_core.index import Index

    with pytest.raises(StorageError):
        create_sire_tool(Index(tmp_path / "nothing")).invoke(_call(query="who"))


def test_only_ours_is_taken():
    from langchain_core.embeddings import DeterministicFakeEmbedding

    with pytest.raises(ConfigurationError, match="create_retriever_tool"):
        create_sire_tool(InMemoryVectorStore(DeterministicFakeEmbedding(size=4)).as_retriever())


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of("sire"), k=4)


def test_arguments_of_ones_own(retriever):
    class Wanted(BaseModel):
        query: str = Field(description="Ask about the islands.")

    tool = create_ircot_chain(retriever, model(*IRCOT)).as_tool(Wanted)
    assert set(convert_to_openai_tool(tool)["function"]["parameters"]["properties"]) == {"query"}
    assert tool.invoke({"query": QUESTION}).startswith("In 1931 [")
    with pytest.raises(ConfigurationError, match="not depth"):
        create_ircot_chain(retriever, model(*IRCOT)).as_tool(arg_types={"question": str, "depth": int})


def test_what_cannot_be_made(retriever):
    with pytest.raises(ConfigurationError, match="single has no option flavor"):
        create_sire_answer_tool(retriever, model(*IRCOT), via="single", flavor="original")


def test_recipe_k_and_filter_stand_in_the_trace(retriever):
    seen = []

    class Spy(Runs):
        def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, metadata=None, **kwargs):
            seen.append(metadata)
            super().on_retriever_start(serialized, query, run_id=run_id, parent_run_id=parent_run_id, **kwargs)

    chain = create_ircot_chain(retriever, model(*IRCOT))
    chain.invoke(QUESTION, {"callbacks": [Spy()]}, filter="kind=person", k=4)
    assert len(seen) == 2
    for metadata in seen:
        assert (metadata["sire_strategy"], metadata["sire_recipe"], metadata["sire_k"]) == ("ircot", "sire", 4)
        assert "kind" in metadata["sire_filter"]
        assert "person" in metadata["sire_filter"]


@pytest.fixture
def words(documents):
    kept = [
        Document(id=f"chunk-{d.id}", page_content=d.page_content, metadata={"source": f"{d.id}.md", "page": number})
        for number, d in enumerate(documents)
    ]
    return LangChain.Words(given=kept, asked=[])


def test_their_documents_cannot_be_changed_through_ours(words):
    found = create_ircot_chain(words, model(*IRCOT), k=4).invoke(QUESTION)["documents"][0]
    found.metadata["page"] = "changed"
    assert "changed" not in [document.metadata["page"] for document in words.given]


class Scored(LangChain.Words):
    """Gives documents without ids, and says in their metadata how well they fit this question, as rerankers do."""

    def _get_relevant_documents(self, query, *, run_manager):
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        return [
            Document(page_content=d.page_content, metadata={**d.metadata, "relevance_score": len(self.asked) + n / 10})
            for n, d in enumerate(found)
        ]


def test_a_passage_is_one_whatever_a_search_says_of_it(words):
    result = create_ircot_chain(Scored(given=words.given[:4], asked=[]), model(*IRCOT), k=6).invoke(QUESTION)
    texts = [document.page_content for document in result["documents"]]
    assert len(texts) == len(set(texts)) > 1
    assert all("relevance_score" in document.metadata for document in result["documents"])


def test_texts_that_are_alike_in_two_files_are_two(words):
    twice = [Document(page_content="The same words.", metadata={"source": name}) for name in ("a.md", "b.md")]
    result = create_ircot_chain(LangChain.Words(given=twice, asked=[]), model(*IRCOT), k=6).invoke(QUESTION)
    assert len(result["documents"]) == 2


def test_a_filter_is_theirs_alone(words):
    with pytest.raises(ConfigurationError, match="Words cannot be filtered from here"):
        create_ircot_chain(words, model(*IRCOT)).invoke(QUESTION, filter={"page": 1})


@pytest.mark.parametrize(("make", "script"), [(create_ircot_graph, IRCOT), (create_self_ask_graph, SELF_ASK)])
def test_a_graph_searches_for_everything_once(words, make, script):
    memory = pytest.importorskip("langgraph.checkpoint.memory", reason="the langgraph extra is missing")
    saver, thread = memory.InMemorySaver(), {"configurable": {"thread_id": "1"}}
    given, stops, chat = {"question": QUESTION}, 0, model(*script)
    while True:
        graph = make(words, chat, checkpointer=saver, interrupt_after=["retrieve", "think"], k=4)
        state = graph.invoke(given, thread)
        if not graph.get_state(thread).next:
            break
        given, stops = None, stops + 1
    assert stops >= 3
    assert (words.asked, len(chat.log)) == ([QUESTION, FOLLOW_UP], len(script))
    assert state["answer"] == "In 1931 [1]"
    assert json.loads(json.dumps(state)) == state
    assert len(state["documents"]) == 4
