"""Query engines that search in several rounds, their steps as events, and the workflow that streams these."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import fields
from typing import Any, ClassVar, Generic, Literal, TypeVar, Union

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import active_instrument_tags, instrument_tags
from typing_extensions import Unpack

from llama_index_sire.documents import node_of, retriever_source
from llama_index_sire.embedding import known_query
from llama_index_sire.filters import FilterLike, to_filter
from llama_index_sire.opening import LLMLike, check_llm, resolve_llm
from llama_index_sire.options import WorkflowOptions
from llama_index_sire.retriever import SireRetriever
from sire_core.arguments import explains_keywords, kind_of, limits_of, lists_options, named
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.protocols import LanguageModel
from sire_core.reason import (
    Answer,
    AnswerPiece,
    IntermediateAnswer,
    IRCoTConfig,
    PassageSource,
    ReasoningLimits,
    ReasoningStep,
    Retrieved,
    Searchable,
    SelfAskConfig,
    SubQuestion,
    Thought,
    iterate_sync,
    reason,
)
from sire_core.reason.steps import NextSearch, check_answered, check_on_model_error, plain_answer, plain_step
from sire_core.search.validity import Day
from sire_core.serve.outputs import source_title


class ThoughtEvent(Event):
    """A sentence of the reasoning; numbers count the rounds."""

    number: int
    text: str


class SubQuestionEvent(Event):
    """The next query, or the follow-up question that is answered next."""

    number: int
    text: str


class RetrievedEvent(Event):
    """Nodes of a search, and how many of them were new."""

    number: int
    query: str
    nodes: list[NodeWithScore]
    new: int


class IntermediateAnswerEvent(Event):
    """The answer to a follow-up question."""

    number: int
    question: str
    text: str


class AnswerPieceEvent(Event):
    """A piece of the answer while it is written; `restart` says that the pieces before it are void."""

    text: str
    restart: bool


class AnswerEvent(Event):
    """The end of a reasoning: the answer, and the evidence in the order in which the text cites it as [1], [2]."""

    text: str
    stop: str
    nodes: list[NodeWithScore]
    citations: list[int]
    findings: list[str]
    sufficient: bool
    outcome: str
    usage: dict[str, int]
    note: str


ReasoningEvent = Union[
    ThoughtEvent, SubQuestionEvent, RetrievedEvent, IntermediateAnswerEvent, AnswerPieceEvent, AnswerEvent
]


_EVENTS: Mapping[type[Any], type[Any]] = {
    Thought: ThoughtEvent,
    SubQuestion: SubQuestionEvent,
    Retrieved: RetrievedEvent,
    IntermediateAnswer: IntermediateAnswerEvent,
    AnswerPiece: AnswerPieceEvent,
    Answer: AnswerEvent,
}
"""By step; its fields are the event's, with nodes for hits."""


def to_event(step: ReasoningStep) -> ReasoningEvent:
    """Convert a step of the core."""
    values: dict[str, Any] = {name.name: getattr(step, name.name) for name in fields(step)}
    if "hits" in values:
        values["nodes"] = [node_of(hit) for hit in values.pop("hits")]
    if isinstance(step, Answer):
        values |= plain_answer(step)
    event: ReasoningEvent = _EVENTS[type(step)](**values)
    return event


_EMPTY_RESPONSE = "Empty Response"  # LlamaIndex's own words for it


class CitedResponse(Response):
    """A response that says, as a text, what its citations are: what `QueryEngineTool` gives to an agent.

    `response.response` is the answer alone.
    """

    def __str__(self) -> str:
        text = super().__str__()
        sources = (self.metadata or {}).get("sources", ())
        lines = [
            f"[{source['number']}] {', '.join(source['doc_ids'])} {source['title']}".rstrip() for source in sources
        ]
        return "\n\n".join([text, *(["Sources:\n" + "\n".join(lines)] if lines else [])])


def empty_response() -> Response:
    """A response to which steps are added."""
    return CitedResponse(None, [], {"steps": []})


