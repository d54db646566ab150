"""Chains and retrievers that reason: results, options, traces."""

import json
from functools import reduce
from operator import add

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from langchain_sire import (
    IRCoTRetriever,
    SelfAskRetriever,
    SireRetriever,
    create_ircot_chain,
    create_self_ask_chain,
    create_sire_answer_tool,
)
from sire_core import Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, ModelError, NoAnswerError, QueryError
from support.langchain_chat import model, says
from support.langchain_runs import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK, Runs, asking

MAKERS = {"ircot": (create_ircot_chain, IRCOT), "self-ask": (create_self_ask_chain, SELF_ASK)}


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of("flat"), k=4)


@pytest.fixture(params=sorted(MAKERS))
def made(request, retriever):
    """A maker of chains and its script."""
    make, script = MAKERS[request.param]
    return lambda *answers, **options: make(retriever, model(*(answers or script)), **options)


async def test_every_way_to_call_gives_the_same(made):
    result = made().invoke(QUESTION)
    assert result["answer"] == "In 1931 [1]"
    assert result["citations"] == [1]
    assert result["sufficient"] is True
    assert result["question"] == QUESTION
    assert result["note"] == ""
    assert len(result["documents"]) == 10, "as many as the core gives, whatever the retriever's k"
    assert all(isinstance(document, Document) for document in result["documents"])
    assert result["usage"]["retrievals"] == 2
    assert type(result) is dict
    assert await made().ainvoke(QUESTION) == result
    # What is streamed is plain JSON, and adds up to the same.
    for chunks in (list(made().stream(QUESTION)), [chunk async for chunk in made().astream(QUESTION)]):
        assert [json.loads(json.dumps(chunk)) for chunk in chunks] == chunks
        streamed = dict(reduce(add, chunks))
        assert streamed | {"documents": [Document(**plain) for plain in streamed["documents"]]} == result
    # The next step of a chain gets documents, whether it is streamed or not.
    first = RunnableLambda(lambda found: found["documents"][0])
    assert (made() | first).invoke(QUESTION) == result["documents"][0]
    assert list((made() | first).stream(QUESTION)) == result["documents"][:1]
    assert made(*IRCOT).batch([]) == []


@pytest.mark.parametrize("given", ["", "  ", {"text": "who"}, {"question": ""}, {"question": 3}, 3, None, []])
async def test_what_is_no_question_is_a_clear_error_and_asks_nobody(retriever, given):
    chat = model(*IRCOT)
    chain = create_ircot_chain(retriever, chat)
    with pytest.raises(QueryError):
        chain.invoke(given)
    with pytest.raises(QueryError):
        await chain.ainvoke(given)
    assert chat.log == []


async def test_it_composes_with_other_runnables(made):
    short = RunnableLambda(lambda text: {"input": text}) | made() | (lambda result: result["answer"])
    assert short.invoke(QUESTION) == await short.ainvoke(QUESTION) == "In 1931 [1]"
    assert made().pick("answer").invoke(QUESTION) == "In 1931 [1]"
    picked = list(made().pick("steps").stream(QUESTION))
    assert len(picked) >= 5
    pieces = list(made().transform(iter(["In which year did the author of ", "the novel The Weather Clerk die?"])))
    assert reduce(add, pieces)["question"] == QUESTION


@pytest.mark.parametrize("make", [create_ircot_chain, create_self_ask_chain])
def test_unknown_options_are_refused_with_the_known_ones(retriever, make):
    with pytest.raises(
        ConfigurationError, match=r"has no option flavour, max_hops; its options are .*max_calls.*search_k"
    ):
        make(retriever, model("x"), flavour="x", max_hops=2)
    with pytest.raises(ConfigurationError, match="str is neither"):
        make("folder", model("x"))


