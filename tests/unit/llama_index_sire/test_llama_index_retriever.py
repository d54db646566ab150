"""The retriever keeps every promise of LlamaIndex's interface, with any recipe."""

import json

import pytest
from llama_index.core import Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.schema import Document, IndexNode, QueryBundle
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index_fakes import WordEmbedding
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

from llama_index_sire import SireRetriever
from sire_core import Index
from sire_core.errors import ConfigurationError, CorpusError, IndexMissingError, StorageError
from sire_core.recipes import REGISTRY, recipe_by_name

RECIPES = sorted(REGISTRY)


@pytest.mark.parametrize("recipe", RECIPES)
async def test_contract_of_retrievers(recipe, index_of, question):
    retriever = SireRetriever(index_of(recipe), similarity_top_k=7)
    found = retriever.retrieve(question)
    assert len(found) == 7
    assert len({node.node_id for node in found}) == 7
    scores = [node.score for node in found]
    assert all(type(score) is float and score > 0 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert all(json.loads(node.metadata["sire_doc_ids"]) for node in found)
    again = await retriever.aretrieve(QueryBundle(question))
    assert [node.model_dump() for node in again] == [node.model_dump() for node in found]
    assert len(SireRetriever(index_of(recipe), similarity_top_k=1).retrieve(question)) == 1


def test_trap_public_methods_are_not_overridden():
    """RaptorPack overrides them and loses events, recursion and deduplication."""
    assert "retrieve" not in vars(SireRetriever)
    assert "aretrieve" not in vars(SireRetriever)
    assert issubclass(SireRetriever, BaseRetriever)


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
            from llama_index.core.schema import NodeWithScore

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


def test_metadata_filters(index_of, question):
    filters = MetadataFilters(filters=[MetadataFilter(key="year", value=1900, operator=FilterOperator.GT)])
    found = SireRetriever(index_of("flat"), filters=filters, similarity_top_k=50).retrieve(question)
    assert found
    assert all(node.metadata["year"] > 1900 for node in found)
    nothing = MetadataFilters(filters=[MetadataFilter(key="year", value=1)])
    assert SireRetriever(index_of("flat"), filters=nothing).retrieve(question) == []
    wrong = MetadataFilters(filters=[MetadataFilter(key="year", value=1, operator=FilterOperator.TEXT_MATCH)])
    with pytest.raises(ConfigurationError, match="takes a text"):
        SireRetriever(index_of("flat"), filters=wrong)


@pytest.mark.parametrize("recipe", RECIPES)
def test_canary_no_word_of_another_tenant_comes_through(recipe):
    documents = [
        Document(
            id_=f"{tenant}{i}",
            text=f"{word} Harbour number {i} was built by {word} Smith in 19{i}0.",
            metadata={"tenant": tenant},
        )
        for tenant, word in (("a", "Amber"), ("b", "Zorbleflux"))
        for i in range(6)
    ]
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])
    found = SireRetriever.from_documents(documents, recipe=recipe, filters=filters, similarity_top_k=50).retrieve(
        "harbour"
    )
    assert len(found) >= 6
    assert "Zorbleflux" not in json.dumps([node.to_dict() for node in found])


def test_bad_arguments_are_told():
    for k in (0, "3", None):
        with pytest.raises(ConfigurationError, match="at least 1"):
            SireRetriever(Index(), similarity_top_k=k)
    for index in (None, "/some/folder"):
        with pytest.raises(ConfigurationError, match="from_persist_dir opens one"):
            SireRetriever(index)
    with pytest.raises(IndexMissingError):
        SireRetriever.from_persist_dir("/nowhere/at/all")


def test_the_query_engine_answers_with_the_llm_of_the_index(documents):
    retriever = SireRetriever.from_documents(documents[:3], recipe="flat", llm=MockLLM())
    assert "Context information" in str(retriever.as_query_engine().query("Where?"))
    assert str(retriever.as_query_engine(llm=MockLLM(max_tokens=1)).query("Where?")) == "text"


