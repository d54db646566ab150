"""`SireRetriever`: making, arguments, documents, tracing, mistakes, traps."""

import ast
import asyncio
import copy
import sys
from pathlib import Path

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

import langchain_sire
from langchain_sire import (
    LangChainChat,
    SireDocumentTransformer,
    SireRetriever,
    SireVectorStore,
    create_sire_tool,
    question_of,
)
from sire_core import Index
from sire_core.errors import ConfigurationError, CorpusError, IndexMissingError, QueryError, StorageError
from sire_core.testing.doubles import HashEmbedder
from support.langchain_chat import model
from support.langchain_runs import Runs, asking


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of(), k=3)


def test_trap_a_folder_is_opened_by_load():
    with pytest.raises(TypeError, match=r"no argument 'path'; use SireRetriever.load\('my-index'\)"):
        SireRetriever(path="my-index")


@pytest.mark.parametrize(
    ("argument", "advice"),
    [({"K": 3}, "did you mean 'k'"), ({"serch_kwargs": {}}, "'search_kwargs'"), ({"threshold": 0.5}, "known are")],
)
def test_trap_unknown_constructor_arguments_are_refused_with_the_nearest_known_one(index_of, argument, advice):
    with pytest.raises(TypeError, match=rf"SireRetriever\(\) has no argument.*{advice}"):
        SireRetriever(index=index_of(), **argument)


async def test_unknown_arguments_of_a_call_are_refused(retriever, question):
    with pytest.raises(TypeError, match=r"SireRetriever.invoke\(\) has no argument 'filtr'; did you mean 'filter'"):
        retriever.invoke(question, filtr={"a": 1})
    with pytest.raises(
        TypeError, match=r"no argument 'n'; known are .*, k \(or top_k or similarity_top_k\), max_tokens, recipe"
    ):
        retriever.invoke(question, n=3)
    with pytest.raises(TypeError, match="no argument 'score_threshold'"):
        await retriever.ainvoke(question, score_threshold=3)
    with pytest.raises(TypeError, match="search_kwargs"):
        SireRetriever(index=retriever.index, search_kwargs={"n": 3})
    with pytest.raises(TypeError, match="got 'k' twice"):
        SireRetriever(index=retriever.index, k=3, top_k=4)


def test_search_kwargs_hold_for_every_call_and_may_be_changed(index_of, question):
    retriever = SireRetriever(index=index_of(), search_kwargs={"k": 2, "filter": {"kind": "person"}})
    assert [d.metadata["kind"] for d in retriever.invoke(question)] == ["person"] * 2
    assert retriever.invoke(question, filter={"kind": "ship"}) == []
    retriever.search_kwargs["k"] = 3
    assert len(retriever.invoke(question)) == 3
    assert len(retriever.invoke(question, k=1)) == 1


def test_trap_the_callers_documents_are_untouched(documents):
    before = copy.deepcopy(documents)
    retriever = SireRetriever.from_documents(documents, recipe="flat")
    found = retriever.invoke("Who commanded the Northern Wren?")
    for document in found:
        document.metadata["title"] = "changed"
        document.metadata.setdefault("tags", []).append("x")
    assert documents == before
    assert retriever.invoke("Who commanded the Northern Wren?")[0].metadata["title"] != "changed"


def test_trap_configurable_fields(retriever, question):
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"), filter=ConfigurableField(id="filter"))
    assert len(configurable.invoke(question)) == 3
    assert len(configurable.invoke(question, {"configurable": {"k": 7}})) == 7
    chosen = configurable.with_config(configurable={"k": 50, "filter": {"kind": "ship"}}).invoke(question)
    assert {d.metadata["kind"] for d in chosen} == {"ship"}
    assert len(configurable.invoke(question)) == 3


async def test_trap_inner_model_calls_are_children_of_the_retriever_run():
    model = FakeListChatModel(responses=["Who sang it?"])
    retriever = asking(model, ["Petra wrote it.", "Otto sang it."], 1)
    runs = Runs()
    found = retriever.invoke("Who was it?", {"callbacks": [runs]})
    assert runs.above_models == runs.searches != []
    runs = Runs()
    assert await retriever.ainvoke("Who was it?", {"callbacks": [runs]}) == found
    assert runs.above_models == runs.searches != []
    assert found[0].page_content == "Otto sang it."


async def test_concurrent_calls_keep_their_traces_apart():
    model = FakeListChatModel(responses=["Who sang it?"], sleep=0.01)
    retriever = asking(model, ["Petra wrote it.", "Otto sang it."], 1)
    runs = [Runs() for _ in range(8)]
    await asyncio.gather(*(retriever.ainvoke("Who was it?", {"callbacks": [run]}) for run in runs))
    retriever.batch(["Who was it?"] * 8, [{"callbacks": [run]} for run in runs])
    assert all(run.above_models == run.searches and len(run.searches) == 2 for run in runs)


