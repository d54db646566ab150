"""`SireRetriever`: arguments, documents, tracing."""

import asyncio
import copy
import json
import warnings

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.load import dumpd
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField

from langchain_sire import SireRetriever
from sire_core.errors import ConfigurationError, QueryError
from sire_core.filters import parse_filter
from sire_core.protocols import Prompt, Recipe
from sire_core.recipes import flat


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of(), k=3)


class Runs(BaseCallbackHandler):
    """Notes runs with their parents."""

    def __init__(self):
        self.retrievers, self.models, self.errors, self.metadata = [], [], [], []

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, metadata=None, **kwargs):
        self.retrievers.append(run_id)
        self.metadata.append(metadata)

    def on_retriever_error(self, error, **kwargs):
        self.errors.append(error)

    def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
        self.models.append(parent_run_id)


# --- arguments ------------------------------------------------------------------------------------------------------


async def test_trap_k_of_one_call_works_in_sync_and_async(retriever, question):
    for k in (1, 2, 5):
        assert len(retriever.invoke(question, k=k)) == k
        assert len(await retriever.ainvoke(question, k=k)) == k
    assert len(retriever.invoke(question)) == len(await retriever.ainvoke(question)) == 3


async def test_trap_filter_of_one_call_works_in_sync_and_async(retriever, question):
    sync = retriever.invoke(question, filter={"kind": "person"}, k=20)
    native = await retriever.ainvoke(question, filter='{"kind": "person"}', k=20)
    assert sync == native
    assert sync
    assert all(d.metadata["kind"] == "person" for d in sync)


def test_a_calls_filter_never_widens_the_retrievers_own(index_of, question):
    mine = SireRetriever(index=index_of(), filter={"kind": "person"}, k=50)
    allowed = {d.id for d in mine.invoke(question)}
    assert {d.id for d in mine.invoke(question, filter={"kind": "ship"})} == set()
    assert {d.id for d in mine.invoke(question, filter={"kind": {"in": ["person", "ship"]}})} == allowed
    assert mine.invoke(question, filter=parse_filter("kind=person")) == mine.invoke(question)


@pytest.mark.parametrize("argument", [{"top_k": 2}, {"search_kwargs": {"k": 2}}, {"search_kwargs": {"top_k": 2}}])
def test_words_of_other_retrievers_are_understood(index_of, question, argument):
    assert len(SireRetriever(index=index_of(), **argument).invoke(question)) == 2


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
    with pytest.raises(TypeError, match=r"no argument 'n'; known are .*, k \(or top_k or similarity_top_k\), recipe"):
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


async def test_nonsense_in_a_call_is_a_clear_error(retriever, question):
    for bad, error in (
        ({"k": 0}, QueryError),
        ({"k": 1.5}, QueryError),
        ({"filter": {"year": {"like": 1}}}, ConfigurationError),
    ):
        with pytest.raises(error):
            retriever.invoke(question, **bad)
        with pytest.raises(error):
            await retriever.ainvoke(question, **bad)
    with pytest.raises(QueryError, match="empty"):
        retriever.invoke("  ")


def test_trap_fields_shadow_nothing_of_pydantic():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Mine(SireRetriever):
            """Subclassing makes pydantic look for shadowed names again."""

    assert set(Mine.model_fields) == {
        *("name", "tags", "metadata", "index", "k", "filter", "returns", "as_of", "search_kwargs", "title_key")
    }


# --- documents ------------------------------------------------------------------------------------------------------


def test_trap_ids_are_set_unique_and_scores_descend(retriever, question):
    found = retriever.invoke(question, k=20)
    assert all(d.id for d in found)
    assert len({d.id for d in found}) == 20
    scores = [d.metadata["sire"]["score"] for d in found]
    assert scores == sorted(scores, reverse=True)
    assert all(type(score) is float for score in scores)
    assert json.dumps([d.metadata for d in found])


