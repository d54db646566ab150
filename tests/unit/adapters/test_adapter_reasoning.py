"""What the reasoning of both adapters promises: chains and query engines, tools for agents, other retrievers."""

import json

import pytest

from sire_core import Index
from sire_core.errors import ConfigurationError, IndexMissingError, ModelError, NoAnswerError, QueryError
from sire_core.models.sync import run_sync
from sire_core.reason import IRCoTConfig, PassageSource, collect, ircot
from sire_core.recipes import REGISTRY
from sire_core.testing.doubles import ScriptedModel

QUESTION = "In which year did the author of the novel The Weather Clerk die?"
FOLLOW_UP = "In which year did Ilse Marrable die?"
THOUGHT = "The Weather Clerk is a novel by Ilse Marrable."
READ = json.dumps({"answer": "In 1931", "citations": [1], "sufficient": True})
SCRIPTS = {
    "ircot": (
        json.dumps({"reasoning": THOUGHT, "search": FOLLOW_UP}),
        json.dumps({"reasoning": "Ilse Marrable died in 1931.", "search": "DONE"}),
        READ,
    ),
    "self-ask": (f"Follow up: {FOLLOW_UP}", "1931", "So the final answer is: 1931", READ),
    "single": (READ,),
}
reasonings = pytest.mark.parametrize("via", ["ircot", "self-ask"])


def plays(*answers):
    """A model that plays these answers, and then again: each is asked in sync and in async."""
    return ScriptedModel(list(answers) * 2)


def ids(answer):
    return [found.id if hasattr(found, "page_content") else found.node_id for found in answer.found]


@pytest.fixture
def retriever(adapter, index_of):
    return adapter.over(index_of(), k=4)


async def test_ircot_thinks_searches_and_answers_with_evidence_and_steps(adapter, retriever):
    answer = await adapter.ask(adapter.reasoner("ircot", retriever, plays(*SCRIPTS["ircot"])), QUESTION)
    assert answer.text == "In 1931 [1]"
    assert len(answer.found) == 10, "as many as the core gives, whatever the retriever's k"
    rest = answer.rest
    assert (rest["stop"], rest["sufficient"], rest["citations"], rest["note"]) == ("done", True, [1], "")
    assert (rest["usage"]["calls"], rest["usage"]["retrievals"]) == (3, 2)
    kinds = [step["type"] for step in rest["steps"]]
    assert kinds == ["retrieved", "thought", "sub_question", "retrieved", "thought", "answer"]
    first, thought, asked, second, _, last = rest["steps"]
    assert (first["query"], first["number"], second["query"]) == (QUESTION, 0, FOLLOW_UP)
    assert thought == {"type": "thought", "number": 1, "text": THOUGHT}
    assert asked == {"type": "sub_question", "number": 1, "text": FOLLOW_UP}
    assert (last["type"], last["text"], last["stop"]) == ("answer", "In 1931 [1]", "done")
    assert {"weather-clerk", "ilse-marrable"} <= set(ids(answer))
    json.dumps(rest["steps"])


def thinking(call):
    """Answers by what it is asked for: recipes may ask the model, too."""
    wanted = (call.schema or {}).get("properties", {})
    if "search" in wanted:
        return SCRIPTS["ircot"][1 if call.fields.get("searched") else 0]
    return READ if "answer" in wanted else "0"


@pytest.mark.quick(recipe=["msrag", "sire", "sirerag"])
@pytest.mark.parametrize("recipe", sorted(REGISTRY))
async def test_the_evidence_is_that_of_the_core(adapter, index_of, recipe):
    index = index_of(recipe)
    answer = await adapter.ask(adapter.reasoner("ircot", adapter.over(index), ScriptedModel(thinking)), QUESTION)
    trace = await collect(ircot(PassageSource(index), QUESTION, model=ScriptedModel(thinking)))
    assert ids(answer) == [hit.unit.source_id for hit in trace.answer.hits]
    assert len(answer.rest["steps"]) == len(trace.steps) == 6


@pytest.mark.parametrize("k", [None, 3])
async def test_the_original_flavor_reads_all_that_it_collects(adapter, index_of, k):
    asked = [THOUGHT, "She was buried with another woman.", "So the answer is: 1931.", READ]
    options = {"flavor": "original", **({} if k is None else {"k": k})}
    reasoner = adapter.reasoner("ircot", adapter.over(index_of(), k=5), plays(*asked), **options)
    answer = await adapter.ask(reasoner, QUESTION)
    core = ircot(PassageSource(index_of()), QUESTION, model=ScriptedModel(asked), config=IRCoTConfig("original"), k=k)
    assert ids(answer) == [hit.unit.source_id for hit in run_sync(collect(core)).answer.hits]
    assert len(answer.found) == 3 if k else 10 < len(answer.found) <= 15
    with pytest.raises((ConfigurationError, QueryError), match=r"k must be .*at least 1"):
        await adapter.ask(adapter.reasoner("ircot", index_of(), plays(READ), k=0), QUESTION)


