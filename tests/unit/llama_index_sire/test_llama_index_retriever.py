"""The retriever alone, in engines and beside others."""

import pytest
from llama_index.core import Document, Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import IndexNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.storage import StorageContext
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

from llama_index_sire import (
    IRCoTQueryEngine,
    ReasoningWorkflow,
    SelfAskQueryEngine,
    SireMemoryBlock,
    SireNodeParser,
    SireRetriever,
    create_sire_answer_tool,
)
from sire_core import Index
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.testing.doubles import HashEmbedder
from support.llama_index_models import WordEmbedding


async def test_trap_aretrieve_has_a_span_of_its_own(index_of, question):
    """`_aretrieve` is neither abstract nor decorated, so nobody wraps it."""
    spans, events = SimpleSpanHandler(), []

    class Collector(BaseEventHandler):
        def handle(self, event, **kwargs):
            events.append(event.class_name())

    root = get_dispatcher()
    root.add_span_handler(spans)
    root.add_event_handler(Collector())
    try:
        await SireRetriever(index_of()).aretrieve(question)
        SireRetriever(index_of()).retrieve(question)
    finally:
        root.span_handlers.pop()
        root.event_handlers.pop()
    names = [span.id_.split("-")[0] for span in spans.completed_spans]
    assert names == [
        "SireRetriever._aretrieve",
        "SireRetriever.aretrieve",
        "SireRetriever._retrieve",
        "SireRetriever.retrieve",
    ]
    assert events.count("RetrievalStartEvent") == events.count("RetrievalEndEvent") == 2


def test_traces_show_the_users_embedding_model(documents):
    handler = LlamaDebugHandler(print_trace_on_end=False)
    model = WordEmbedding(callback_manager=CallbackManager([handler]))
    retriever = SireRetriever.from_documents(documents[:5], recipe="flat", embed_model=model)
    handler.flush_event_logs()
    retriever.retrieve("Who?")
    assert len(handler.get_event_pairs("embedding")) == 1


def test_trap_nodes_are_deduplicated_by_recursion_too(index_of, question):
    """A retriever as the object of an index node: our nodes come through `object_map` once."""
    inner = SireRetriever(index_of("flat"), similarity_top_k=3)

    class Outer(BaseRetriever):
        def _retrieve(self, query_bundle):

            return [NodeWithScore(node=IndexNode(text="x", index_id=name, obj=inner), score=0.5) for name in "ab"]

    assert [n.node_id for n in Outer().retrieve(question)] == [n.node_id for n in inner.retrieve(question)]


def test_a_vector_in_the_query_bundle_is_honoured(documents):
    model = WordEmbedding()
    retriever = SireRetriever.from_documents(documents, recipe="flat", embed_model=model, similarity_top_k=3)
    wanted = model.get_query_embedding("lighthouse keeper")
    model._calls.clear()
    found = retriever.retrieve(QueryBundle("something else", embedding=wanted))
    assert model._calls == []
    assert [n.node_id for n in found] == [n.node_id for n in retriever.retrieve("lighthouse keeper")]


