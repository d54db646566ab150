"""Tools for agents, and reasoning over retrievers that are not ours."""

import json

import pytest
from langchain_core.documents import Document
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_reasoning import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK, Runs
from langchain_scripted_chat import model
from pydantic import BaseModel, Field

from langchain_sire import (
    SireRetriever,
    create_ircot_chain,
    create_ircot_graph,
    create_self_ask_chain,
    create_self_ask_graph,
    create_sire_answer_tool,
    create_sire_tool,
)
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


READ = IRCOT[-1]
MAKERS = [
    lambda retriever: create_sire_answer_tool(retriever, model(*IRCOT)),
    lambda retriever: create_sire_answer_tool(retriever, model(READ), via="single"),
    lambda retriever: create_sire_answer_tool(retriever, model(*SELF_ASK), via="self-ask", max_steps=3),
    lambda retriever: create_sire_answer_tool(create_self_ask_chain(retriever, model(*SELF_ASK))),
    lambda retriever: create_ircot_chain(retriever, model(*IRCOT)).as_tool(),
    lambda retriever: create_ircot_chain(retriever, model(*IRCOT)).as_tool(arg_types={"question": str}),
]


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of("sire"), k=4)


def _ask(**arguments):
    return ToolCall(name="answer_from_documents", args=arguments, id="1", type="tool_call")


@pytest.mark.parametrize("make", MAKERS)
async def test_a_short_answer_with_its_sources(retriever, make):
    message = make(retriever).invoke(_ask(question=QUESTION))
    first = message.artifact["documents"][0]
    (source,) = first.metadata["sire"]["doc_ids"]
    assert message.content.split("\n\n") == [
        f"In 1931 [{source}]",
        f"Sources:\n[{source}] {first.metadata['title']}",
        "The evidence is sufficient: yes.",
    ]
    assert len(message.content) < 400
    native = await make(retriever).ainvoke(_ask(question=QUESTION))
    assert (native.content, native.artifact) == (message.content, message.artifact)


def test_steps_on_request(retriever):
    tool = create_sire_answer_tool(retriever, model(*IRCOT))
    steps = tool.invoke({"question": QUESTION, "show_steps": True}).split("Steps:\n")[1].splitlines()
    assert steps[1] == "2. The Weather Clerk is a novel by Ilse Marrable."
    assert steps[2] == f"3. Searching: {FOLLOW_UP}"


def test_evidence_that_does_not_suffice_is_said(retriever):
    said = '{"answer": "insufficient evidence", "citations": [], "sufficient": false}'
    text = create_sire_answer_tool(retriever, model(said), via="single").invoke({"question": QUESTION})
    assert text.startswith("insufficient evidence\n\nRead, but not cited:\n[")
    assert text.endswith("The evidence is sufficient: no (stopped by done).")


def test_what_the_model_is_shown(retriever):
    tool = create_ircot_chain(retriever, model(*IRCOT)).as_tool(name="atlas", description="Knows the islands.")
    function = convert_to_openai_tool(tool)["function"]
    assert (function["name"], function["description"]) == ("atlas", "Knows the islands.")
    assert set(function["parameters"]["properties"]) == {"question", "k", "filter", "as_of", "show_steps"}
    assert function["parameters"]["required"] == ["question"]


def test_arguments_of_ones_own(retriever):
    class Wanted(BaseModel):
        query: str = Field(description="Ask about the islands.")

    tool = create_ircot_chain(retriever, model(*IRCOT)).as_tool(Wanted)
    assert set(convert_to_openai_tool(tool)["function"]["parameters"]["properties"]) == {"query"}
    assert tool.invoke({"query": QUESTION}).startswith("In 1931 [")
    with pytest.raises(ConfigurationError, match="not depth"):
        create_ircot_chain(retriever, model(*IRCOT)).as_tool(arg_types={"question": str, "depth": int})


