"""The graphs of LangGraph: nodes, state, checkpoints, edited queries, streams."""

import json

import pytest
from langchain_core.documents import Document

from langchain_sire import (
    SireRetriever,
    create_ircot_chain,
    create_ircot_graph,
    create_self_ask_chain,
    create_self_ask_graph,
)
from sire_core import Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, QueryError
from sire_core.extraction.rules import RulesExtractor
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script
from support.langchain_chat import model
from support.langchain_runs import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK, Runs, asking

memory = pytest.importorskip("langgraph.checkpoint.memory", reason="the langgraph extra is missing")

THREAD = {"configurable": {"thread_id": "1"}}
FLAVORS = {
    "indexrag": IRCOT,
    "hipporag": ("The Weather Clerk is by Ilse Marrable.", "So the answer is: 1931.", IRCOT[2]),
    "original": (
        "The Weather Clerk is by Ilse Marrable.",
        "Thus she died in 1931.",
        "So the answer is: 1931.",
        IRCOT[2],
    ),
}


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of("flat"), k=4)


def _state(result):
    """What a chain returned, as the graph's state says it."""
    documents = [{"id": d.id, "page_content": d.page_content, "metadata": d.metadata} for d in result["documents"]]
    return {**result, "documents": documents}


TWO_CALL = ('{"followups": [{"q": "Who wrote it?", "a": "Ilse Marrable"}]}', SELF_ASK[-1])
IRCOTS = [(create_ircot_chain, create_ircot_graph, FLAVORS[name], {"flavor": name}) for name in sorted(FLAVORS)]
SELF_ASKS = [
    (create_self_ask_chain, create_self_ask_graph, SELF_ASK, {"mode": "search"}),
    (create_self_ask_chain, create_self_ask_graph, TWO_CALL, {"mode": "two_call"}),
]


@pytest.mark.parametrize(("make_chain", "make_graph", "script", "options"), IRCOTS + SELF_ASKS)
async def test_the_state_ends_as_what_the_chain_returns(retriever, make_chain, make_graph, script, options):
    expected = _state(make_chain(retriever, model(*script), **options).invoke(QUESTION))
    chat = model(*script)
    sync = make_graph(retriever, chat, **options).invoke({"question": QUESTION})
    assert await make_graph(retriever, model(*script), **options).ainvoke({"question": QUESTION}) == sync
    assert {key: sync[key] for key in expected} == expected
    assert json.loads(json.dumps(sync)) == sync
    assert len(chat.log) == len(script) == expected["usage"]["calls"]


def test_a_node_makes_one_call_at_most_and_shows_its_work(retriever):
    chat = model(*IRCOT)
    nodes = []
    for update in create_ircot_graph(retriever, chat).stream({"question": QUESTION}, stream_mode="updates"):
        ((name, state),) = update.items()
        nodes.append((name, state["query"], len(state["steps"]), len(chat.log)))
    assert nodes == [
        ("retrieve", "", 1, 0),
        ("think", FOLLOW_UP, 3, 1),
        ("retrieve", "", 4, 1),
        ("think", "", 5, 2),
        ("answer", "", 6, 3),
    ]


@pytest.mark.parametrize(("flavor", "native"), [("indexrag", False), ("hipporag", True), ("original", False)])
async def test_an_interrupted_run_resumes_without_a_repeated_call(retriever, flavor, native):
    script = FLAVORS[flavor]
    expected = _state(create_ircot_chain(retriever, model(*script), flavor=flavor).invoke(QUESTION))
    saver, chat = memory.InMemorySaver(), model(*script)
    stops = 0
    given = {"question": QUESTION}
    while True:
        # A graph of its own each time: all that is carried over is the checkpoint.
        graph = create_ircot_graph(
            retriever, chat, flavor=flavor, checkpointer=saver, interrupt_after=["retrieve", "think"]
        )
        state = await graph.ainvoke(given, THREAD) if native else graph.invoke(given, THREAD)
        assert json.loads(json.dumps(graph.get_state(THREAD).values)) == graph.get_state(THREAD).values
        if not graph.get_state(THREAD).next:
            break
        given, stops = None, stops + 1
    assert stops >= 4
    assert len(chat.log) == len(script)
    assert {key: state[key] for key in expected} == expected