def test_trap_trace_parameters_name_index_and_embedder(retriever, question):
    runs = Runs()
    retriever.invoke(question, {"callbacks": [runs]})
    told = runs.metadata[0]
    assert told["ls_retriever_name"] == "sire"
    assert told["ls_vector_store_provider"] == "sire"
    assert told["ls_embedding_provider"] == "sire"
    assert told["ls_embedding_model"] == "lexical"
    assert BaseRetriever._get_ls_params(retriever)["ls_retriever_name"] == "sire"


async def test_async_makers_make_the_same(documents, question):
    sync = SireRetriever.from_documents(documents, recipe="flat")
    assert (await SireRetriever.afrom_documents(documents, recipe="flat")).invoke(question) == sync.invoke(question)
    texts, ids = [d.page_content for d in documents], [d.id for d in documents]
    metadatas = [d.metadata for d in documents]
    made = await SireRetriever.afrom_texts(texts, metadatas=metadatas, ids=ids, recipe="flat")
    assert made.invoke(question) == sync.invoke(question)
    assert SireRetriever.from_texts(texts, None, metadatas, ids=ids, recipe="flat").invoke(question) == made.invoke(
        question
    )


@pytest.mark.parametrize("question", [{"question": "Who?"}, None, 5])
def test_a_question_that_is_no_text_is_called_so(documents, question):
    """A chain that hands its whole input to the retriever."""
    with pytest.raises(QueryError, match=f"is a {type(question).__name__}, not a text"):
        SireRetriever.from_documents(documents[:2], recipe="flat").invoke(question)


HISTORY = [HumanMessage("When did the Southern Tern sink?"), AIMessage("In 1902, unlike the Grey Gull.")]


def test_a_chain_reads_the_history_of_a_chat():
    asked = question_of({"input": "Where did her boiler come from?", "chat_history": HISTORY})
    assert asked == "Where did her boiler come from? (Southern Tern sink)"
    assert question_of({"input": "Where did her boiler come from?", "chat_history": []}).endswith("from?")
    assert question_of("Where did her boiler come from?").endswith("from?")
    with pytest.raises(ConfigurationError, match="filter of the input would have no effect"):
        question_of({"input": "Where did her boiler come from?", "filter": "tenant=a", "language": "en"})


def test_a_retrieval_chain_of_the_framework_searches_with_the_history():
    texts = [f"The {ship} sank. Her boiler came from {port}." for ship, port in (("Wren", "Lindle"), ("Tern", "Ansel"))]
    documents = [Document(text, id=text.split()[1]) for text in texts]
    retriever = SireRetriever.from_documents(documents, recipe="flat", k=1)
    chain = create_retrieval_chain(
        RunnableLambda(question_of) | retriever, RunnableLambda(lambda asked: asked["input"])
    )
    for ship in ("Wren", "Tern"):
        history = [HumanMessage(f"When did the {ship} sink?"), AIMessage("In 1902.")]
        found = chain.invoke({"input": "Where did her boiler come from?", "chat_history": history})["context"]
        assert [document.id for document in found] == [ship]


DOCUMENTS = [Document(id="a", page_content="Mira painted."), Document(id="b", page_content="Tom sailed.")]


def test_a_vector_store_in_the_place_of_embeddings_is_sent_to_its_own():
    with pytest.raises(ConfigurationError, match="vector_store="):
        SireRetriever.from_documents(DOCUMENTS, InMemoryVectorStore(DeterministicFakeEmbedding(size=4)))
    with pytest.raises(ConfigurationError, match="Embeddings object of LangChain"):
        SireRetriever.from_documents(DOCUMENTS, 5)


def test_a_document_with_nothing_where_a_value_belongs_is_named():
    with pytest.raises(CorpusError, match=r"number 1 \(id 'x'\): page_content is NoneType"):
        SireRetriever.from_documents([DOCUMENTS[0], Document.model_construct(page_content=None, id="x", metadata={})])
    with pytest.raises(CorpusError, match=r"id 'x'\): metadata is NoneType"):
        SireRetriever.from_documents([Document.model_construct(page_content="Text", id="x", metadata=None)])


def test_a_vector_store_of_ours_is_searched_by_the_tool():
    store = SireVectorStore()
    store.add_documents(DOCUMENTS)
    assert "[a] Mira painted." in create_sire_tool(store).invoke({"query": "Mira"})


def test_documents_without_text_are_counted(caplog):
    given = [*DOCUMENTS, Document(id="e", page_content=" "), Document(id="f", page_content="")]
    SireRetriever.from_documents(given)
    said = [record.getMessage() for record in caplog.records if "without text" in record.getMessage()]
    assert said == ["2 documents without text: no search finds them. The first is 'e'."]


