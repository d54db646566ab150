"""Words, mistakes and exhausted models in both adapters."""

import asyncio
import threading
from datetime import date, datetime
from enum import Enum

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from llama_index.core.llms.mock import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from pydantic import BaseModel

import langchain_sire
import llama_index_sire
from langchain_sire import (
    IRCoTRetriever,
    SelfAskRetriever,
    SireRetriever,
    SireVectorStore,
    create_ircot_chain,
    create_ircot_graph,
    create_self_ask_chain,
    create_self_ask_graph,
)
from llama_index_sire import IRCoTQueryEngine, ReasoningWorkflow, SelfAskQueryEngine, SingleQueryEngine
from sire_core import Document as SireDocument
from sire_core import Index
from sire_core.errors import (
    ConfigurationError,
    CorpusError,
    IndexClosedError,
    IndexMissingError,
    ModelError,
    QueryError,
)
from sire_core.recipes import recipe_of

DOCUMENTS = [Document(page_content="Petra Quillon sails."), Document(page_content="Otto Brack walks.", id="own")]


class Counted(FakeListChatModel):
    calls: int = 0

    def _call(self, *args, **kwargs):
        type(self).calls += 1
        return super()._call(*args, **kwargs)


@pytest.fixture
def model():
    Counted.calls = 0
    return Counted(responses=['{"entities": [], "facts": []}'])


@pytest.mark.parametrize("kind", [SireRetriever, SireVectorStore])
async def test_ids(kind):
    made = kind.from_documents(DOCUMENTS, recipe="flat", ids=["a", "b"])
    assert [d.id for d in made.get_by_ids(["b", "none", "a"])] == ["b", "a"]
    assert made.add_documents([Document(page_content="New.", id="x")], ids=["a"]) == ["a"]
    assert await made.aadd_documents([Document(page_content="Other.")], ids=["c"]) == ["c"]
    assert [d.page_content for d in await made.aget_by_ids(["a", "c"])] == ["New.", "Other."]
    with pytest.raises(CorpusError, match="1 documents but 2 ids"):
        made.add_documents([Document(page_content="New.")], ids=["a", "b"])
    assert DOCUMENTS[1].id == "own"


def test_words_of_stores_in_a_retriever():
    retriever = SireRetriever.open(recipe="flat", k=1)
    assert retriever.invoke("Petra") == []
    assert retriever.add_texts(["Petra sails.", "Otto walks."], [{"n": 1}, {"n": 2}], ids=["p", "o"]) == ["p", "o"]
    narrow = retriever.as_retriever(filter={"n": 2}, top_k=5)
    assert [d.id for d in narrow.invoke("Petra")] == ["o"]
    assert narrow.as_retriever(filter={"n": 1}).invoke("Petra") == []
    with pytest.raises(TypeError, match=r"SireRetriever.as_retriever\(\) has no argument 'kk'"):
        retriever.as_retriever(kk=2)
    assert retriever.delete(["p", "unknown"])["num_deleted"] == 1
    assert [d.id for d in retriever.invoke("Petra")] == ["o"]


@pytest.mark.parametrize("kind", [TextNode, LlamaDocument])
async def test_ids_of_nodes(kind):
    given = [kind(text="Petra sails."), kind(text="Otto walks.")]
    before = [node.node_id for node in given]
    retriever = llama_index_sire.SireRetriever.from_documents(given, recipe="flat", ids=["p", "o"])
    assert set(retriever.ref_doc_info) == {"p", "o"}
    retriever.insert(kind(text="Mira runs."), ids=["m"])
    await retriever.arefresh([kind(text="Mira rests.")], ids=["m"])
    assert retriever.retrieve("Mira")[0].node.text == "Mira rests."
    assert retriever.retrieve("Mira")[0].node.ref_doc_id == "m"
    assert [node.node_id for node in given] == before
    for refused in (["a"], "ab"):
        with pytest.raises(CorpusError, match="2 documents or nodes but"):
            retriever.insert(given, ids=refused)


MISTAKES = {
    "SireVectorStore": lambda: SireVectorStore.from_texts(["a"], recip="flat"),
    "SireVectorStore.similarity_search": lambda: SireVectorStore().similarity_search("a", kk=1),
    "SireRetriever.open": lambda: SireRetriever.open(recip="flat"),
    "IRCoTRetriever.load": lambda: IRCoTRetriever.load("nowhere", recip="flat"),
    "SireRetriever.insert": lambda: llama_index_sire.SireRetriever.from_documents([], recipe="flat").insert(
        [], idz=[1]
    ),
}