def test_models_that_rankers_ask_are_not_asked_again_either():
    ranks, chat, saver = model("1931"), model(*IRCOT), memory.InMemorySaver()
    retriever = asking(ranks, ["Ilse Marrable wrote it.", "1931."], 2)
    given = {"question": QUESTION}
    while True:
        graph = create_ircot_graph(retriever, chat, checkpointer=saver, interrupt_after=["retrieve", "think"])
        state = graph.invoke(given, THREAD)
        if not graph.get_state(THREAD).next:
            break
        given = None
    assert state["usage"]["retrievals"] == len(ranks.log) == 2
    assert len(chat.log) == 3


def test_another_question_on_the_same_thread_begins_anew(retriever):
    chat = model(*IRCOT, '{"reasoning": "", "search": "DONE"}', '{"answer": "", "sufficient": false}')
    graph = create_ircot_graph(retriever, chat, checkpointer=memory.InMemorySaver())
    assert graph.invoke({"question": QUESTION}, THREAD)["answer"] == "In 1931 [1]"
    state = graph.invoke({"question": "Who commanded the Northern Wren?"}, THREAD)
    assert (state["answer"], state["sufficient"], state["stop"]) == ("insufficient evidence", False, "done")
    assert state["steps"][0]["query"] == "Who commanded the Northern Wren?"
    assert len(state["steps"]) == 2
    assert len(state["replies"]["model"]) == 2


def test_a_resumed_run_sees_the_index_as_it_is():
    index = SireRetriever.from_documents(
        [Document(id=d.id, page_content=d.text) for d in demo_documents()], recipe="flat", k=4
    ).index
    saver, chat = memory.InMemorySaver(), model(*IRCOT)
    graph = create_ircot_graph(index, chat, checkpointer=saver, interrupt_after=["think"])
    graph.invoke({"question": QUESTION}, THREAD)
    index.delete(["weather-clerk"])
    resumed = create_ircot_graph(index, chat, checkpointer=saver)
    state = resumed.invoke(None, THREAD)
    assert len(chat.log) == 3
    assert "weather-clerk" not in json.dumps(state["documents"])
    assert "weather-clerk" not in json.dumps(state["steps"])


@pytest.mark.parametrize("native", [False, True])
async def test_each_call_and_search_is_traced_once(retriever, native):
    runs = Runs()
    graph = create_ircot_graph(retriever, model(*IRCOT))
    config = {"callbacks": [runs]}
    given = {"question": QUESTION}
    assert await graph.ainvoke(given, config) if native else graph.invoke(given, config)
    assert [name for name in runs.order if name != "chain"] == [QUESTION, "model", FOLLOW_UP, "model", "model"]
    names = {run_id: name for _, name, run_id in runs.begun}
    nodes = [names[runs.parents[run_id]] for kind, _, run_id in runs.begun if kind != "chain"]
    assert nodes == ["retrieve", "think", "retrieve", "think", "answer"]


@pytest.mark.parametrize("make", [create_ircot_graph, create_self_ask_graph])
def test_a_filter_beside_the_question_holds_in_every_node_and_until_another(retriever, make):
    script = IRCOT if make is create_ircot_graph else SELF_ASK
    graph = make(retriever, model(*script * 3), checkpointer=memory.InMemorySaver())
    for more in ({"filter": "kind=person", "k": 2}, {}, {"filter": "kind=work"}):
        state = graph.invoke({"question": QUESTION, **more}, THREAD)
        searched = [document for step in state["steps"] for document in step.get("documents", ())]
        kinds = {document["metadata"]["kind"] for document in [*searched, *state["documents"]]}
        assert kinds == {"work" if more == {"filter": "kind=work"} else "person"}
        assert len(state["documents"]) == 2


