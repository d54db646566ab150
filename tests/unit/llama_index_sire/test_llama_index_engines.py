"""Engines over a retriever take every spelling of its settings, and refuse what nothing would read."""

import pytest
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_sire import ConversationRetriever, SireRetriever
from sire_core.errors import ConfigurationError

MODES = ("query", "condense_plus_context", "context", "condense_question")


def node(name, document, text, **metadata):
    source = RelatedNodeInfo(node_id=document)
    return TextNode(id_=name, text=text, metadata=metadata, relationships={NodeRelationship.SOURCE: source})


@pytest.fixture(scope="module")
def tenants():
    return SireRetriever.from_documents(
        [node(f"{t}{i}", f"{t}{i}", f"The king of island {t}{i} rules.", tenant=t) for t in "ab" for i in range(3)],
        recipe="flat",
    )


async def found(retriever, mode, **options):
    """Tenants of the nodes that an engine answers from."""
    llm = MockLLM(max_tokens=1)
    if mode == "query":
        answer = await retriever.as_query_engine(llm=llm, **options).aquery("king")
    else:
        # A memory in the process: LlamaIndex's default one leaves its SQLite connection open.
        memory = ChatMemoryBuffer.from_defaults(token_limit=500)
        answer = await retriever.as_chat_engine(mode, llm=llm, memory=memory, **options).achat("king")
    return [each.node.metadata["tenant"] for each in answer.source_nodes]


@pytest.mark.parametrize("mode", MODES)
async def test_an_engine_never_drops_a_setting(tenants, mode):
    assert await found(tenants, mode, filter={"tenant": "a"}) == ["a"] * 3
    assert await found(tenants, mode, filters="tenant=a", verbose=False) == ["a"] * 3
    for word in ("top_k", "k", "similarity_top_k"):
        assert len(await found(tenants, mode, **{word: 1})) == 1
    with pytest.raises(TypeError, match="no argument 'filtres'; did you mean 'filters'"):
        await found(tenants, mode, filtres={"tenant": "a"})
    with pytest.raises(TypeError, match="'similarity_top_k' twice"):
        await found(tenants, mode, similarity_top_k=2, k=1)
    with pytest.raises(TypeError, match="no argument 'embedder'"):
        await found(tenants, mode, embedder="default")


async def test_a_chat_engine_over_a_query_engine_takes_what_that_takes(tenants):
    nothing = SimilarityPostprocessor(similarity_cutoff=9.0)
    assert await found(tenants, "condense_question", node_postprocessors=[nothing], response_mode="compact") == []
    with pytest.raises(TypeError, match="no argument 'response_mode'"):
        await found(tenants, "context", response_mode="compact")


FOLLOW_UP = "Where did her boiler come from?"
SHIPS = [
    node("wren", "wren", "The Northern Wren sank in the gale of 1893. Her boiler came from Lindle."),
    node("tern", "tern", "The Southern Tern sank in the fog of 1902. Her boiler came from Port Ansel."),
]
TURNS = [ChatMessage("When did the Northern Wren sink?"), ChatMessage("In 1893.", role="assistant")]


@pytest.mark.parametrize("options", [{"chat_mode": "context"}, {"skip_condense": True}], ids=["context", "condense"])
async def test_a_follow_up_is_searched_for_with_what_it_refers_to(options):
    retriever = SireRetriever.from_documents(SHIPS, recipe="flat", similarity_top_k=1)
    llm = MockLLM(max_tokens=1)

    def names(answer):
        return [each.node.node_id for each in answer.source_nodes]

    assert names(retriever.as_chat_engine(**options, llm=llm).chat(FOLLOW_UP)) == ["tern"]
    chat = retriever.as_chat_engine(**options, llm=llm, chat_history=TURNS)
    assert names(await chat.achat(FOLLOW_UP)) == ["wren"]
    assert names(chat.chat("When did the Southern Tern sink?")) == ["tern"]
    assert names(chat.chat(FOLLOW_UP)) == ["tern"]
    assert names(chat.chat(FOLLOW_UP, chat_history=TURNS)) == ["wren"]


def test_any_retriever_of_the_framework_takes_part_in_a_conversation():
    memory = ChatMemoryBuffer.from_defaults(TURNS, token_limit=500)
    ours = SireRetriever.from_documents(SHIPS, recipe="flat")
    theirs = QueryFusionRetriever([ours], llm=MockLLM(), num_queries=1, similarity_top_k=1)
    chat = ContextChatEngine.from_defaults(ConversationRetriever(theirs, memory), memory=memory, llm=MockLLM())
    assert [each.node.node_id for each in chat.chat(FOLLOW_UP).source_nodes] == ["wren"]


def test_node_ids_let_no_other_node_through():
    retriever = SireRetriever.from_documents(
        [node("1-1", "d1", "The king."), node("11", "d11", "A king."), node("1" * 24 + "2", "d2", "Some king.")],
        recipe="flat",
    )
    for name in ("1-1", "11", "1" * 24 + "2"):
        assert [hit.node.node_id for hit in retriever.as_retriever(node_ids=[name]).retrieve("king")] == [name]
    assert retriever.as_retriever(node_ids=["1" * 24 + "3"]).retrieve("king") == []
    for word in ("node_ids", "doc_ids"):
        with pytest.raises(ConfigurationError, match=rf"{word}=\['11'\]"):
            retriever.as_retriever(**{word: "11"})