async def test_k_and_filter_of_one_call_work_in_every_way(made, retriever):
    for result in (
        made().invoke(QUESTION, k=2, filter={"kind": "person"}),
        await made().ainvoke(QUESTION, k=2, filter="kind=person"),
        made().bind(k=2, filter={"kind": "person"}).invoke(QUESTION),
        made().bind(k=3).invoke({"question": QUESTION, "k": 2, "filter": "kind=person", "as_of": None}),
        made().bind(filter="kind=person").invoke({"input": QUESTION, "k": 2, "filter": "kind in [person, book]"}),
    ):
        assert len(result["documents"]) == 2
        assert {d.metadata["kind"] for d in result["documents"]} == {"person"}
    streamed = reduce(add, made().stream(QUESTION, k=2, filter={"kind": "person"}))
    assert [plain["metadata"]["kind"] for plain in streamed["documents"]] == ["person"] * 2
    with pytest.raises(TypeError, match="top_k"):
        made().invoke(QUESTION, top_k=2)
    for key in ("filtr", "Filter"):
        with pytest.raises(ConfigurationError, match=f"unknown key '{key}'; did you mean 'filter'"):
            await made().ainvoke({"question": QUESTION, key: "kind=person"})
    with pytest.raises(ConfigurationError, match=r"unknown key 'anything'; a chain reads question, .*filter"):
        made().invoke({"question": QUESTION, "anything": 1})
    with pytest.raises(TypeError, match="top_k"):
        await made().ainvoke(QUESTION, top_k=2)


@pytest.mark.parametrize("make", [create_ircot_chain, create_self_ask_chain])
def test_a_model_that_fails_in_a_stream_is_an_error_and_fallbacks_fire(retriever, make):
    failing = make(retriever, model(ValueError("quota")))
    with pytest.raises(NoAnswerError, match="quota") as caught:
        list(failing.stream(QUESTION))
    assert all(isinstance(found, Document) for found in caught.value.evidence)
    other = create_ircot_chain(retriever, model(*IRCOT))
    assert failing.with_fallbacks([other]).invoke(QUESTION)["answer"] == "In 1931 [1]"


@pytest.mark.parametrize("kind", [IRCoTRetriever, SelfAskRetriever])
def test_a_retriever_whose_model_fails_raises_or_returns_the_evidence(retriever, kind):
    settings = {"index": retriever.index, "k": 2}
    with pytest.raises(NoAnswerError, match="quota") as caught:
        kind(llm=model(ValueError("quota")), **settings).invoke(QUESTION)
    options = {"on_model_error": "return"}
    found = kind(llm=model(ValueError("quota")), options=options, **settings).invoke(QUESTION)
    assert [document.id for document in caught.value.evidence] == [document.id for document in found]
    assert len(found) == 2


def test_an_agent_reads_why_there_is_no_answer(retriever):
    tool = create_sire_answer_tool(create_ircot_chain(retriever, model(ValueError("quota"))))
    assert "quota" in tool.invoke({"question": QUESTION})


def test_it_can_be_looked_at(retriever):
    chain = create_ircot_chain(retriever, model("x"), flavor="hipporag", max_calls=3)
    assert "IRCoT" in repr(chain)
    assert "hipporag" in repr(chain)
    assert {part["type"] for part in chain.get_input_jsonschema()["anyOf"]} == {"string", "object"}
    assert chain.get_output_jsonschema()["type"] == "object"
    assert chain.get_graph().draw_mermaid()


KINDS = {
    "ircot": (IRCoTRetriever, create_ircot_chain, IRCOT),
    "self-ask": (SelfAskRetriever, create_self_ask_chain, SELF_ASK),
}


@pytest.fixture(params=sorted(KINDS))
def made_retriever(request, index_of):
    """A maker of retrievers, with its chain and its script."""
    form, chain, script = KINDS[request.param]

    def make(*answers, **more):
        return form(index=index_of("flat"), llm=model(*(answers or script)), **more)

    make.chain = lambda **options: chain(SireRetriever(index=index_of("flat"), k=4), model(*script), **options)
    return make


def test_options_are_those_of_the_chain_and_checked_at_once(made_retriever, index_of):
    with pytest.raises((ValidationError, ConfigurationError), match="has no option flavour"):
        made_retriever(options={"flavour": "x"})
    retriever = made_retriever(options={"max_calls": 1})
    retriever.invoke(QUESTION)
    assert len(retriever.llm.log) == 1