@pytest.mark.parametrize("called", MISTAKES)
def test_mistakes_are_said_of_what_was_called(called):
    with pytest.raises(TypeError, match=rf"^{called}\(\) "):
        MISTAKES[called]()


@pytest.mark.parametrize("kind", [SireRetriever, SireVectorStore, IRCoTRetriever])
def test_what_is_no_model_is_refused_when_it_is_given(kind):
    with pytest.raises(ConfigurationError, match="int is no embedder"):
        kind.from_documents([], 3)
    with pytest.raises(ConfigurationError, match="int is no language model"):
        kind.from_documents([], llm=3)
    with pytest.raises(ConfigurationError, match="recipe_settings is a mapping"):
        kind.from_documents([], recipe_settings=[1])


@pytest.mark.parametrize("given", [{"ranker": "hybrid"}, {"recipe_settings": {"ranker": "hybrid"}}])
def test_settings_of_a_recipe(tmp_path, given):
    made = SireRetriever.from_documents(DOCUMENTS, recipe="flat", path=tmp_path / "i", **given)
    assert [d.page_content for d in made.invoke("Petra Quillon", k=1)] == ["Petra Quillon sails."]
    again = SireVectorStore(path=tmp_path / "i")
    assert again.documents.index.recipe_name == "flat"
    assert "BM25" in made.index.explain("Petra Quillon")
    nodes = [TextNode(text="Petra Quillon sails.")]
    theirs = llama_index_sire.SireRetriever.from_documents(nodes, recipe="flat", **given)
    assert "BM25" in theirs.index.explain("Petra Quillon")


def test_settings_that_no_recipe_has_are_refused_by_name():
    with pytest.raises(TypeError, match="'rankerr'"):
        SireRetriever.from_documents(DOCUMENTS, recipe="flat", rankerr="hybrid")
    with pytest.raises(ConfigurationError, match="nothing_such"):
        SireRetriever.from_documents(DOCUMENTS, recipe="flat", recipe_settings={"nothing_such": 1})


@pytest.mark.parametrize("kind", [IRCoTRetriever, SelfAskRetriever])
def test_a_reasoning_model_extracts_nothing(kind, model, caplog):
    retriever = kind.from_documents(DOCUMENTS, recipe="sirerag", llm=model)
    assert Counted.calls == 0
    assert retriever.llm is model
    assert retriever.index.language_model is None
    assert "estimate" not in caplog.text
    other = kind.from_documents(DOCUMENTS, recipe="sirerag", llm=model, extraction_llm=model)
    assert Counted.calls > 0
    assert other.index.language_model is not None


def test_extraction_by_its_own_name_and_a_warning_of_what_it_costs(model, caplog):
    SireRetriever.from_documents(DOCUMENTS, recipe="sirerag", extraction_llm=model)
    assert Counted.calls > 0
    assert caplog.text.count("Index.estimate(documents)") == 1
    nodes = [TextNode(text="Petra Quillon sails.")]
    with pytest.raises(TypeError, match="twice"):
        llama_index_sire.SireRetriever.from_documents(nodes, llm=None, extraction_llm=None)


class Color(Enum):
    RED = "red"


class Place(BaseModel):
    town: str


ODD = {"color": Color.RED, "n": np.int64(3), "rate": np.float32(0.5), "none": float("nan"), "place": Place(town="Varn")}
ADD = {
    "langchain": lambda text, metadata, **options: SireRetriever.from_documents(
        [Document(page_content=text, metadata=metadata)], recipe="flat", **options
    ),
    "nodes": lambda text, metadata, **options: llama_index_sire.SireRetriever.from_documents(
        [TextNode(text=text, metadata=metadata)], recipe="flat", **options
    ),
    "documents": lambda text, metadata, **options: llama_index_sire.SireRetriever.from_documents(
        [LlamaDocument(text=text, metadata=metadata)], recipe="flat", **options
    ),
    "split": lambda text, metadata, **options: llama_index_sire.SireRetriever.from_documents(
        [LlamaDocument(text=text, metadata=metadata)], recipe="flat", transformations=[SentenceSplitter()], **options
    ),
}


@pytest.mark.parametrize("add", ADD.values(), ids=ADD)
def test_metadata_that_json_does_not_have(add):
    index = add("Petra sails.", {**ODD, "day": date(2024, 5, 31), "at": datetime(2024, 5, 31, 10, 0)}).index  # noqa: DTZ001 - without a zone
    for where in ({"color": "red"}, {"n": 3}, {"rate": {"lt": 0.6}}, {"day": {"gte": date(2024, 5, 1)}}, "at<2024-06"):
        assert index.search("Petra", 1, filter=where), where
    assert index.search("Petra", 1, filter={"day": {"lt": date(2024, 5, 1)}}) == []
    for value in (date(2024, 5, 31), float("nan"), Color.RED, np.int64(3), Place(town="Varn"), {1}):
        with pytest.raises(CorpusError, match=r"'thing'.*strict_metadata"):
            add("Petra sails.", {"thing": value}, strict_metadata=True)


