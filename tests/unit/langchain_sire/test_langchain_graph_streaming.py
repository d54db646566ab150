"""The IRCoT graph writes the answer to its custom stream; recorded answers are played again."""

import json

import pytest
from langchain_reasoning import IRCOT, QUESTION
from langchain_scripted_chat import PROMPT, Answer, model

from langchain_sire import SireRetriever, create_ircot_graph
from sire_core import Index
from sire_core.data import demo_documents
from sire_core.errors import UnusableAnswerError
from sire_core.extraction.rules import RulesExtractor
from sire_core.reason.replay import PausedError, RecordedModel
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script

memory = pytest.importorskip("langgraph.checkpoint.memory", reason="the langgraph extra is missing")

TEXT = "In 1931 [1]"


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of("flat"), k=4)


@pytest.fixture
def thread():
    return {"configurable": {"thread_id": "1"}}


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


def test_an_answer_over_reports_is_a_node_of_its_own_too(thread):
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
    graph.invoke({"question": QUESTION}, thread)
    assert graph.get_state(thread).next == ("answer",)
    pieces = [piece["answer"] for piece in graph.stream(None, thread, stream_mode="custom")]
    assert "".join(pieces).startswith("In 1931")
    assert len(graph.get_state(thread).values["findings"]) == 1, "reports were read"


async def test_a_run_that_was_interrupted_streams_when_it_goes_on(retriever, thread):
    chat = ScriptedModel(IRCOT)
    saver = memory.InMemorySaver()
    graph = create_ircot_graph(retriever, chat, checkpointer=saver, interrupt_before=["answer"], stream_answer=True)
    await graph.ainvoke({"question": QUESTION}, thread)
    assert len(chat.log) == 2
    pieces = await gather(graph.astream(None, thread, stream_mode="custom"))
    assert "".join(piece["answer"] for piece in pieces) == TEXT
    assert len(chat.log) == 3


# --- the record -----------------------------------------------------------------------------------------------------


async def test_an_unusable_answer_stays_one_and_a_call_too_many_pauses():
    replies = {}
    recorded = RecordedModel(ScriptedModel(["prose", "more prose"]), replies, numbered=True, most=1)
    with pytest.raises(UnusableAnswerError):
        await gather(recorded.stream(PROMPT, schema=Answer))
    with pytest.raises(UnusableAnswerError):
        await gather(RecordedModel(ScriptedModel([]), replies, numbered=True).stream(PROMPT, schema=Answer))
    with pytest.raises(PausedError):
        await gather(recorded.stream(PROMPT, schema=Answer))
