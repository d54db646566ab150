"""Traces of chains and reasoning retrievers: every model call and every search is a child run."""

import asyncio

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_reasoning import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK, Runs
from langchain_scripted_chat import model, says

from langchain_sire import IRCoTRetriever, SireRetriever, create_ircot_chain, create_self_ask_chain
from sire_core.errors import ModelError
from sire_core.protocols import Prompt, Recipe
from sire_core.recipes import flat

REPEATED = (
    f'{{"reasoning": "Who wrote it?", "search": "{QUESTION.lower()}"}}',
    IRCOT[2],
)


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


@pytest.mark.parametrize("native", [False, True])
async def test_self_ask_is_traced_the_same_way(retriever, native):
    runs = Runs()
    await _called(create_self_ask_chain(retriever, model(*SELF_ASK)), native, runs)
    assert runs.order == ["chain", QUESTION, "model", FOLLOW_UP, "model", "model", "model"]
    planned = '{"followups": [{"q": "Who wrote it?", "a": "Ilse Marrable"}]}'
    runs = Runs()
    await _called(create_self_ask_chain(retriever, model(planned, IRCOT[2]), mode="two_call"), native, runs)
    assert runs.order == ["chain", QUESTION, "model", "model"]


@pytest.mark.parametrize("native", [False, True])
async def test_a_repeated_question_opens_no_run_of_a_search_that_does_not_happen(retriever, native):
    runs = Runs()
    result = await _called(create_ircot_chain(retriever, model(*REPEATED)), native, runs)
    assert result["stop"] == "repeated_query"
    assert runs.order == ["chain", QUESTION, "model", "model"]
    assert len({runs.parents[run_id] for _, _, run_id in runs.begun[1:]}) == 1


@pytest.mark.parametrize("native", [False, True])
async def test_a_chain_inside_a_chain_keeps_the_tree(retriever, native):
    runs = Runs()
    await _called(RunnableLambda(lambda q: q.strip()) | create_ircot_chain(retriever, model(*IRCOT)), native, runs)
    names = {run_id: name for _, name, run_id in runs.begun}
    (ircot,) = [run_id for run_id, name in names.items() if name == "IRCoT"]
    assert names[runs.parents[ircot]] == "RunnableSequence"
    assert [k for k, _, run_id in runs.begun if runs.parents[run_id] == ircot] == [
        "search",
        "model",
        "search",
        "model",
        "model",
    ]


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


async def test_concurrent_calls_keep_their_traces_apart(retriever):
    runs = [Runs() for _ in range(6)]
    chains = [create_ircot_chain(retriever, model(*IRCOT)) for _ in runs]
    await asyncio.gather(*(_called(chain, native=True, runs=run) for chain, run in zip(chains, runs, strict=True)))
    assert all(run.order == ["chain", QUESTION, "model", FOLLOW_UP, "model", "model"] for run in runs)


async def test_events_show_the_steps_searches_and_calls(retriever):
    chain = create_ircot_chain(retriever, model(*IRCOT))
    events = [event async for event in chain.astream_events(QUESTION, version="v2")]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "on_chain_start"
    assert kinds[-1] == "on_chain_end"
    chunks = [event["data"]["chunk"] for event in events if event["event"] == "on_chain_stream"]
    streamed = [step["type"] for chunk in chunks for step in chunk["steps"]]
    assert streamed == ["retrieved", "thought", "sub_question", "retrieved", "thought", "answer"]
    assert kinds.count("on_retriever_start") == kinds.count("on_retriever_end") == 2
    assert kinds.count("on_chat_model_start") == kinds.count("on_chat_model_end") == 3
    assert events[-1]["data"]["output"]["answer"] == "In 1931 [1]"
    assert kinds.index("on_chat_model_start") > kinds.index("on_chain_stream")


def test_langchains_usage_callback_counts_what_the_result_says(retriever):
    used = {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34}
    answers = [says(text, usage_metadata=used, response_metadata={"model_name": "m-1"}) for text in IRCOT]
    usage = UsageMetadataCallbackHandler()
    result = create_ircot_chain(retriever, model(*answers)).invoke(QUESTION, {"callbacks": [usage]})
    assert usage.usage_metadata["m-1"]["total_tokens"] == 3 * 34
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (90, 12)


def test_tags_metadata_and_run_name_are_the_users(retriever):
    chain = create_ircot_chain(retriever, model(*IRCOT)).with_config(run_name="atlas", tags=["a"])
    runs = Runs()
    chain.invoke(QUESTION, {"callbacks": [runs]})
    assert runs.begun[0][1] == "atlas"


@pytest.mark.parametrize("native", [False, True])
async def test_trap_inner_runs_of_a_reasoning_retriever_are_its_children(index_of, native):
    runs = Runs()
    retriever = IRCoTRetriever(index=index_of("flat"), llm=model(*IRCOT), k=4)
    found = await _called(retriever, native, runs)
    assert runs.order == [QUESTION, QUESTION, "model", FOLLOW_UP, "model"]
    assert {runs.parents[run_id] for _, _, run_id in runs.begun[1:]} == {runs.begun[0][2]}
    assert runs.found[-1] == found