def test_bad_arguments_are_told():
    for k in (0, "3", None):
        with pytest.raises(ConfigurationError, match="at least 1"):
            SireRetriever(Index(), similarity_top_k=k)
    for index in (None, "/some/folder"):
        with pytest.raises(ConfigurationError, match="from_persist_dir opens one"):
            SireRetriever(index)
    with pytest.raises(IndexMissingError):
        SireRetriever.from_persist_dir("/nowhere/at/all")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda index: IRCoTQueryEngine(index, sources=3), r"^IRCoTQueryEngine\(\) has no .*did you mean 'source'"),
        (lambda _: SelfAskQueryEngine(llm=MockLLM()), r"^SelfAskQueryEngine\(\): missing .*'source'"),
        (
            lambda index: create_sire_answer_tool(index, limit=3),
            r"^create_sire_answer_tool\(\) .*did you mean 'limits'",
        ),
        (lambda index: ReasoningWorkflow(IRCoTQueryEngine(index), timeouts=3), r"^ReasoningWorkflow\(\) .*'timeout'"),
        (lambda index: ReasoningWorkflow(SireRetriever(index)), r"engine is an IRCoTQueryEngine"),
        (lambda index: SireRetriever(index, similarity_top=3), r"^SireRetriever\(\) .*did you mean 'similarity_top_k'"),
        (lambda _: SireNodeParser(recipes="flat"), r"^SireNodeParser\(\) .*did you mean 'recipe'"),
        (lambda _: SireNodeParser(complete=True, embed_model="lexicl"), "did you mean 'lexical'"),
        (lambda index: SireMemoryBlock(retriever=SireRetriever(index), key="x"), "key\n"),
        (lambda index: SireRetriever(index, transformations="sentences"), "transformations is a list"),
    ],
)
def test_wrong_arguments_are_told_by_the_class_that_was_called(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make(Index())


def test_constructors_know_other_words():
    assert SireRetriever(Index(), k=3).similarity_top_k == 3
    retriever = SireRetriever(Index())
    assert IRCoTQueryEngine(retriever=retriever, top_k=4).retriever is retriever


def test_the_query_engine_answers_with_the_llm_of_the_index(documents):
    retriever = SireRetriever.from_documents(documents[:3], recipe="flat", llm=MockLLM())
    assert "Context information" in str(retriever.as_query_engine().query("Where?"))
    assert str(retriever.as_query_engine(llm=MockLLM(max_tokens=1)).query("Where?")) == "text"


def test_settings_after_loading_belong_to_other_indexes(tmp_path, documents, question):
    """An index of the core's default embedder stays readable when the user sets a global model afterwards."""
    SireRetriever.from_documents(documents[:5], recipe="flat", persist_dir=tmp_path / "ours")
    Settings.embed_model = WordEmbedding(model_name="global")
    assert SireRetriever.from_persist_dir(tmp_path / "ours").retrieve(question)
    SireRetriever.from_documents(documents[:5], recipe="flat", persist_dir=tmp_path / "theirs")
    assert SireRetriever.from_persist_dir(tmp_path / "theirs").retrieve(question)


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
    with pytest.raises(ConfigurationError, match="chat_mode is"):
        tenants.as_chat_engine("react", llm=MockLLM())


FOLLOW_UP = "Where did her boiler come from?"
SHIPS = [
    node("wren", "wren", "The Northern Wren sank in the gale of 1893. Her boiler came from Lindle."),
    node("tern", "tern", "The Southern Tern sank in the fog of 1902. Her boiler came from Port Ansel."),
]
TURNS = [ChatMessage("When did the Southern Tern sink?"), ChatMessage("In 1902.", role="assistant")]


@pytest.mark.parametrize("options", [{"chat_mode": "context"}, {"skip_condense": True}], ids=["context", "condense"])
async def test_a_follow_up_is_searched_for_with_what_it_refers_to(options):
    retriever = SireRetriever.from_documents(SHIPS, recipe="flat", similarity_top_k=1)
    llm = MockLLM(max_tokens=1)

    def names(answer):
        return [each.node.node_id for each in answer.source_nodes]

    assert names(retriever.as_chat_engine(**options, llm=llm).chat(FOLLOW_UP)) == ["wren"]
    chat = retriever.as_chat_engine(**options, llm=llm, chat_history=TURNS)
    assert names(await chat.achat(FOLLOW_UP)) == ["tern"]
    assert names(chat.chat("When did the Northern Wren sink?")) == ["wren"]
    assert names(chat.chat(FOLLOW_UP)) == ["wren"]
    assert names(chat.chat(FOLLOW_UP, chat_history=TURNS)) == ["tern"]


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


TEXTS = {
    "petra": "Petra Quillon was born in Varn Harbour.",
    "lantern": "The Salt Lantern is a film by Petra Quillon.",
    "otto": "Otto Brack commanded a steamship on Lake Lindle.",
    "lake": "Lake Lindle freezes in winter.",
}


def nodes():
    return [
        TextNode(
            id_=name,
            text=text,
            metadata={"zeta": 1, "file_name": f"{name}.md", "alpha": [1, 2], "title": "Same"},
            excluded_embed_metadata_keys=["zeta"],
        )
        for name, text in TEXTS.items()
    ]


def retriever(given, **options):
    return SireRetriever.from_documents(given, embed_model=HashEmbedder(), recipe="flat", **options)


@pytest.mark.parametrize("returns", ["passages", "units"])
def test_a_node_comes_back_with_its_hash_its_keys_and_equal(returns):
    for found in retriever(nodes(), returns=returns).retrieve("Petra Quillon"):
        (given,) = [node for node in nodes() if node.node_id == found.node_id]
        assert found.node.hash == given.hash
        assert found.node.metadata == given.metadata
        assert list(found.node.metadata) == list(given.metadata)
        assert found.node.excluded_embed_metadata_keys == given.excluded_embed_metadata_keys
        assert found.node.excluded_llm_metadata_keys == given.excluded_llm_metadata_keys
        assert found.node.metadata["sire_doc_ids"] == [given.node_id]
        (kept,) = SimilarityPostprocessor(similarity_cutoff=0.0).postprocess_nodes([found])
        assert kept.node.hash == given.hash


def test_merging_retriever_finds_the_parents():
    document = Document(id_="d", text=" ".join(f"{text} " * 4 for text in TEXTS.values()))
    tree = HierarchicalNodeParser.from_defaults(chunk_sizes=[256, 40]).get_nodes_from_documents([document])
    store = SimpleDocumentStore()
    store.add_documents(tree)
    leaves = get_leaf_nodes(tree)
    merging = AutoMergingRetriever(
        retriever(leaves, similarity_top_k=len(leaves)), StorageContext.from_defaults(docstore=store)
    )
    (found,) = merging.retrieve("Petra Quillon")
    assert found.node_id not in {leaf.node_id for leaf in leaves}


def test_what_a_search_adds_can_be_read_but_is_no_item():
    (found,) = retriever(nodes(), similarity_top_k=1).retrieve("Salt Lantern film")
    metadata = found.node.model_copy(deep=True).metadata
    assert metadata["sire_kind"] == metadata.get("sire_kind") == "chunk"
    assert "sire_path" in metadata
    assert not [key for key in metadata if key.startswith("sire_")]
    assert metadata.get("sire_nothing", 7) == 7
    with pytest.raises(KeyError):
        metadata["sire_nothing"]
    assert "sire_" not in found.node.get_content("all")
    assert TextNode.from_dict(found.node.to_dict()).hash == found.node.hash
