"""`create_ircot_graph`: nodes, state, checkpoints, resuming."""

import json

import pytest
from langchain_core.documents import Document
from langchain_reasoning import FOLLOW_UP, IRCOT, QUESTION, Runs
from langchain_scripted_chat import model

from langchain_sire import SireRetriever, create_ircot_chain, create_ircot_graph, create_self_ask_graph
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, QueryError
from sire_core.protocols import Prompt, Recipe
from sire_core.recipes import flat

memory = pytest.importorskip("langgraph.checkpoint.memory", reason="the langgraph extra is missing")

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


@pytest.fixture
def thread():
    return {"configurable": {"thread_id": "1"}}


def _state(result):
    """What a chain returned, as the graph's state says it."""
    return {**result, "documents": _plain(result["documents"])}


def _plain(documents):
    return [{"id": d.id, "page_content": d.page_content, "metadata": d.metadata} for d in documents]


@pytest.mark.parametrize("flavor", sorted(FLAVORS))
async def test_the_state_ends_as_what_the_chain_returns(retriever, flavor):
    script = FLAVORS[flavor]
    expected = _state(create_ircot_chain(retriever, model(*script), flavor=flavor).invoke(QUESTION))
    chat = model(*script)
    sync = create_ircot_graph(retriever, chat, flavor=flavor).invoke({"question": QUESTION})
    native = await create_ircot_graph(retriever, model(*script), flavor=flavor).ainvoke({"question": QUESTION})
    assert sync == native
    assert {key: sync[key] for key in expected} == expected
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


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("flavor", sorted(FLAVORS))
async def test_an_interrupted_run_resumes_without_a_repeated_call(retriever, thread, flavor, native):
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
        state = await graph.ainvoke(given, thread) if native else graph.invoke(given, thread)
        assert json.loads(json.dumps(graph.get_state(thread).values)) == graph.get_state(thread).values
        if not graph.get_state(thread).next:
            break
        given, stops = None, stops + 1
    assert stops >= 4
    assert len(chat.log) == len(script)
    assert {key: state[key] for key in expected} == expected


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_run_whose_process_died_resumes_without_a_repeated_call(retriever, thread, at):
    saver = memory.InMemorySaver()

    class DiedError(BaseException):
        pass

    dying = model(*IRCOT)
    original = type(dying)._generate

    class Dying(type(dying)):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            if len(self.log) == at - 1:
                raise DiedError
            return original(self, messages, stop, run_manager, **kwargs)

    first = model(*IRCOT, kind=Dying)
    with pytest.raises(DiedError):
        create_ircot_graph(retriever, first, checkpointer=saver).invoke({"question": QUESTION}, thread)
    assert len(first.log) == at - 1
    second = model(*IRCOT[at - 1 :])
    state = create_ircot_graph(retriever, second, checkpointer=saver).invoke(None, thread)
    assert state["answer"] == "In 1931 [1]"
    assert len(first.log) + len(second.log) == len(IRCOT)


def test_models_that_rankers_ask_are_not_asked_again_either(thread):
    class AsksModel:
        async def rank(self, query, n, view, where=None):
            await view.language_model.complete(Prompt("Rewrite the question.", query))
            return await flat().ranker.rank(query, n, view, where)

    ranks, chat, saver = model("x"), model(*IRCOT), memory.InMemorySaver()
    recipe = Recipe("flat", "asks", "test", (), AsksModel())
    retriever = SireRetriever.from_texts(["Ilse Marrable wrote it.", "1931."], recipe=recipe, llm=ranks, k=2)
    given = {"question": QUESTION}
    while True:
        graph = create_ircot_graph(retriever, chat, checkpointer=saver, interrupt_after=["retrieve", "think"])
        state = graph.invoke(given, thread)
        if not graph.get_state(thread).next:
            break
        given = None
    assert state["usage"]["retrievals"] == len(ranks.log) == 2
    assert len(chat.log) == 3


def test_another_question_on_the_same_thread_begins_anew(retriever, thread):
    chat = model(*IRCOT, '{"reasoning": "", "search": "DONE"}', '{"answer": "", "sufficient": false}')
    graph = create_ircot_graph(retriever, chat, checkpointer=memory.InMemorySaver())
    assert graph.invoke({"question": QUESTION}, thread)["answer"] == "In 1931 [1]"
    state = graph.invoke({"question": "Who commanded the Northern Wren?"}, thread)
    assert (state["answer"], state["sufficient"], state["stop"]) == ("insufficient evidence", False, "done")
    assert state["steps"][0]["query"] == "Who commanded the Northern Wren?"
    assert len(state["steps"]) == 2
    assert len(state["replies"]["model"]) == 2


def test_a_resumed_run_sees_the_index_as_it_is(thread):
    index = SireRetriever.from_documents(
        [Document(id=d.id, page_content=d.text) for d in demo_documents()], recipe="flat", k=4
    ).index
    saver, chat = memory.InMemorySaver(), model(*IRCOT)
    graph = create_ircot_graph(index, chat, checkpointer=saver, interrupt_after=["think"])
    graph.invoke({"question": QUESTION}, thread)
    index.delete(["weather-clerk"])
    resumed = create_ircot_graph(index, chat, checkpointer=saver)
    state = resumed.invoke(None, thread)
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
    assert set(graph.get_input_jsonschema()["properties"]) == {"question"}
    assert {"answer", "documents", "citations", "stop", "steps"} <= set(graph.get_output_jsonschema()["properties"])
    assert set(graph.get_graph().nodes) == {"__start__", "retrieve", "think", "answer", "__end__"}