@reasonings
async def test_the_retrievers_filter_and_a_number_of_passages_hold(adapter, index_of, via):
    people = adapter.over(index_of(), filter={"kind": "person"})
    answer = await adapter.ask(adapter.reasoner(via, people, plays(*SCRIPTS[via]), k=3), QUESTION)
    assert [found.metadata["kind"] for found in answer.found] == ["person"] * 3
    nothing = await adapter.ask(
        adapter.reasoner(via, adapter.over(index_of(), filter="kind=nothing"), plays(READ)), QUESTION
    )
    assert (nothing.rest["stop"], nothing.found) == ("empty_index", [])
    assert nothing.text in ("", "Empty Response")  # LlamaIndex's word for none


async def test_evidence_is_the_users_own_unless_units_are_wanted(adapter, index_of):
    kinds = {}
    for returns in ("passages", "units"):
        source = adapter.over(index_of("sirerag"), returns=returns)
        answer = await adapter.ask(adapter.reasoner("ircot", source, plays(*SCRIPTS["ircot"]), k=6), QUESTION)
        kinds[returns] = {
            found.metadata["sire"]["kind"] if hasattr(found, "page_content") else found.metadata["sire_kind"]
            for found in answer.found
        }
    assert kinds["passages"] == {"chunk"}
    assert "aggregate" in kinds["units"]


@reasonings
async def test_a_model_that_fails_is_an_error_with_the_evidence_or_leaves_it(adapter, retriever, via):
    failing = [ModelError("quota")] * 2
    with pytest.raises(NoAnswerError, match="quota") as caught:
        await adapter.ask(adapter.reasoner(via, retriever, ScriptedModel(list(failing))), QUESTION)
    assert len(caught.value.evidence) == 10
    left = adapter.reasoner(via, retriever, ScriptedModel(list(failing)), on_model_error="return")
    answer = await adapter.ask(left, QUESTION)
    assert (answer.rest["stop"], len(answer.found)) == ("model_failed", 10)
    assert "quota" in answer.rest["note"]
    with pytest.raises(ConfigurationError, match="one of raise, return"):
        adapter.reasoner(via, retriever, plays(READ), on_model_error="ignore")


async def test_without_a_model_the_indexs_own_is_asked_and_limits_hold(adapter, documents):
    own = plays(*SCRIPTS["ircot"])
    with Index(recipe="flat", language_model=own, chunker=None) as index:
        adapter.add(adapter.over(index), *documents)
        assert (await adapter.ask(adapter.reasoner("ircot", index, None), QUESTION)).text == "In 1931 [1]"
        assert len(own.log) == 6
        bounded = await adapter.ask(adapter.reasoner("ircot", index, plays(READ), max_calls=0), QUESTION)
        assert (bounded.rest["stop"], len(bounded.found)) == ("call_limit", 10)


async def test_a_missing_index_and_what_is_no_source_are_errors(adapter, tmp_path):
    with pytest.raises(IndexMissingError):
        await adapter.ask(adapter.reasoner("ircot", Index(tmp_path / "nothing"), plays(READ)), QUESTION)
    with pytest.raises(ConfigurationError, match="str is neither a retriever nor an Index"):
        adapter.reasoner("ircot", "folder", plays(READ))


@reasonings
async def test_what_another_retriever_finds_comes_back_as_it_is(adapter, documents, via):
    words = adapter.words(documents)
    answer = await adapter.ask(adapter.reasoner(via, words, plays(*SCRIPTS[via]), k=4), QUESTION)
    assert words.asked == [QUESTION, FOLLOW_UP] * 2
    assert len(set(ids(answer))) == len(answer.found) == 4
    given = dict(zip([d.id if hasattr(d, "page_content") else d.node_id for d in documents], documents, strict=True))
    assert [found if hasattr(found, "page_content") else found.node for found in answer.found] == [
        given[name] for name in ids(answer)
    ]
    assert answer.text == "In 1931 [1]"


SEARCH = ["query", "k", "filter", "as_of", "max_tokens"]
ASK = ["query", "k", "filter", "as_of", "show_steps"]


@pytest.fixture
def tool(adapter, index_of):
    return adapter.package.create_sire_tool(adapter.over(index_of("sirerag"), k=3), "atlas", "Knows the islands.")


def answering(adapter, source, via="ircot", script=None, **options):
    return adapter.package.create_sire_answer_tool(source, plays(*(script or SCRIPTS[via])), via=via, **options)


def test_a_model_is_shown_the_arguments_of_a_search_or_a_question_only(adapter, tool, retriever):
    named = answering(adapter, retriever, name="atlas", description="Knows the islands.")
    for shown, arguments in ((tool, SEARCH), (named, ASK)):
        name, description, parameters = adapter.offered(shown)
        assert (name, description) == ("atlas", "Knows the islands.")
        assert (list(parameters["properties"]), parameters["required"]) == (arguments, arguments[:1])