def add_step(step: ReasoningStep, response: Response) -> str:
    """Note a step in a response, whose lists may be shared already."""
    assert response.metadata is not None
    if isinstance(step, AnswerPiece):
        # Readers of a stream cannot take back what is void: the answer starts over below it.
        piece = "\n\n" * step.restart + step.text
        response.response = (response.response or "") + piece
        return piece
    response.metadata["steps"].append(plain_step(step, "node_ids", lambda hit: node_of(hit).node_id))
    if not isinstance(step, Answer):
        return ""
    rest = "" if response.response else step.text or _EMPTY_RESPONSE
    response.response = step.text or _EMPTY_RESPONSE
    response.source_nodes.extend(node_of(hit) for hit in step.hits)
    response.metadata.update(
        **plain_answer(step),
        sources=[
            {"number": number, "doc_ids": list(hit.doc_ids), "title": source_title(hit)}
            for number, hit in enumerate(step.hits, 1)
            if number in step.citations
        ],
    )
    return rest


dispatcher = get_dispatcher(__name__)


ConfigT = TypeVar("ConfigT")


class ReasoningQueryEngine(BaseQueryEngine, Generic[ConfigT]):
    """Answers questions by searching in several rounds. The steps stream, and are in the response's metadata.

    In the answer, [1], [2] refer to `source_nodes` by number (your own nodes, unless the retriever `returns` "units").
    The metadata of the response has `steps`, `stop` (why the reasoning ended), `outcome` ("answered", "doubted" or
    "unanswered"), `sufficient`, `citations`, `sources` (the cited documents), `findings` of cited reports ("3.2" is
    finding 2 of node 3), `usage` and `note`; `str(response)` lists the
    sources, too. A streaming response is returned at once; `metadata["steps"]` grows while its generator is read, and
    the text is only the answer.

    Args:
        source: A `SireRetriever`, whose `filters`, `recipe` and `returns` apply, an `Index`, or any other retriever,
            which is used as it is.
        llm: See `resolve_llm`; by default the model of the index, or `Settings.llm` if you have set it.
        config: Settings of the strategy.
        k: Nodes that the answer is read from. None leaves it to the strategy and not to the retriever: 10, or the up to
            15 that the `original` flavor of IRCoT collects; `SingleQueryEngine` reads what the retriever gives.
        limits: Limits per question: `ReasoningLimits` of `sire_core.reason`, or a mapping of these.
        streaming: Respond with a generator; steps and events also have the answer in pieces.
        on_model_error: `raise` a `NoAnswerError` with the evidence, or `return` the evidence, if the model failed
            before there was an answer.
        callback_manager: Default: that of the retriever.

    Raises:
        ConfigurationError: The source is none of these, `config` belongs to another strategy, or `k`, `limits` or
            `llm` is something else.
    """

    strategy: ClassVar[str]
    settings: ClassVar[type[Any]]

    @explains_keywords({"retriever": "source", "index": "source", "similarity_top_k": "k", "top_k": "k"})
    def __init__(
        self,
        source: BaseRetriever | Index,
        llm: LLMLike = None,
        *,
        config: ConfigT | None = None,
        k: int | None = None,
        limits: ReasoningLimits | Mapping[str, Any] | None = None,
        streaming: bool = False,
        on_model_error: Literal["raise", "return"] = "raise",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        retriever = SireRetriever(source) if isinstance(source, Index) else source
        if not isinstance(retriever, BaseRetriever):
            raise ConfigurationError(f"{type(source).__name__} is neither a retriever nor an Index.")
        self.retriever = retriever
        self.config: ConfigT = self.settings() if config is None else config
        if not isinstance(self.config, self.settings):
            raise ConfigurationError(f"config is an {self.settings.__name__}, not {type(config).__name__}.")
        if k is not None and (not isinstance(k, int) or k < 1):
            raise ConfigurationError(f"k must be at least 1, not {k!r}.")
        self.k = k
        check_llm(llm)
        self.llm = llm
        self.limits = limits_of(limits, ReasoningLimits)
        self.streaming = streaming
        self.on_model_error = check_on_model_error(on_model_error)
        super().__init__(callback_manager=callback_manager or retriever.callback_manager)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._querying(query_bundle) as event:
            response = self._streamed(query_bundle) if self.streaming else run_sync(self._responded(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._querying(query_bundle) as event:
            response = self._astreamed(query_bundle) if self.streaming else await self._responded(query_bundle)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Only the evidence; makes no call for the final answer."""
        return run_sync(self.aretrieve(query_bundle))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """See `retrieve`."""
        return (await self._responded(query_bundle, answer=False)).source_nodes

    async def astream_steps(self, query: QueryType) -> AsyncIterator[ReasoningEvent]:
        """The steps as they happen; the last one is an `AnswerEvent`. Leaving the loop early stops model calls."""
        bundle = QueryBundle(query) if isinstance(query, str) else query
        async with aclosing(self.steps(bundle, stream=self.streaming)) as walk:
            async for step in walk:
                yield to_event(step)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    async def steps(
        self,
        bundle: QueryBundle,
        *,
        answer: bool = True,
        stream: bool = False,
        k: int | None = None,
        filters: FilterLike = None,
        as_of: Day = None,
    ) -> AsyncGenerator[ReasoningStep, None]:
        """The core's steps, with each search reported to callbacks and instrumentation."""
        retriever, filter, size = self.retriever, to_filter(filters), self.k if k is None else k
        index: Searchable
        if isinstance(retriever, SireRetriever):
            narrowed = retriever.narrowed(k, filters, as_of)
            as_of = narrowed.as_of
            index = narrowed.searched()
            index = PassageSource(index) if narrowed.returns == "passages" else index
            filter = to_filter(narrowed.filters)
            if size is None and self.strategy == "single":
                size = narrowed.similarity_top_k
        else:
            index = retriever_source(retriever)
        steps = reason(
            self.strategy,
            index,
            bundle.query_str,
            **({} if self.config is None else {"config": self.config}),
            model=self._model(),
            k=size,
            filter=filter,
            as_of=as_of,
            limits=self.limits,
            answer=answer,
            stream=stream,
        )
        following = NextSearch(bundle.query_str, searches=getattr(self.config, "mode", "search") == "search")
        async with aclosing(steps) as walk:
            while True:
                with known_query(bundle), self._retrieving(following.query, size, filter) as retrieved:
                    step = await anext(walk, None)
                    if isinstance(step, Retrieved):
                        retrieved.extend(node_of(hit) for hit in step.hits)
                if step is None:
                    return
                if self.on_model_error == "raise":
                    check_answered(step, node_of)
                following.saw(step)
                yield step

    def _model(self) -> LanguageModel:
        # The property would make LlamaIndex's default (OpenAI); the attribute tells whether the user has set one.
        ours = self.retriever.index.language_model if isinstance(self.retriever, SireRetriever) else None
        model = resolve_llm(self.llm or ours or (Settings._llm and "settings"))  # noqa: SLF001 - as above
        if model is None:
            raise ConfigurationError("Reasoning needs a model: pass llm=..., or set Settings.llm.")
        return model

    def _querying(self, bundle: QueryBundle) -> Any:
        return self.callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: bundle.query_str})

    @contextmanager
    def _retrieving(self, query: str, k: int | None, filter: Any) -> Iterator[list[NodeWithScore]]:
        """Report a search, unless there is none, or the retriever reports its own."""
        retrieved: list[NodeWithScore] = []
        if not query or not isinstance(self.retriever, SireRetriever):
            yield retrieved
            return
        about = {"recipe": str(self.retriever.searched().stats()["recipe"]), "k": k, "filter": filter and str(filter)}
        with instrument_tags({**active_instrument_tags.get(), "sire": about}):
            dispatcher.event(RetrievalStartEvent(str_or_query_bundle=query))
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query, EventPayload.ADDITIONAL_KWARGS: about}
        with self.callback_manager.event(CBEventType.RETRIEVE, payload=payload) as event:
            yield retrieved
            event.on_end(payload={EventPayload.NODES: retrieved})
        dispatcher.event(RetrievalEndEvent(str_or_query_bundle=query, nodes=retrieved))

    async def _responded(self, bundle: QueryBundle, *, answer: bool = True) -> Response:
        response = empty_response()
        async with aclosing(self.steps(bundle, answer=answer)) as walk:
            async for step in walk:
                add_step(step, response)
        return response

    def _streamed(self, bundle: QueryBundle) -> StreamingResponse:
        gathered = empty_response()
        return StreamingResponse(iterate_sync(self._text(bundle, gathered)), gathered.source_nodes, gathered.metadata)

    def _astreamed(self, bundle: QueryBundle) -> AsyncStreamingResponse:
        gathered = empty_response()
        return AsyncStreamingResponse(self._text(bundle, gathered), gathered.source_nodes, gathered.metadata)

    async def _text(self, bundle: QueryBundle, gathered: Response) -> AsyncGenerator[str, None]:
        async with aclosing(self.steps(bundle, stream=True)) as walk:
            async for step in walk:
                if piece := add_step(step, gathered):
                    yield piece


