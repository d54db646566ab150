"""`create_self_ask_graph`, and queries that people edit between the steps of either graph."""

import json

import pytest
from langchain_reasoning import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK
from langchain_scripted_chat import model

from langchain_sire import SireRetriever, create_ircot_graph, create_self_ask_chain, create_self_ask_graph
from sire_core.errors import QueryError

memory = pytest.importorskip("langgraph.checkpoint.memory", reason="the langgraph extra is missing")

THREAD = {"configurable": {"thread_id": "1"}}
TWO_CALL = ('{"followups": [{"q": "Who wrote it?", "a": "Ilse Marrable"}]}', SELF_ASK[-1])
BETTER = "When was the burial of Ilse Marrable?"


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of("flat"), k=4)


def _plain(result):
    documents = [{"id": d.id, "page_content": d.page_content, "metadata": d.metadata} for d in result["documents"]]
    return {**result, "documents": documents}


@pytest.mark.parametrize(("mode", "script"), [("search", SELF_ASK), ("two_call", TWO_CALL)])
async def test_the_state_ends_as_what_the_chain_returns(retriever, mode, script):
    expected = _plain(create_self_ask_chain(retriever, model(*script), mode=mode).invoke(QUESTION))
    state = create_self_ask_graph(retriever, model(*script), mode=mode).invoke({"question": QUESTION})
    assert {key: state[key] for key in expected} == expected
    native = await create_self_ask_graph(retriever, model(*script), mode=mode).ainvoke({"question": QUESTION})
    assert native == state
    assert json.loads(json.dumps(state)) == state


def test_a_node_makes_one_call_at_most(retriever):
    chat = model(*SELF_ASK)
    nodes = []
    for update in create_self_ask_graph(retriever, chat).stream({"question": QUESTION}, stream_mode="updates"):
        ((name, state),) = update.items()
        nodes.append((name, state["query"], len(chat.log)))
    assert nodes == [
        ("retrieve", "", 0),
        ("think", FOLLOW_UP, 1),
        ("retrieve", "", 1),
        ("read", "", 2),
        ("think", "", 3),
        ("answer", "", 4),
    ]


def test_an_interrupted_run_resumes_without_a_repeated_call(retriever):
    saver, chat, given, stops = memory.InMemorySaver(), model(*SELF_ASK), {"question": QUESTION}, 0
    while True:
        graph = create_self_ask_graph(
            retriever, chat, checkpointer=saver, interrupt_after=["retrieve", "think", "read"]
        )
        state = graph.invoke(given, THREAD)
        if not graph.get_state(THREAD).next:
            break
        given, stops = None, stops + 1
    assert (stops, len(chat.log)) == (5, len(SELF_ASK))
    assert state["answer"] == "In 1931 [1]"


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