async def test_steps_are_custom_events(made_retriever):
    events = [
        e async for e in made_retriever(k=4).astream_events(QUESTION, version="v2") if e["event"] == "on_custom_event"
    ]
    assert {event["name"] for event in events} == {"sire_step"}
    types = [event["data"]["type"] for event in events]
    assert types[:1] + types[-1:] == ["retrieved", "answer"]
    assert FOLLOW_UP in [event["data"].get("text") for event in events]


_INDEX = Index(recipe="flat")
_INDEX.build(demo_documents())


def _suite(form, answer):
    properties = {
        "retriever_constructor": property(lambda _: form),
        "retriever_constructor_params": property(lambda _: {"index": _INDEX, "llm": model(answer)}),
        "retriever_query_example": property(lambda _: "Who commanded the Northern Wren?"),
    }
    return type("Suite", (RetrieversIntegrationTests,), properties)


TestIRCoTRetriever = _suite(IRCoTRetriever, '{"reasoning": "Emil Trask wrote of it.", "search": "Who was Emil Trask?"}')
TestIRCoTRetrieverWithoutSense = _suite(IRCoTRetriever, "Well, {the passage")
TestSelfAskRetriever = _suite(SelfAskRetriever, "Follow up: Who was Emil Trask?")


async def test_a_filter_under_another_word_narrows_and_options_set_k(made_retriever):
    for found in (
        made_retriever().invoke(QUESTION, filters={"kind": "person"}),
        await made_retriever().ainvoke(QUESTION, filters="kind=person"),
    ):
        assert {d.metadata["kind"] for d in found} == {"person"}
    assert len(made_retriever(options={"k": 9}).invoke(QUESTION)) == 9
    assert len(await made_retriever(options={"k": 9}).ainvoke(QUESTION)) == 9
    assert len(made_retriever(options={"k": 9}).invoke(QUESTION, top_k=2)) == 2, "a call has the last word"
    assert len(made_retriever(options={"k": 9}).invoke(QUESTION, k=None)) == 9


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
async def test_errors_end_the_runs_that_are_open(native):
    runs = Runs()
    with pytest.raises(ModelError):
        await _called(
            create_ircot_chain(
                asking(model(ValueError("quota")), ["Ilse Marrable wrote it.", "1931."], 2), model(*IRCOT)
            ),
            native,
            runs,
        )
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


def test_from_documents_takes_the_fields_of_the_class(documents):
    chat = model('{"reasoning": "Nothing is missing.", "search": "DONE"}')
    retriever = IRCoTRetriever.from_documents(documents[:6], recipe="flat", llm=chat, options={"k": 3, "max_steps": 1})
    assert len(retriever.invoke(QUESTION)) == 3
    with pytest.raises(TypeError, match="no argument 'options'"):
        SireRetriever.from_documents(documents[:6], recipe="flat", options={})


def test_without_a_number_a_strategy_reads_what_the_core_reads(made_retriever, tmp_path):
    assert made_retriever().invoke(QUESTION) == made_retriever.chain().invoke(QUESTION)["documents"]
    assert len(made_retriever().invoke(QUESTION)) == 10
    assert len(made_retriever().as_retriever(filter={"kind": "person"}).invoke(QUESTION)) == 10
    assert (
        len(made_retriever().as_retriever(k=3).invoke(QUESTION))
        == len(made_retriever(search_kwargs={"top_k": 3}).invoke(QUESTION))
        == 3
    )
    made_retriever().save(tmp_path / "ten")
    loaded = IRCoTRetriever.load(tmp_path / "ten", llm=model(*IRCOT))
    assert len(loaded.invoke(QUESTION)) == 10
    SireRetriever.load(tmp_path / "ten", k=3).save(tmp_path / "three")
    assert len(IRCoTRetriever.load(tmp_path / "three", llm=model(*IRCOT)).invoke(QUESTION)) == 3