class IRCoTQueryEngine(ReasoningQueryEngine[IRCoTConfig]):
    """Alternates reasoning and searching, then answers from everything that was found (IRCoT).

    `config` has the flavor and its settings; for everything else, see `ReasoningQueryEngine`.
    """

    strategy = "ircot"
    settings = IRCoTConfig


class SelfAskQueryEngine(ReasoningQueryEngine[SelfAskConfig]):
    """Asks and answers follow-up questions, then answers the question (self-ask).

    The mode `search` of `config` searches for each follow-up question; `two_call` asks and answers all of them in one
    call. For everything else, see `ReasoningQueryEngine`.
    """

    strategy = "self-ask"
    settings = SelfAskConfig


class SingleQueryEngine(ReasoningQueryEngine[None]):
    """One search and one answer with citations; see `ReasoningQueryEngine`. It has no settings."""

    strategy = "single"
    settings = type(None)


class QuestionEvent(StartEvent):
    """Start of a reasoning."""

    query: str


_OF_WORKFLOW = (*WorkflowOptions.__annotations__, "engine", "timeout")


class ReasoningWorkflow(Workflow):
    """Runs a query engine as a workflow: `handler = workflow.run(query="...")`.

    `handler.stream_events()` gives `ThoughtEvent`, `SubQuestionEvent`, `RetrievedEvent`, `IntermediateAnswerEvent` and
    `AnswerEvent` as they happen, and for a `streaming` engine also `AnswerPieceEvent`s; `await handler` gives the
    response with the whole answer. Cancelling the run, or its timeout, stops further model calls.

    Args:
        engine: An `IRCoTQueryEngine` or `SelfAskQueryEngine`.
        timeout: Seconds for a run; None means no limit. (The engine's `limits` end a run with an answer from what was
            found so far.)
        **options: Further arguments of `Workflow`.
    """

    @lists_options(WorkflowOptions)
    def __init__(
        self, engine: ReasoningQueryEngine[Any], timeout: float | None = None, **options: Unpack[WorkflowOptions]
    ) -> None:
        if not isinstance(engine, ReasoningQueryEngine):
            raise ConfigurationError(f"engine is an IRCoTQueryEngine or the like, not {kind_of(engine)}.")
        super().__init__(timeout=timeout, **named("ReasoningWorkflow", options, _OF_WORKFLOW))
        self.engine = engine

    @step
    async def reason(self, ctx: Context, ev: QuestionEvent) -> StopEvent:
        """The whole reasoning; its rounds are the core's."""
        response = empty_response()
        async with aclosing(self.engine.steps(QueryBundle(ev.query), stream=self.engine.streaming)) as walk:
            async for event in walk:
                add_step(event, response)
                ctx.write_event_to_stream(to_event(event))
        return StopEvent(result=response)