def test_date_ranges_in_the_words_of_llama_index():
    nodes = [TextNode(id_=str(n), text="Petra sails.", metadata={"day": date(2024, n, 1), "n": n}) for n in (1, 5, 9)]
    filters = MetadataFilters(
        filters=[
            MetadataFilter(key="day", value="2024-04-30", operator=FilterOperator.GT),
            MetadataFilter(key="day", value="2024-09-01", operator=FilterOperator.LT),
        ]
    )
    retriever = llama_index_sire.SireRetriever.from_documents(nodes, recipe="flat", filters=filters)
    (found,) = retriever.retrieve("Petra")
    assert found.node.metadata == {"day": date(2024, 5, 1), "n": 5}


@pytest.mark.parametrize("kind", [SireRetriever, llama_index_sire.SireRetriever])
@pytest.mark.parametrize("given", [{"preset": "published"}, {"recipe_settings": {"preset": "published"}}])
def test_a_preset_is_a_setting_like_others(kind, given, tmp_path):
    documents = DOCUMENTS if kind is SireRetriever else [TextNode(text="Petra Quillon sails.")]
    kind.from_documents(documents, recipe="msrag", hop_decay=0.9, path=tmp_path / "i", **given)
    config = recipe_of(tmp_path / "i").config
    assert (config["preset"], config["vote"], config["hop_decay"]) == ("published", "count", 0.9)


def test_documents_have_their_text():
    index = Index(recipe="flat")
    long = " ".join(f"Sentence number {n} is here." for n in range(200))
    given = [SireDocument("a", long), SireDocument("b", "", chunks=("One.", "Two.")), SireDocument("c", "")]
    index.build(given)
    texts = {document.id: document.text for document in index.documents()}
    assert texts == {"a": long, "b": "One.\n\nTwo.", "c": ""}
    assert index.update(index.documents(["b"])).unchanged == 1


QUESTION = "Who wrote it?"
TEXT = "Petra Quillon wrote it."


class Exhausted(MockLLM):
    def complete(self, prompt, formatted=False, **kwargs):
        raise StopIteration

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise StopIteration

    async def acomplete(self, prompt, formatted=False, **kwargs):
        return self.complete(prompt)


def langchain(make):
    retriever = langchain_sire.SireRetriever.from_documents([Document(id="a", page_content=TEXT)], recipe="flat")
    return make(retriever, GenericFakeChatModel(messages=iter(["So Petra Quillon wrote it, it seems."])))


def llama_index(make):
    return make(llama_index_sire.SireRetriever.from_documents([TextNode(text=TEXT)], recipe="flat"), llm=Exhausted())


def in_time(run):
    """What a call that has to end returns or raises."""
    found = []

    def work():
        try:
            found.append(run())
        except Exception as error:  # noqa: BLE001 - it is what the test looks at
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it hangs"
    return found[0]


async def astream(chain):
    return [part async for part in chain.astream(QUESTION)]


def streamed(engine):
    engine.streaming = True
    return engine.query(QUESTION).get_response()


async def astreamed(engine):
    engine.streaming = True
    return await (await engine.aquery(QUESTION)).get_response()


async def workflow(engine):
    return await ReasoningWorkflow(engine).run(query=QUESTION)


CHAINS = {
    "invoke": lambda chain: chain.invoke(QUESTION),
    "stream": lambda chain: list(chain.stream(QUESTION)),
    "batch": lambda chain: chain.batch([QUESTION, QUESTION]),
    "ainvoke": lambda chain: asyncio.run(chain.ainvoke(QUESTION)),
    "astream": lambda chain: asyncio.run(astream(chain)),
}
ENGINES = {
    "query": lambda engine: engine.query(QUESTION),
    "aquery": lambda engine: asyncio.run(engine.aquery(QUESTION)),
    "stream": streamed,
    "astream": lambda engine: asyncio.run(astreamed(engine)),
    "workflow": lambda engine: asyncio.run(workflow(engine)),
}
CALLS = [(langchain, make, way) for make in (create_ircot_chain, create_self_ask_chain) for way in CHAINS.values()]
CALLS += [(llama_index, make, way) for make in (IRCoTQueryEngine, SelfAskQueryEngine) for way in ENGINES.values()]
CALLS += [(llama_index, SingleQueryEngine, way) for way in (streamed, ENGINES["astream"])]