PACKAGE = Path(langchain_sire.__file__).parent
ALLOWED = {"langchain_core", "langgraph", "langchain_sire", "sire_core", "pydantic", "numpy", "typing_extensions"}


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


def test_trap_adapters_rot_so_only_langchain_core_is_imported():
    """`langchain.retrievers` and `langchain_classic` come and go; nothing may lean on them, not even lazily.

    The middleware and the files of agents are made for one other package each, and load when they are asked for.
    """
    found = {path.name: set(_imports(path)) for path in PACKAGE.glob("*.py")}
    found["middleware.py"] -= {"langchain"}
    found["files_backend.py"] -= {"deepagents"}
    assert len(found) > 10
    wrong = {name: sorted(roots - ALLOWED - set(sys.stdlib_module_names)) for name, roots in found.items()}
    assert not {name: roots for name, roots in wrong.items() if roots}


def test_trap_making_an_object_reads_nothing_writes_nothing_and_asks_nobody(tmp_path):
    """A constructor that indexes fails in every notebook and server."""

    class Refusing(HashEmbedder):
        async def embed(self, texts, kind="document"):
            raise AssertionError("a constructor embedded")

    chat = model(AssertionError("a constructor asked"))
    folder = tmp_path / "nothing"
    SireRetriever(index=Index(folder, embedder=Refusing(), language_model=LangChainChat(chat)))
    SireRetriever.open(folder, Refusing(), llm=chat)
    SireDocumentTransformer("raptor", embedding=Refusing(), llm=chat, path=folder)
    assert chat.log == []
    assert not folder.exists()


async def test_a_copy_is_saved_in_a_new_folder_only(documents, question, tmp_path):
    retriever = SireRetriever.from_documents(documents, recipe="flat", k=6)
    retriever.save(tmp_path / "b")
    loaded = SireRetriever.load(tmp_path / "b")
    assert await loaded.ainvoke(question, k=5) == loaded.invoke(question)[:5] == retriever.invoke(question, k=5)
    with pytest.raises(StorageError, match="Name a new folder"):
        retriever.save(tmp_path / "b")


def test_a_stored_filter_is_named_and_dropped_by_none(tmp_path, caplog):
    mails = [Document("Ferries sail at noon.", id="mail", metadata={"kind": "mail", "date": "2026-01-01"})]
    stored = {"filter": {"kind": "mail"}, "as_of": "2026-05-01"}
    SireRetriever.from_documents(mails, path=tmp_path / "ix", **stored).index.close()
    loaded = SireRetriever.load(tmp_path / "ix")
    loaded.add_documents([Document("Ferries wait.", id="note", metadata={"kind": "note", "date": "2026-09-01"})])
    assert [found.id for found in loaded.invoke("ferries")] == ["mail"]
    assert "filter=None drops it" in caplog.text
    assert "as_of=None drops it" in caplog.text
    loaded.index.close()
    whole = SireRetriever.load(tmp_path / "ix", filter=None, as_of=None)
    assert sorted(found.id for found in whole.invoke("ferries")) == ["mail", "note"]


@pytest.mark.parametrize("way", ["add_documents", "upsert", "store"])
def test_a_folder_stores_what_open_was_given(tmp_path, way):
    documents = [
        Document(f"Ferries sail at {hour}, and wait for the post.", id=str(hour), metadata={"odd": hour % 2 == 1})
        for hour in range(9)
    ]
    given = {"filter": {"odd": True}, "search_type": "mmr", "search_kwargs": {"fetch_k": 7, "k": 3}}
    if way == "store":
        opened = SireVectorStore(path=tmp_path / "ix", **given).documents
        SireVectorStore(documents=opened).add_documents(documents)
    else:
        opened = SireRetriever.open(tmp_path / "ix", title_key="heading", **given)
        getattr(opened, way)(documents)
    found = opened.invoke("ferries")
    opened.index.close()
    loaded = SireRetriever.load(tmp_path / "ix")
    assert (len(found), loaded.invoke("ferries")) == (3, found)
    assert loaded.search_kwargs["fetch_k"] == 7
    loaded.index.close()
    again = SireRetriever.open(tmp_path / "ix", max_tokens=9)
    again.add_documents(documents[:1])
    again.index.close()
    loaded = SireRetriever.load(tmp_path / "ix")
    assert (loaded.max_tokens, loaded.search_type, loaded.filter) == (9, "similarity", {"odd": {"eq": True}})


def test_a_search_says_that_the_folder_was_moved_away(tmp_path):
    SireRetriever.from_documents([Document("Ferries sail at noon.", id="mail")], path=tmp_path / "ix").index.close()
    opened = SireRetriever.load(tmp_path / "ix")
    (tmp_path / "ix").rename(tmp_path / "elsewhere")
    with pytest.raises(IndexMissingError, match="deleted or moved"):
        opened.invoke("ferries")