def test_a_model_narrows_and_never_widens(index_of):
    mine = SireRetriever(index=index_of("flat"), k=4, filter={"kind": "person"})
    message = create_sire_answer_tool(mine, model(READ), via="single").invoke(
        _ask(question=QUESTION, k=2, filter="kind=person")
    )
    assert [d.metadata["kind"] for d in message.artifact["documents"]] == ["person"] * 2
    message = create_sire_answer_tool(mine, model(READ), via="single").invoke(
        _ask(question=QUESTION, filter="kind=ship")
    )
    assert message.artifact["documents"] == []
    assert message.content == "No answer.\n\nThe evidence is sufficient: no (stopped by empty_index)."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"question": "who", "k": 0}, "k: Input should be greater than or equal to 1"),
        ({"question": "who", "via": "ircot"}, "via: Extra inputs"),
        ({}, "question: Field required"),
        ({"question": "   "}, "is empty"),
        ({"question": "who", "filter": "year"}, "year"),
    ],
)
async def test_mistakes_are_told_to_the_model_and_ask_nobody(retriever, arguments, words):
    chat = model(*IRCOT)
    tool = create_sire_answer_tool(retriever, chat)
    for message in (tool.invoke(_ask(**arguments)), await tool.ainvoke(_ask(**arguments))):
        assert message.status == "error"
        assert words in message.content
        assert "pydantic.dev" not in message.content
    assert chat.log == []


def test_what_cannot_be_made(retriever):
    chain = create_ircot_chain(retriever, model(*IRCOT))
    with pytest.raises(ConfigurationError, match="The chain has its own llm, max_steps"):
        create_sire_answer_tool(chain, model(*IRCOT), max_steps=3)
    with pytest.raises(ConfigurationError, match="via is 'ircot', 'self-ask' or 'single'"):
        create_sire_answer_tool(retriever, model(*IRCOT), via="magic")
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


class Words(BaseRetriever):
    """Ranks by shared words; notes what it was asked."""

    documents: list[Document]
    asked: list[str]
    k: int = 3

    def _get_relevant_documents(self, query, *, run_manager):
        self.asked.append(query)
        words = set(query.lower().rstrip("?").split())
        shared = [
            (-len(words & set(d.page_content.lower().rstrip(".").split())), n) for n, d in enumerate(self.documents)
        ]
        return [self.documents[n] for _, n in sorted(shared)[: self.k]]


@pytest.fixture
def words(documents):
    kept = [
        Document(id=f"chunk-{d.id}", page_content=d.page_content, metadata={"source": f"{d.id}.md", "page": number})
        for number, d in enumerate(documents)
    ]
    return Words(documents=kept, asked=[])


@pytest.mark.parametrize(("make", "script"), [(create_ircot_chain, IRCOT), (create_self_ask_chain, SELF_ASK)])
async def test_their_documents_come_back_as_they_are(words, make, script):
    result = make(words, model(*script), k=4).invoke(QUESTION)
    assert words.asked == [QUESTION, FOLLOW_UP]
    assert len(result["documents"]) == 4
    known = {document.id: document for document in words.documents}
    assert all(document == known[document.id] for document in result["documents"])
    assert result["answer"] == "In 1931 [1]"
    assert await make(words, model(*script), k=4).ainvoke(QUESTION) == result
    # Nobody can change the retriever's own documents through ours.
    result["documents"][0].metadata["page"] = "changed"
    assert known[result["documents"][0].id].metadata["page"] != "changed"


class Scored(Words):
    """Gives documents without ids, and says in their metadata how well they fit this question, as rerankers do."""

    def _get_relevant_documents(self, query, *, run_manager):
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        return [
            Document(page_content=d.page_content, metadata={**d.metadata, "relevance_score": len(self.asked) + n / 10})
            for n, d in enumerate(found)
        ]


def test_a_passage_is_one_whatever_a_search_says_of_it(words):
    result = create_ircot_chain(Scored(documents=words.documents[:4], asked=[]), model(*IRCOT), k=6).invoke(QUESTION)
    texts = [document.page_content for document in result["documents"]]
    assert len(texts) == len(set(texts)) > 1
    assert all("relevance_score" in document.metadata for document in result["documents"])


def test_texts_that_are_alike_in_two_files_are_two(words):
    twice = [Document(page_content="The same words.", metadata={"source": name}) for name in ("a.md", "b.md")]
    result = create_ircot_chain(Words(documents=twice, asked=[]), model(*IRCOT), k=6).invoke(QUESTION)
    assert len(result["documents"]) == 2


def test_a_filter_is_theirs_alone(words):
    with pytest.raises(ConfigurationError, match="Words cannot be filtered from here"):
        create_ircot_chain(words, model(*IRCOT)).invoke(QUESTION, filter={"page": 1})
    with pytest.raises(ConfigurationError, match="str is neither a retriever nor an Index"):
        create_ircot_chain("words", model(*IRCOT))


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
