"""`IRCoTRetriever` and `SelfAskRetriever`: the evidence of several rounds in the place of a plain retriever's."""

import pytest
from langchain_reasoning import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK
from langchain_scripted_chat import model
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from langchain_sire import (
    IRCoTRetriever,
    SelfAskRetriever,
    SireRetriever,
    create_ircot_chain,
    create_self_ask_chain,
)
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.reason import IRCoTConfig, PassageSource, collect, ircot
from sire_core.testing.doubles import ScriptedModel

KINDS = {
    "ircot": (IRCoTRetriever, create_ircot_chain, IRCOT),
    "self-ask": (SelfAskRetriever, create_self_ask_chain, SELF_ASK),
}


@pytest.fixture(params=sorted(KINDS))
def made(request, index_of):
    """A maker of retrievers, with its chain and its script."""
    form, chain, script = KINDS[request.param]

    def make(*answers, **more):
        return form(index=index_of("flat"), llm=model(*(answers or script)), **more)

    make.chain = lambda **options: chain(SireRetriever(index=index_of("flat"), k=4), model(*script), **options)
    return make


async def test_the_evidence_is_the_chains(made):
    found = made(k=4).invoke(QUESTION)
    assert found == made.chain(k=4).invoke(QUESTION)["documents"]
    assert await made(k=4).ainvoke(QUESTION) == found
    assert {"weather-clerk", "ilse-marrable"} <= {d.metadata["sire"]["doc_ids"][0] for d in found}


def test_without_a_number_a_strategy_reads_what_the_core_reads(made, tmp_path):
    assert made().invoke(QUESTION) == made.chain().invoke(QUESTION)["documents"]
    assert len(made().invoke(QUESTION)) == 10
    assert len(made().as_retriever(filter={"kind": "person"}).invoke(QUESTION)) == 10
    assert len(made().as_retriever(k=3).invoke(QUESTION)) == len(made(search_kwargs={"top_k": 3}).invoke(QUESTION)) == 3
    made().save(tmp_path / "ten")
    loaded = IRCoTRetriever.load(tmp_path / "ten", llm=model(*IRCOT))
    assert len(loaded.invoke(QUESTION)) == 10
    SireRetriever.load(tmp_path / "ten", k=3).save(tmp_path / "three")
    assert len(IRCoTRetriever.load(tmp_path / "three", llm=model(*IRCOT)).invoke(QUESTION)) == 3


@pytest.mark.parametrize("k", [None, 3])
def test_the_original_flavor_reads_all_that_it_collects(index_of, k):
    asked = ["Ilse Marrable wrote The Weather Clerk.", "She was buried with another woman.", "So the answer is: 1931."]
    options = {"flavor": "original", **({} if k is None else {"k": k})}
    index = index_of("flat")
    trace = run_sync(
        collect(
            ircot(
                PassageSource(index),
                QUESTION,
                model=ScriptedModel(asked),
                config=IRCoTConfig("original"),
                k=k,
                answer=False,
            )
        )
    )
    found = IRCoTRetriever(index=index, llm=model(*asked), options=options).invoke(QUESTION)
    assert [document.id for document in found] == [hit.unit.source_id for hit in trace.answer.hits]
    assert len(found) == 3 if k else 10 < len(found) <= 15
    chain = create_ircot_chain(
        SireRetriever(index=index, k=4),
        model(*asked, '{"answer": "1931 [1]", "citations": [1], "sufficient": true}'),
        **options,
    )
    assert [document.id for document in chain.invoke(QUESTION)["documents"]] == [document.id for document in found]


def test_options_are_those_of_the_chain_and_checked_at_once(made, index_of):
    with pytest.raises((ValidationError, ConfigurationError), match="has no option flavour"):
        made(options={"flavour": "x"})
    retriever = made(options={"max_calls": 1})
    retriever.invoke(QUESTION)
    assert len(retriever.llm.log) == 1


async def test_steps_are_custom_events(made):
    events = [e async for e in made(k=4).astream_events(QUESTION, version="v2") if e["event"] == "on_custom_event"]
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


async def test_a_filter_under_another_word_narrows_and_options_set_k(made):
    for found in (
        made().invoke(QUESTION, filters={"kind": "person"}),
        await made().ainvoke(QUESTION, filters="kind=person"),
    ):
        assert {d.metadata["kind"] for d in found} == {"person"}
    assert len(made(options={"k": 9}).invoke(QUESTION)) == 9
    assert len(await made(options={"k": 9}).ainvoke(QUESTION)) == 9
    assert len(made(options={"k": 9}).invoke(QUESTION, top_k=2)) == 2, "a call has the last word"
    assert len(made(options={"k": 9}).invoke(QUESTION, k=None)) == 9


def test_from_documents_takes_the_fields_of_the_class(documents):
    chat = model('{"reasoning": "Nothing is missing.", "search": "DONE"}')
    retriever = IRCoTRetriever.from_documents(documents[:6], recipe="flat", llm=chat, options={"k": 3, "max_steps": 1})
    assert len(retriever.invoke(QUESTION)) == 3
    with pytest.raises(TypeError, match="no argument 'options'"):
        SireRetriever.from_documents(documents[:6], recipe="flat", options={})