def test_unknown_options_and_missing_questions_are_errors(retriever):
    with pytest.raises(ConfigurationError, match="has no option flavour"):
        create_ircot_graph(retriever, model("x"), flavour="x")
    for create in (create_ircot_graph, create_self_ask_graph):
        with pytest.raises(ConfigurationError, match="A graph takes no on_model_error"):
            create(retriever, model("x"), on_model_error="raise")
    with pytest.raises(ConfigurationError, match=r"needs a language model: pass llm="):
        create_ircot_graph(retriever).invoke({"question": QUESTION})
    with pytest.raises(QueryError):
        create_ircot_graph(retriever, model("x")).invoke({"question": " "})


def test_callers_see_what_they_give_and_get(retriever):
    graph = create_ircot_graph(retriever, model("x"))
    assert set(graph.get_input_jsonschema()["properties"]) == {"question", "k", "filter", "as_of"}
    assert {"answer", "documents", "citations", "stop", "steps"} <= set(graph.get_output_jsonschema()["properties"])
    assert set(graph.get_graph().nodes) == {"__start__", "retrieve", "think", "answer", "__end__"}


BETTER = "When was the burial of Ilse Marrable?"


@pytest.mark.parametrize(
    ("make", "script", "options"),
    [
        (create_ircot_graph, IRCOT, {}),
        (create_ircot_graph, ("Ilse Marrable wrote it.", "So the answer is: 1931.", IRCOT[2]), {"flavor": "hipporag"}),
        (create_self_ask_graph, SELF_ASK, {}),
    ],
)
async def test_an_edited_query_is_what_is_searched_for(retriever, make, script, options):
    chat, saver = model(*script), memory.InMemorySaver()
    graph = make(retriever, chat, checkpointer=saver, interrupt_before=["retrieve"], **options)
    graph.invoke({"question": QUESTION}, THREAD)
    graph.invoke(None, THREAD)
    graph.update_state(THREAD, {"query": BETTER})
    # Another process goes on from the checkpoint.
    graph = make(retriever, chat, checkpointer=saver, **options)
    state = graph.invoke(None, THREAD)
    searched = [step["query"] for step in state["steps"] if step["type"] == "retrieved"]
    assert searched == [QUESTION, BETTER]
    assert [step["text"] for step in state["steps"] if step["type"] == "sub_question"] == [BETTER]
    found = next(step for step in state["steps"] if step["type"] == "retrieved" and step["number"] == 1)
    expected = [document.id for document in retriever.invoke(BETTER, k=len(found["documents"]))]
    assert [document["id"] for document in found["documents"]] == expected
    assert state["answer"] == "In 1931 [1]"
    assert len(chat.log) == len(script)
    if make is create_self_ask_graph:  # what is read is the answer to the edited question
        assert BETTER in str(chat.log[1]["messages"])
        assert state["steps"][3]["question"] == BETTER


def test_an_empty_edit_is_refused_and_loses_nothing(retriever):
    graph = create_ircot_graph(
        retriever, model(*IRCOT), checkpointer=memory.InMemorySaver(), interrupt_before=["retrieve"]
    )
    graph.invoke({"question": QUESTION}, THREAD)
    graph.invoke(None, THREAD)
    graph.update_state(THREAD, {"query": "  "})
    with pytest.raises(QueryError, match="The query that is to be searched for next is empty"):
        graph.invoke(None, THREAD)
    graph.update_state(THREAD, {"query": BETTER})
    assert graph.invoke(None, THREAD)["answer"] == "In 1931 [1]"


async def gather(parts):
    return [part async for part in parts]