def test_trap_the_callers_documents_are_untouched(documents):
    before = copy.deepcopy(documents)
    retriever = SireRetriever.from_documents(documents, recipe="flat")
    found = retriever.invoke("Who commanded the Northern Wren?")
    for document in found:
        document.metadata["title"] = "changed"
        document.metadata.setdefault("tags", []).append("x")
    assert documents == before
    assert retriever.invoke("Who commanded the Northern Wren?")[0].metadata["title"] != "changed"


# --- a runnable like any other --------------------------------------------------------------------------------------


async def test_batch_stream_and_events_come_with_it(retriever, question):
    alone = retriever.invoke(question)
    assert retriever.batch([question] * 3, {"max_concurrency": 2}) == [alone] * 3
    assert await retriever.abatch([question] * 3) == [alone] * 3
    assert list(retriever.stream(question)) == [alone]
    events = [event async for event in retriever.astream_events(question, version="v2")]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "on_retriever_start"
    assert kinds[-1] == "on_retriever_end"


def test_trap_configurable_fields(retriever, question):
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"), filter=ConfigurableField(id="filter"))
    assert len(configurable.invoke(question)) == 3
    assert len(configurable.invoke(question, {"configurable": {"k": 7}})) == 7
    chosen = configurable.with_config(configurable={"k": 50, "filter": {"kind": "ship"}}).invoke(question)
    assert {d.metadata["kind"] for d in chosen} == {"ship"}
    assert len(configurable.invoke(question)) == 3


def test_trap_it_does_not_pretend_to_be_serializable(retriever):
    assert dumpd(retriever)["type"] == "not_implemented"


# --- tracing --------------------------------------------------------------------------------------------------------


class AsksModel:
    """A ranker that asks the language model while it searches."""

    async def rank(self, query, n, view, where=None):
        answer = await view.language_model.complete(Prompt("Rewrite the question.", query))
        return await flat().ranker.rank(answer.text, n, view, where)


def _asking():
    return Recipe("flat", "asks", "test", (), AsksModel())


async def test_trap_inner_model_calls_are_children_of_the_retriever_run():
    model = FakeListChatModel(responses=["Who sang it?"])
    retriever = SireRetriever.from_texts(["Petra wrote it.", "Otto sang it."], recipe=_asking(), llm=model, k=1)
    runs = Runs()
    found = retriever.invoke("Who was it?", {"callbacks": [runs]})
    assert runs.models == runs.retrievers != []
    runs = Runs()
    assert await retriever.ainvoke("Who was it?", {"callbacks": [runs]}) == found
    assert runs.models == runs.retrievers != []
    assert found[0].page_content == "Otto sang it."


async def test_concurrent_calls_keep_their_traces_apart():
    model = FakeListChatModel(responses=["Who sang it?"], sleep=0.01)
    retriever = SireRetriever.from_texts(["Petra wrote it.", "Otto sang it."], recipe=_asking(), llm=model, k=1)
    runs = [Runs() for _ in range(8)]
    await asyncio.gather(*(retriever.ainvoke("Who was it?", {"callbacks": [run]}) for run in runs))
    retriever.batch(["Who was it?"] * 8, [{"callbacks": [run]} for run in runs])
    assert all(run.models == run.retrievers and len(run.models) == 2 for run in runs)


def test_errors_are_reported_to_callbacks(retriever):
    runs = Runs()
    with pytest.raises(QueryError):
        retriever.invoke("", {"callbacks": [runs]})
    assert isinstance(runs.errors[0], QueryError)


def test_trap_trace_parameters_name_index_and_embedder(retriever, question):
    runs = Runs()
    retriever.invoke(question, {"callbacks": [runs]})
    told = runs.metadata[0]
    assert told["ls_retriever_name"] == "sire"
    assert told["ls_vector_store_provider"] == "sire"
    assert told["ls_embedding_provider"] == "sire"
    assert told["ls_embedding_model"] == "lexical"
    assert BaseRetriever._get_ls_params(retriever)["ls_retriever_name"] == "sire"