@pytest.mark.parametrize(("over", "make", "way"), CALLS)
def test_a_call_ends_with_an_error(over, make, way):
    assert isinstance(in_time(lambda: way(over(make))), ModelError)


@pytest.mark.parametrize("ask", [lambda g, given: g.invoke(given), lambda g, given: asyncio.run(g.ainvoke(given))])
@pytest.mark.parametrize("make", [create_ircot_graph, create_self_ask_graph])
def test_a_graph_says_it_in_its_state(make, ask):
    state = in_time(lambda: ask(langchain(make), {"question": QUESTION}))
    assert state["stop"] == "model_failed"
    assert state["note"].startswith("the chat model failed")


@pytest.mark.parametrize(
    ("kind", "documents", "model"),
    [
        (langchain_sire.SireRetriever, [Document(page_content=TEXT)], GenericFakeChatModel(messages=iter([]))),
        (llama_index_sire.SireRetriever, [TextNode(text=TEXT)], Exhausted()),
    ],
)
def test_a_build_ends(kind, documents, model):
    error = in_time(lambda: kind.from_documents(documents, llm=model, recipe="sirerag"))
    assert "StopIteration" in str(error)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A retriever of each adapter, one that is closed, and a folder without an index."""
    retrievers = []
    for _ in range(2):
        retrievers.append(SireRetriever.from_documents(DOCUMENTS, recipe="flat"))
        nodes = [LlamaDocument(id_="own", text="Otto Brack walks.")]
        retrievers.append(llama_index_sire.SireRetriever.from_documents(nodes, recipe="flat"))
    for retriever in retrievers[2:]:
        retriever.index.close()
    return (*retrievers, tmp_path_factory.mktemp("folder"))


ERRORS = {
    "k": (ConfigurationError, lambda make: make(k=0)),
    "k of another type": (ConfigurationError, lambda make: make(k="five")),
    "returns": (ConfigurationError, lambda make: make(returns="all")),
    "filter": (ConfigurationError, lambda make: make(filter="year >=")),
    "filter of another type": (ConfigurationError, lambda make: make(filter=3)),
    "max_tokens": (ConfigurationError, lambda make: make(max_tokens=0)),
    "context_options": (ConfigurationError, lambda make: make(max_tokens=9, context_options=3)),
    "title_key": (ConfigurationError, lambda make: make(title_key=3)),
    "recipe": (ConfigurationError, lambda make: make.of().from_documents([], recipe="flatt")),
    "as_of": (QueryError, lambda make: make(as_of="tomorrow")),
    "keyword": (TypeError, lambda make: make(kk=3)),
    "index": (ConfigurationError, lambda make: make.of()(index=3)),
    "no index": (TypeError, lambda make: make.of()()),
    "folder": (IndexMissingError, lambda make: make.opened(make.folder)),
    "no folder": (IndexMissingError, lambda make: make.opened(make.folder / "none")),
    "question": (QueryError, lambda make: make.search(make.retriever, " ")),
    "closed": (IndexClosedError, lambda make: make.search(make.closed, "Who sails?")),
    "closed, change": (IndexClosedError, lambda make: make.add(make.closed, [make.document])),
    "documents": (CorpusError, lambda make: make.add(make.retriever, ["text"])),
    "ids": (CorpusError, lambda make: make.add(make.retriever, [make.document], ids=[])),
}


class Make:
    """What a test does with one of the adapters."""

    def __init__(self, both, *, langchain):
        self.retriever, self.closed, self.folder = both[not langchain], both[3 - langchain], both[-1]
        self.langchain = langchain
        self.document = Document(page_content="x") if langchain else LlamaDocument(text="x")

    def of(self):
        return type(self.retriever)

    def __call__(self, **fields):
        return self.of()(index=self.retriever.index, **fields)

    def opened(self, folder):
        return (self.of().load if self.langchain else self.of().from_persist_dir)(folder)

    def search(self, retriever, question):
        return (retriever.invoke if self.langchain else retriever.retrieve)(question)

    def add(self, retriever, documents, **options):
        return (retriever.add_documents if self.langchain else retriever.insert)(documents, **options)


@pytest.mark.parametrize("mistake", ERRORS)
def test_a_mistake_has_the_same_error_in_both_adapters(both, mistake):
    error, make_it = ERRORS[mistake]
    for langchain in (True, False):
        with pytest.raises(error) as raised:
            make_it(Make(both, langchain=langchain))
        assert raised.type is error
