"""Query engines and the workflow that search in several rounds, whole and in pieces."""

import asyncio
import json
import re
import threading

import pytest
from llama_index.core import Settings
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import QueryBundle
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

from llama_index_sire import (
    AnswerEvent,
    AnswerPieceEvent,
    IRCoTQueryEngine,
    LlamaIndexModel,
    ReasoningWorkflow,
    RetrievedEvent,
    SireRetriever,
    create_sire_answer_tool,
)
from sire_core import Index, UsageLimits
from sire_core.errors import ConfigurationError, ModelError, NoAnswerError, QueryError
from sire_core.models.sync import run_sync
from sire_core.protocols import Prompt
from sire_core.reason import IRCoTConfig, ReasoningLimits, SelfAskConfig
from sire_core.reason.prompts import Reading
from sire_core.testing.doubles import ScriptedModel
from sire_core.types import to_uuid
from support.adapter_results import gather
from support.llama_index_models import ChatLLM, FunctionLLM, WordEmbedding, as_llama_index

THINK = {"reasoning": "Petra Quillon directed The Salt Lantern.", "search": "Where was Petra Quillon born?"}
DONE = {"reasoning": "Petra Quillon was born in Varn Harbour.", "search": "DONE"}
READ = {"answer": "Varn Harbour [1]", "citations": [1], "sufficient": True}
IRCOT = [json.dumps(answer) for answer in (THINK, DONE, READ)]


def ircot_engine(index, answers=IRCOT, latency=0.0, **options):
    return IRCoTQueryEngine(index, ScriptedModel(list(answers), latency=latency), **options)


def plain(response):
    metadata = dict(response.metadata)
    return str(response), [(found.node.node_id, found.score) for found in response.source_nodes], metadata


async def drain(engine, question):
    return [event async for event in engine.astream_steps(question)]


async def test_evidence_alone_asks_for_no_answer(index_of, question):
    model = ScriptedModel(IRCOT[:2])
    found = await IRCoTQueryEngine(index_of(), llm=model).aretrieve(QueryBundle(question))
    assert len(found) == 10
    assert len(model.log) == 2
    engine = IRCoTQueryEngine(index_of(), llm=ScriptedModel(IRCOT[:2]))
    assert [n.node.node_id for n in engine.retrieve(QueryBundle(question))] == [n.node.node_id for n in found]


async def test_k_filters_config_and_limits_hold(index_of, question):
    retriever = SireRetriever(index_of("flat"), filters="kind=person")
    engine = ircot_engine(retriever, k=3, config=IRCoTConfig(k=2), limits=ReasoningLimits(max_steps=1))
    events = await drain(engine, question)
    assert events[-1].stop == "step_limit"
    assert len(events[-1].nodes) == 3
    assert all(found.metadata["kind"] == "person" for found in events[-1].nodes)
    assert [len(event.nodes) for event in events if isinstance(event, RetrievedEvent)] == [2, 2]


class _Events(BaseEventHandler):
    seen: list

    def handle(self, event, **kwargs):
        self.seen.append(event.class_name())


async def test_callbacks_spans_and_events_show_every_round(index_of, question):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    spans, events = SimpleSpanHandler(), _Events(seen=[])
    root = get_dispatcher()
    root.add_span_handler(spans)
    root.add_event_handler(events)
    try:
        llm = FunctionLLM(answers=[THINK, DONE, READ], callback_manager=CallbackManager([debug]))
        await IRCoTQueryEngine(index_of(), llm=llm, callback_manager=CallbackManager([debug])).aquery(question)
    finally:
        root.span_handlers.remove(spans)
        root.event_handlers.remove(events)
    pairs = debug.get_event_pairs(CBEventType.RETRIEVE)
    assert [start.payload[EventPayload.QUERY_STR] for start, _ in pairs] == [question, THINK["search"]]
    assert all(end.payload[EventPayload.NODES] for _, end in pairs)
    assert len(debug.get_event_pairs(CBEventType.QUERY)) == 1
    assert len(debug.get_event_pairs(CBEventType.LLM)) == 3
    names = [span.id_.split("-")[0] for span in spans.completed_spans]
    assert "IRCoTQueryEngine._aquery" in names
    parents = {span.id_: span.parent_id for span in spans.completed_spans}
    engine = next(name for name in parents if name.startswith("IRCoTQueryEngine._aquery"))
    chats = [name for name in parents if name.startswith("FunctionLLM.achat-")]
    assert len(chats) == 3
    assert all(parents[name] == engine for name in chats)
    assert events.seen.count("RetrievalStartEvent") == events.seen.count("RetrievalEndEvent") == 2


async def test_the_model_is_the_given_one_else_the_indexs_else_the_users(index_of, question):
    with pytest.raises(ConfigurationError, match="set Settings"):
        await IRCoTQueryEngine(index_of()).aquery(question)
    Settings.llm = ChatLLM(answer=IRCOT[1])
    assert (await IRCoTQueryEngine(index_of()).aquery(question)).metadata["stop"] == "done"
    own = ScriptedModel(IRCOT[1:])
    with Index(recipe="flat", language_model=own) as index:
        await index.abuild(index_of().documents())
        await IRCoTQueryEngine(index).aquery(question)
    assert len(own.log) == 2


async def test_a_question_that_brings_its_vector_is_not_embedded(question):
    model = WordEmbedding()
    retriever = SireRetriever.from_documents(as_llama_index(), recipe="flat", embed_model=model)
    vector = model._vectors([question])[0]
    model._calls.clear()
    await ircot_engine(retriever).aquery(QueryBundle(question, embedding=vector))
    assert model._calls == ["query"]


