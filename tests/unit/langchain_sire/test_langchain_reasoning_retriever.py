"""`IRCoTRetriever` and `SelfAskRetriever`: the evidence of several rounds in the place of a plain retriever's."""

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnablePassthrough
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
    create_sire_tool,
)
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, QueryError
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


async def test_nobody_is_asked_for_a_final_answer(made):
    retriever = made()
    retriever.invoke(QUESTION)
    asked = [entry["messages"][0].content for entry in retriever.llm.log]
    assert asked
    assert not [text for text in asked if "from its numbered passages alone" in text]


async def test_k_and_filter_of_one_call(made):
    for found in (
        made().invoke(QUESTION, k=3, filter={"kind": "person"}),
        await made().ainvoke(QUESTION, k=3, filter="kind=person"),
    ):
        assert [d.metadata["kind"] for d in found] == ["person"] * 3
    people = made(filter={"kind": "person"})
    assert people.invoke(QUESTION, filter={"kind": "ship"}) == []


async def test_questions_that_are_none_and_unknown_arguments_are_errors(made):
    with pytest.raises(QueryError):
        made().invoke("  ")
    with pytest.raises(TypeError, match="no argument 'top_n'"):
        await made().ainvoke(QUESTION, top_n=3)
    with pytest.raises(TypeError, match="has no argument 'search_kw'; did you mean 'search_kwargs'"):
        made(search_kw={})


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


def test_from_documents_thinks_with_the_model_that_extracts(documents):
    chat = model('{"reasoning": "Nothing is missing.", "search": "DONE"}')
    retriever = IRCoTRetriever.from_documents(documents[:6], recipe="flat", llm=chat, k=2)
    assert isinstance(retriever, IRCoTRetriever)
    assert len(retriever.invoke(QUESTION)) == 2
    assert len(chat.log) == 1


def test_no_model_says_what_to_pass(index_of):
    with pytest.raises(ConfigurationError, match=r"needs a language model: pass llm="):
        IRCoTRetriever(index=index_of("flat")).invoke(QUESTION)


def test_configurable_fields_and_batch(made):
    configurable = made(k=4).configurable_fields(k=ConfigurableField(id="k"))
    assert len(configurable.with_config(configurable={"k": 7}).invoke(QUESTION)) == 7
    done = made('{"reasoning": "", "search": "DONE"}', k=2)
    assert done.batch([QUESTION, "Who sang?"]) == [done.invoke(QUESTION), done.invoke("Who sang?")]


async def test_it_takes_the_place_of_a_plain_retriever(made):
    prompt = ChatPromptTemplate.from_template("{context}\nQuestion: {question}")
    rag = {"context": made(k=4), "question": RunnablePassthrough()} | prompt | model("In 1931.") | StrOutputParser()
    assert rag.invoke(QUESTION) == await rag.ainvoke(QUESTION) == "In 1931."


def test_an_agents_tool_may_stand_on_it(made):
    told = create_sire_tool(made(k=4)).invoke({"query": QUESTION, "k": 2})
    assert told.count("[") == 2


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


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_evidence_is_the_users_own_passages_unless_units_are_wanted(index_of, kind):
    form, _, script = KINDS[kind]
    given = {d.id: d.text for d in demo_documents()}
    found = form(index=index_of("sirerag"), llm=model(*script), k=6).invoke(QUESTION)
    assert [d.page_content for d in found] == [given[d.id] for d in found]
    assert len({d.id for d in found}) == 6
    units = form(index=index_of("sirerag"), llm=model(*script), k=6, returns="units").invoke(QUESTION)
    assert {"aggregate", "chunk"} <= {d.metadata["sire"]["kind"] for d in units}


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
