"""Query engines and the workflow that search in several rounds."""

import asyncio
import json

import pytest
from llama_index.core import Settings
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.llms import MockLLM
from llama_index.core.schema import QueryBundle
from llama_index_fakes import ChatLLM, FunctionLLM, WordEmbedding, as_llama_index
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

from llama_index_sire import (
    IRCoTQueryEngine,
    ReasoningWorkflow,
    RetrievedEvent,
    SireRetriever,
    ThoughtEvent,
    create_sire_answer_tool,
)
from sire_core import Index, UsageLimits
from sire_core.errors import ConfigurationError, ModelError, NoAnswerError, QueryError
from sire_core.reason import IRCoTConfig, PassageSource, ReasoningLimits, SelfAskConfig, collect, ircot
from sire_core.recipes import REGISTRY
from sire_core.testing.doubles import ScriptedModel
from sire_core.types import to_uuid

THINK = {"reasoning": "Petra Quillon directed The Salt Lantern.", "search": "Where was Petra Quillon born?"}
DONE = {"reasoning": "Petra Quillon was born in Varn Harbour.", "search": "DONE"}
READ = {"answer": "Varn Harbour [1]", "citations": [1], "sufficient": True}
IRCOT = [json.dumps(answer) for answer in (THINK, DONE, READ)]


def ircot_engine(index, answers=IRCOT, latency=0.0, **options):
    return IRCoTQueryEngine(index, llm=ScriptedModel(list(answers), latency=latency), **options)


def plain(response):
    metadata = dict(response.metadata)
    return str(response), [(found.node.node_id, found.score) for found in response.source_nodes], metadata


async def drain(engine, question):
    return [event async for event in engine.astream_steps(question)]


async def test_ircot_answers_with_evidence_and_steps(index_of, question):
    engine = ircot_engine(SireRetriever(index_of(), similarity_top_k=2), k=5)
    response = await engine.aquery(question)
    assert isinstance(response, Response)
    assert response.response == "Varn Harbour [1]"
    assert len(response.source_nodes) == 5
    assert response.metadata["stop"] == "done"
    assert response.metadata["sufficient"] is True
    assert response.metadata["citations"] == [1]
    assert response.metadata["usage"]["calls"] == 3
    assert response.metadata["usage"]["retrievals"] == 2
    kinds = [step["type"] for step in response.metadata["steps"]]
    assert kinds == ["retrieved", "thought", "sub_question", "retrieved", "thought", "answer"]
    assert response.metadata["steps"][2]["text"] == THINK["search"]
    json.dumps(response.metadata)


def thinking(call):
    """Answers by what it is asked for: recipes may ask the model, too."""
    wanted = (call.schema or {}).get("properties", {})
    if "search" in wanted:
        return IRCOT[1] if call.fields.get("searched") else IRCOT[0]
    return IRCOT[2] if "answer" in wanted else "0"


@pytest.mark.parametrize("recipe", sorted(REGISTRY))
async def test_contract_of_query_engines(recipe, index_of, question):
    engine = IRCoTQueryEngine(SireRetriever(index_of(recipe), similarity_top_k=2), llm=ScriptedModel(thinking))
    response = await engine.aquery(question)
    trace = await collect(ircot(PassageSource(index_of(recipe)), question, model=ScriptedModel(thinking)))
    assert [found.node.node_id for found in response.source_nodes] == [
        to_uuid(hit.unit.id) for hit in trace.answer.hits
    ]
    assert [found.score for found in response.source_nodes] == pytest.approx([hit.score for hit in trace.answer.hits])
    assert len(response.source_nodes) == 10, "as many as the core gives, whatever the retriever gives"
    assert len(response.metadata["steps"]) == len(trace.steps) == 6
    passages = {to_uuid(hit.unit.id) for hit in index_of(recipe).search(question, 200)}
    shown = {name for step in response.metadata["steps"] for name in step.get("node_ids", ())}
    assert shown
    assert shown <= passages, "what a step shows is what the user handed in"
    assert response.response == "Varn Harbour [1]"
    assert plain(await asyncio.to_thread(engine.query, question)) == plain(response)