def test_the_query_engine_takes_a_number_of_nodes_and_a_filter(index_of, question):
    """`RetrieverQueryEngine.from_args` swallows what it does not know."""
    retriever = SireRetriever(index_of(), filters={"kind": {"in": ["person", "film"]}})
    engine = retriever.as_query_engine(llm=MockLLM(), similarity_top_k=2, filters="kind=person")
    found = engine.query(question).source_nodes
    assert [node.node_id for node in found] == [
        node.node_id for node in SireRetriever(index_of(), similarity_top_k=2, filters="kind=person").retrieve(question)
    ]
    assert retriever.as_query_engine(llm=MockLLM()).retriever is retriever
    nobody = retriever.as_query_engine(llm=MockLLM(), filters="kind=place")
    assert nobody.query(question).source_nodes == []


def test_trap_no_prompts_of_our_own(index_of):
    retriever = SireRetriever(index_of())
    assert retriever.get_prompts() == {}
    engine = retriever.as_query_engine(llm=MockLLM())
    assert "response_synthesizer:text_qa_template" in engine.get_prompts()


def test_constructing_reads_nothing(tmp_path):
    from sire_core.index import Index

    SireRetriever(Index(tmp_path / "not there"))
    assert not (tmp_path / "not there").exists()


async def test_insert_refresh_delete(documents):
    retriever = await SireRetriever.afrom_documents(documents[:10], recipe="raptor", similarity_top_k=3)
    new = Document(id_="new", text="The Zorbleflux is a boat.")
    assert (await retriever.ainsert(new)).added == 1
    assert (await retriever.aretrieve("Zorbleflux"))[0].metadata["sire_doc_ids"] == '["new"]'
    with pytest.raises(CorpusError, match="already with another text"):
        retriever.insert([Document(id_="new", text="Another text.")])
    report = retriever.refresh([Document(id_="new", text="The Wibblewock is a boat."), documents[0], documents[11]])
    assert (report.added, report.updated, report.unchanged) == (1, 1, 1)
    assert "Zorbleflux" not in " ".join(
        n.text for n in SireRetriever(retriever.index, similarity_top_k=99).retrieve("boat")
    )
    assert retriever.delete("new").removed == 1
    assert (await retriever.adelete([documents[0].id_])).removed == 1
    with pytest.raises(CorpusError, match="Not in the index"):
        retriever.delete("new")


def test_persist_and_load(tmp_path, documents, question):
    recipe = recipe_by_name("sirerag", depth=1)
    made = SireRetriever.from_documents(documents, recipe=recipe, similarity_top_k=6)
    made.persist(tmp_path / "i")
    found = SireRetriever.from_persist_dir(tmp_path / "i")
    assert found.similarity_top_k == 6
    assert [n.model_dump() for n in found.retrieve(question)] == [n.model_dump() for n in made.retrieve(question)]
    found.similarity_top_k = 2
    found.persist(tmp_path / "i")
    assert len(SireRetriever.from_persist_dir(tmp_path / "i").retrieve(question)) == 2
    with pytest.raises(StorageError, match="holds something already"):
        SireRetriever.from_documents(documents[:3], recipe="flat").persist(tmp_path / "i")


def test_settings_after_loading_belong_to_other_indexes(tmp_path, documents, question):
    """An index of the core's default embedder stays readable when the user sets a global model afterwards."""
    SireRetriever.from_documents(documents[:5], recipe="flat", persist_dir=tmp_path / "ours")
    Settings.embed_model = WordEmbedding(model_name="global")
    assert SireRetriever.from_persist_dir(tmp_path / "ours").retrieve(question)
    SireRetriever.from_documents(documents[:5], recipe="flat", persist_dir=tmp_path / "theirs")
    assert SireRetriever.from_persist_dir(tmp_path / "theirs").retrieve(question)