@pytest.mark.parametrize("native", [False, True])
async def test_pieces_come_before_the_node_ends(retriever, native):
    expected = create_ircot_graph(retriever, model(*IRCOT)).invoke({"question": QUESTION})
    graph = create_ircot_graph(retriever, ScriptedModel(IRCOT), stream_answer=True)
    options = {"stream_mode": ["updates", "custom", "values"]}
    if native:
        seen = await gather(graph.astream({"question": QUESTION}, **options))
    else:
        seen = list(graph.stream({"question": QUESTION}, **options))
    pieces = [data["answer"] for mode, data in seen if mode == "custom"]
    assert pieces == ["In", " 1931", " [1]"]
    modes = [mode for mode, _ in seen]
    assert modes.index("custom") < max(place for place, mode in enumerate(modes) if mode == "updates")
    state = seen[-1][1]
    told = {key: value for key, value in state.items() if key not in ("usage", "replies")}
    assert told == {key: expected[key] for key in told}


def reports(call):
    """Plays a model that writes reports, thinks one step and answers with a finding."""
    asked = json.dumps(call.schema or {})
    if "explanation" in asked:
        finding = {"id": 1, "summary": "Ilse Marrable directed it.", "explanation": ""}
        return json.dumps({"title": "Films", "summary": "Who made them.", "findings": [finding]})
    if "sufficient" in asked:
        shown = json.loads(call.input)["passages"]
        first = next(passage["number"] for passage in shown if "\n[1] " in passage["text"])
        answer = {"answer": "In 1931", "citations": [first], "findings": [f"{first}.1"], "sufficient": True}
        return json.dumps(answer)
    return '{"reasoning": "It is known.", "search": "DONE"}' if "search" in asked else default_script(call)


def test_an_answer_over_reports_is_a_node_of_its_own_too():
    reader = ScriptedModel(reports)
    index = Index(recipe="smart", embedder=HashEmbedder(), extractor=RulesExtractor(), language_model=reader)
    index.build(demo_documents())
    graph = create_ircot_graph(
        SireRetriever(index=index, k=6, returns="units"),
        reader,
        stream_answer=True,
        checkpointer=memory.InMemorySaver(),
        interrupt_before=["answer"],
    )
    graph.invoke({"question": "In which year did Ilse Marrable, who made the films, die?"}, THREAD)
    assert graph.get_state(THREAD).next == ("answer",)
    pieces = [piece["answer"] for piece in graph.stream(None, THREAD, stream_mode="custom")]
    assert "".join(pieces).startswith("In 1931")
    assert len(graph.get_state(THREAD).values["findings"]) == 1, "reports were read"


@pytest.mark.parametrize("key", ["fitler", "Filter", "filters", "as-of", "top_k", "questions"])
async def test_a_misspelled_key_of_the_input_is_refused(retriever, key):
    graph = create_ircot_graph(retriever, model(*IRCOT))
    for given in ({"question": QUESTION, key: "kind=nothing"}, {"question": QUESTION, "k": 2, key: None}):
        with pytest.raises(ConfigurationError, match=f"the key '{key}', which a graph would ignore; did you mean"):
            graph.invoke(given)
        with pytest.raises(ConfigurationError, match="It reads question, k, filter, as_of"):
            await graph.ainvoke(given)


@pytest.mark.parametrize("key", ["input", "query"])
def test_a_question_under_a_key_of_chains_is_refused(retriever, key):
    with pytest.raises(ConfigurationError, match=f"'{key}', which a graph would ignore; did you mean 'question'"):
        create_self_ask_graph(retriever, model(*SELF_ASK)).invoke({key: QUESTION})


def test_keys_of_a_graph_around_it_are_ignored(retriever):
    from langgraph.graph import START, StateGraph
    from typing_extensions import TypedDict

    class Around(TypedDict, total=False):
        question: str
        messages: list[str]
        file: str
        answer: str

    around = StateGraph(Around)
    around.add_node("search", create_ircot_graph(retriever, model(*IRCOT)))
    around.add_edge(START, "search")
    state = around.compile().invoke({"question": QUESTION, "messages": ["hello"], "file": "a.md"})
    assert (state["answer"], state["messages"]) == ("In 1931 [1]", ["hello"])
    once = create_ircot_graph(retriever, model(*IRCOT)).invoke({"question": QUESTION})
    assert create_ircot_graph(retriever, model(*IRCOT)).invoke(once)["answer"] == once["answer"]