async def test_a_step_arrives_before_the_next_call_is_made(index_of, question):
    model = ScriptedModel(IRCOT)
    steps = IRCoTQueryEngine(index_of(), llm=model).astream_steps(question)
    calls = [(type(event).__name__, len(model.log)) async for event in steps]
    assert calls == [
        ("RetrievedEvent", 0),
        ("ThoughtEvent", 1),
        ("SubQuestionEvent", 1),
        ("RetrievedEvent", 1),
        ("ThoughtEvent", 2),
        ("AnswerEvent", 3),
    ]


async def test_leaving_early_stops_further_calls(index_of, question):
    model = ScriptedModel(IRCOT)
    steps = IRCoTQueryEngine(index_of(), llm=model).astream_steps(question)
    async for event in steps:
        if isinstance(event, ThoughtEvent):
            break
    await steps.aclose()
    assert len(model.log) == 1
    response = IRCoTQueryEngine(index_of(), llm=model, streaming=True).query(question)
    response.response_gen.close()
    assert len(model.log) == 1


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


async def test_the_original_flavor_reads_all_that_it_collects(index_of, question):
    asked = [
        "Petra Quillon directed The Salt Lantern.",
        "She was born on the coast.",
        "So the answer is: Varn Harbour.",
    ]
    config = IRCoTConfig("original")
    engine = ircot_engine(SireRetriever(index_of("flat"), similarity_top_k=5), [*asked, IRCOT[2]], config=config)
    found = (await engine.aquery(question)).source_nodes
    core = ircot(PassageSource(index_of("flat")), question, model=ScriptedModel([*asked, IRCOT[2]]), config=config)
    assert [each.node.node_id for each in found] == [to_uuid(hit.unit.id) for hit in (await collect(core)).answer.hits]
    assert 5 < len(found) <= 15
    with pytest.raises(ConfigurationError, match="k must be at least 1, not 0"):
        ircot_engine(index_of("flat"), k=0)


async def test_a_failing_model_leaves_the_evidence(index_of, question):
    with pytest.raises(NoAnswerError, match="down") as caught:
        await IRCoTQueryEngine(index_of(), llm=ScriptedModel([ModelError("down")])).aquery(question)
    assert len(caught.value.evidence) == 10
    streaming = IRCoTQueryEngine(index_of(), llm=ScriptedModel([ModelError("down")]), streaming=True)
    with pytest.raises(NoAnswerError, match="down"):
        [piece async for piece in (await streaming.aquery(question)).async_response_gen()]
    engine = IRCoTQueryEngine(index_of(), llm=ScriptedModel([ModelError("down")]), on_model_error="return")
    response = await engine.aquery(question)
    assert response.metadata["stop"] == "model_failed"
    assert "down" in response.metadata["note"]
    assert len(response.source_nodes) == 10
    assert str(response) == "Empty Response"


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


def test_limits_may_be_a_mapping(index_of, question):
    response = ircot_engine(index_of(), limits={"max_calls": 0}).query(question)
    assert response.metadata["stop"] == "call_limit"
    assert response.source_nodes


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


# --- the workflow -----------------------------------------------------------------------------------------------------


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


async def test_cancelling_the_workflow_stops_further_calls(index_of, question):
    model = ScriptedModel(IRCOT, latency=0.2)
    handler = ReasoningWorkflow(IRCoTQueryEngine(index_of(), llm=model)).run(query=question)
    while not model.log:
        await asyncio.sleep(0.01)
    await handler.cancel_run()
    await asyncio.sleep(0.5)
    assert len(model.log) == 1


@pytest.mark.parametrize("answers", [True, False])
def test_evidence_is_the_users_own_nodes_unless_units_are_wanted(answers, index_of, question):
    kinds = {}
    for returns in ("passages", "units"):
        engine = ircot_engine(SireRetriever(index_of("sirerag"), returns=returns), k=6)
        found = engine.query(question).source_nodes if answers else engine.retrieve(QueryBundle(question))
        kinds[returns] = [node.metadata["sire_kind"] for node in found]
    assert kinds["passages"] == ["chunk"] * 6
    assert "aggregate" in kinds["units"]
