"""Traces of chains and reasoning retrievers: every model call and every search is a child run."""

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.documents import Document
from langchain_reasoning import FOLLOW_UP, IRCOT, QUESTION, Runs
from langchain_scripted_chat import model, says

from langchain_sire import IRCoTRetriever, SireRetriever, create_ircot_chain
from sire_core.errors import ModelError
from sire_core.protocols import Prompt, Recipe
from sire_core.recipes import flat


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of("flat"), k=4)


async def _called(chain, native, runs, question=QUESTION):
    config = {"callbacks": [runs]}
    return await chain.ainvoke(question, config) if native else chain.invoke(question, config)


@pytest.mark.parametrize("native", [False, True])
async def test_trap_model_calls_and_searches_are_children_of_the_chains_run(retriever, native):
    runs = Runs()
    result = await _called(create_ircot_chain(retriever, model(*IRCOT)), native, runs)
    assert runs.order == ["chain", QUESTION, "model", FOLLOW_UP, "model", "model"]
    (kind, name, top), *inner = runs.begun
    assert (kind, name) == ("chain", "IRCoT")
    assert runs.parents[top] is None
    assert {runs.parents[run_id] for _, _, run_id in inner} == {top}
    plain = [step["documents"] for step in result["steps"] if step["type"] == "retrieved"]
    found = [[Document(**document) for document in documents] for documents in plain]
    assert runs.found == found
    assert runs.ended[-1] == top
    assert runs.errors == []


class AsksModel:
    """A ranker that asks the index's model while it searches."""

    async def rank(self, query, n, view, where=None):
        await view.language_model.complete(Prompt("Rewrite the question.", query))
        return await flat().ranker.rank(query, n, view, where)


def _asking(*answers):
    recipe = Recipe("flat", "asks", "test", (), AsksModel())
    return SireRetriever.from_texts(["Ilse Marrable wrote it.", "1931."], recipe=recipe, llm=model(*answers), k=2)


@pytest.mark.parametrize("native", [False, True])
async def test_a_model_that_a_search_asks_is_a_child_of_the_search(native):
    runs = Runs()
    await _called(create_ircot_chain(_asking("x"), model(*IRCOT)), native, runs)
    kinds = {run_id: kind for kind, _, run_id in runs.begun}
    above = [kinds.get(runs.parents[run_id]) for kind, _, run_id in runs.begun if kind == "model"]
    assert above == ["search", "chain", "search", "chain", "chain"]


@pytest.mark.parametrize("native", [False, True])
async def test_errors_end_the_runs_that_are_open(native):
    runs = Runs()
    with pytest.raises(ModelError):
        await _called(create_ircot_chain(_asking(ValueError("quota")), model(*IRCOT)), native, runs)
    assert len(runs.errors) == 2  # of the search and of the chain
    assert set(runs.ended) == {run_id for kind, _, run_id in runs.begun if kind != "model"}


def test_langchains_usage_callback_counts_what_the_result_says(retriever):
    used = {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34}
    answers = [says(text, usage_metadata=used, response_metadata={"model_name": "m-1"}) for text in IRCOT]
    usage = UsageMetadataCallbackHandler()
    result = create_ircot_chain(retriever, model(*answers)).invoke(QUESTION, {"callbacks": [usage]})
    assert usage.usage_metadata["m-1"]["total_tokens"] == 3 * 34
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (90, 12)


@pytest.mark.parametrize("native", [False, True])
async def test_trap_inner_runs_of_a_reasoning_retriever_are_its_children(index_of, native):
    runs = Runs()
    retriever = IRCoTRetriever(index=index_of("flat"), llm=model(*IRCOT), k=4)
    found = await _called(retriever, native, runs)
    assert runs.order == [QUESTION, QUESTION, "model", FOLLOW_UP, "model"]
    assert {runs.parents[run_id] for _, _, run_id in runs.begun[1:]} == {runs.begun[0][2]}
    assert runs.found[-1] == found