def test_what_is_refused(index_of):
    with pytest.raises(ConfigurationError, match="neither a retriever nor an Index"):
        IRCoTQueryEngine("a string")
    for config in ({"flavor": "query"}, SelfAskConfig()):
        with pytest.raises(ConfigurationError, match="config is an IRCoTConfig, not"):
            IRCoTQueryEngine(index_of("flat"), config=config)
    with pytest.raises(ConfigurationError, match="'settings' or None"):
        IRCoTQueryEngine(index_of(), llm="gpt")
    with pytest.raises(ConfigurationError, match="MockLLM is a class"):
        IRCoTQueryEngine(index_of(), llm=MockLLM)
    for make in (IRCoTQueryEngine, create_sire_answer_tool):
        with pytest.raises(ConfigurationError, match="UsageLimits is no ReasoningLimits"):
            make(index_of(), limits=UsageLimits(max_calls=1))
    with pytest.raises(QueryError):
        ircot_engine(index_of()).query("  ")


async def test_the_workflow_streams_typed_events_and_ends_with_the_response(index_of, question):
    model = ScriptedModel(IRCOT)
    handler = ReasoningWorkflow(IRCoTQueryEngine(index_of(), llm=model)).run(query=question)
    events = [event async for event in handler.stream_events()]
    response = await handler
    assert [type(event).__name__ for event in events] == [
        "RetrievedEvent",
        "ThoughtEvent",
        "SubQuestionEvent",
        "RetrievedEvent",
        "ThoughtEvent",
        "AnswerEvent",
        "StopEvent",
    ]
    assert plain(response) == plain(await ircot_engine(index_of()).aquery(question))
    shown = {name for step in response.metadata["steps"] for name in step.get("node_ids", ())}
    passages = {to_uuid(hit.unit.id) for hit in index_of().search(question, 200)}
    assert set() < shown <= passages, "what a step shows is what the user handed in"


async def test_cancelling_the_workflow_stops_further_calls(index_of, question):
    model = ScriptedModel(IRCOT, latency=0.2)
    handler = ReasoningWorkflow(IRCoTQueryEngine(index_of(), llm=model)).run(query=question)
    while not model.log:
        await asyncio.sleep(0.01)
    await handler.cancel_run()
    await asyncio.sleep(0.5)
    assert len(model.log) == 1


TEXT = 'Varn Harbour, a town on the coast where \u00e9very house has a "lamp" of its own'
READING = {"answer": TEXT, "citations": [1], "sufficient": True}
SAID = json.dumps(READING)
LONG_ANSWER = ['{"reasoning": "She was born there.", "search": "DONE"}', SAID]
PROMPT = Prompt("Answer it.", "Where?")
_WORD = re.compile(r"\S+\s*|\s+")


class SyncLLM(ChatLLM):
    """Completes and streams, both sync, as local models do; what it is asked is the same either way."""

    _threads: set = PrivateAttr(default_factory=set)

    # LlamaIndex's own, which asks `complete`.
    chat = ChatLLM.__mro__[1].chat

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        self._prompts.append(prompt)
        return CompletionResponse(text=self.answer)

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        self._prompts.append(prompt)
        text = ""
        for word in _WORD.findall(self.answer):
            self._threads.add(threading.current_thread())
            text += word
            yield CompletionResponse(text=text, delta=word)


@pytest.mark.parametrize("from_sync", [False, True])
async def test_a_sync_llm_streams_in_a_worker_thread(from_sync):
    model = LlamaIndexModel(SyncLLM(answer=SAID))
    asking = gather(model.stream(PROMPT, schema=Reading))
    pieces, streamed = await (asyncio.to_thread(run_sync, asking) if from_sync else asking)
    assert pieces == _WORD.findall(SAID)
    assert streamed.parsed == (await model.complete(PROMPT, schema=Reading)).parsed
    assert model.llm._prompts[0] == model.llm._prompts[1]
    (thread,) = model.llm._threads
    assert thread.name.startswith(("sire-worker", "asyncio"))


@pytest.mark.parametrize("from_sync", [False, True])
async def test_an_llm_without_a_stream_of_its_own_gives_one_piece(from_sync):
    for llm in (ChatLLM(answer=SAID), FunctionLLM(answers=[READING])):
        asking = gather(LlamaIndexModel(llm).stream(PROMPT, schema=Reading))
        pieces, streamed = await (asyncio.to_thread(run_sync, asking) if from_sync else asking)
        assert "".join(pieces) == streamed.text
        assert json.loads(streamed.text) == READING
        assert len(llm._prompts) == 1
        assert len(pieces) <= 2


def engine_of(index, **options):
    return IRCoTQueryEngine(index, llm=ScriptedModel(LONG_ANSWER * 3), **options)


async def test_events_and_the_workflow_of_a_streaming_engine_have_the_pieces(index_of, question):
    engine = engine_of(index_of(), streaming=True)
    events = [event async for event in engine.astream_steps(question)]
    pieces = [event.text for event in events if isinstance(event, AnswerPieceEvent)]
    assert isinstance(events[-1], AnswerEvent)
    assert "".join(pieces) == events[-1].text == TEXT + " [1]"
    handler = ReasoningWorkflow(engine).run(query=question)
    streamed = [event async for event in handler.stream_events() if isinstance(event, AnswerPieceEvent)]
    assert [event.text for event in streamed] == pieces
    assert (await handler).response == TEXT + " [1]"
    plain = [event async for event in engine_of(index_of()).astream_steps(question)]
    assert not [event for event in plain if isinstance(event, AnswerPieceEvent)]


async def test_a_model_that_fails_in_a_stream_is_an_error(index_of, question):
    streaming = IRCoTQueryEngine(index_of(), llm=ScriptedModel([ModelError("down")]), streaming=True)
    with pytest.raises(NoAnswerError, match="down"):
        [piece async for piece in (await streaming.aquery(question)).async_response_gen()]