async def test_text_is_cited_and_what_was_found_is_the_raw_result(adapter, tool, index_of, question):
    content, found = await adapter.call(tool, query=question, k=2)
    assert found == adapter.search(adapter.over(index_of("sirerag")), question, k=2)
    first, second = content.split("\n\n[")
    assert first.startswith(f"[{', '.join(found[0].doc_ids)}] {found[0].text[:20]}")
    assert second.startswith(", ".join(found[1].doc_ids))
    assert "sire_" not in content
    _, people = await adapter.call(tool, query=question, k=7, filter={"kind": "person"})
    assert [hit.metadata["kind"] for hit in people] == ["person"] * 7
    assert len((await adapter.call(tool, query=question, filter="kind=person"))[1]) == 3
    for words in ({"query": question, "top_k": 2}, {"question": question, "limit": 2}):  # other usual names
        assert await adapter.call(tool, **words) == (content, found)


async def test_a_model_narrows_and_never_widens(adapter, index_of):
    mine = adapter.over(index_of(), filter={"kind": "person"})
    searched = await adapter.call(adapter.package.create_sire_tool(mine), query=QUESTION, filter={"kind": "ship"})
    assert searched[0].startswith("Nothing was found.")
    assert searched[1] == []
    _, found = await adapter.call(answering(adapter, mine, "single"), question=QUESTION, k=2, filter="kind=person")
    assert [hit.metadata["kind"] for hit in found] == ["person"] * 2
    asked = await adapter.call(answering(adapter, mine, "single"), query=QUESTION, filter={"kind": "ship"})
    assert asked == ("No answer.\n\nOutcome: unanswered. The evidence is sufficient: no (stopped by empty_index).", [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": "who", "k": 0}, "k must be at least 1"),
        ({"query": "who", "k": 1000}, "k must be at most 50"),
        ({"query": "who", "k": "many"}, "k must be a whole number"),
        ({"query": "who", "top_k": 1000}, "k must be at most 50"),
        ({"query": "who", "depth": 3}, "there is no argument depth"),
        ({"k": 3}, "query is missing"),
        ({"query": "   "}, "is empty"),
        ({"question": "who", "k": 0}, "k must be at least 1"),
        ({"question": "who", "via": "ircot"}, "there is no argument via"),
        ({}, "query is missing"),
        ({"question": "   "}, "is empty"),
    ],
)
async def test_wrong_arguments_are_told_in_our_words_and_ask_nobody(adapter, tool, retriever, arguments, words):
    model = plays(READ)
    searches = "query" in arguments or arguments == {"k": 3}
    wrong = tool if searches else adapter.package.create_sire_answer_tool(retriever, model)
    said = await adapter.mistake(wrong, **arguments)
    assert words in said
    assert "pydantic" not in said
    assert model.log == []


@pytest.mark.parametrize("via", ["ircot", "self-ask", "single", "a reasoner of its own"])
async def test_a_short_answer_with_its_sources(adapter, index_of, via):
    """All tools call it a query; a `question` is read as one."""
    source = adapter.over(index_of(), k=10)
    if via in SCRIPTS:
        made = answering(adapter, source, via)
    else:
        made = adapter.package.create_sire_answer_tool(adapter.reasoner("ircot", source, plays(*SCRIPTS["ircot"])))
    content, found = await adapter.call(made, **{"question" if via == "single" else "query": QUESTION})
    (name,) = found[0].doc_ids
    assert content.split("\n\n") == [
        f"In 1931 [{name}]",
        f"Sources:\n[{name}] {found[0].metadata['title']}",
        "Outcome: answered. The evidence is sufficient: yes.",
    ]


async def test_steps_on_request_and_evidence_that_does_not_suffice(adapter, retriever):
    content, _ = await adapter.call(answering(adapter, retriever), question=QUESTION, show_steps=True)
    steps = content.split("Steps:\n")[1].splitlines()
    assert steps[1:3] == [f"2. {THOUGHT}", f"3. Searching: {FOLLOW_UP}"]
    nothing = json.dumps({"answer": "insufficient evidence", "citations": [], "sufficient": False})
    content, _ = await adapter.call(answering(adapter, retriever, "single", [nothing]), question=QUESTION)
    assert content.startswith("insufficient evidence\n\nRead, but not cited:\n[")
    assert content.endswith("Outcome: unanswered. The evidence is sufficient: no (stopped by done).")


def test_tools_that_cannot_be_made(adapter, retriever):
    own = adapter.reasoner("ircot", retriever, plays(READ))
    with pytest.raises(ConfigurationError, match=r"The (chain|engine) has its own llm"):
        adapter.package.create_sire_answer_tool(own, plays(READ))
    with pytest.raises(ConfigurationError, match="via is one of single, ircot, self-ask"):
        answering(adapter, retriever, via="magic", script=[READ])
    with pytest.raises(ConfigurationError, match="str is neither a retriever nor an Index"):
        adapter.package.create_sire_answer_tool("folder", plays(READ))
    with pytest.raises(ConfigurationError, match=r"str is (no SireRetriever|neither a SireRetriever nor an Index)"):
        adapter.package.create_sire_tool("folder")
