"""`create_ircot_graph`, `create_self_ask_graph`: graphs whose every step can be looked at, edited, stored, resumed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import get_async_callback_manager_for_config, get_callback_manager_for_config

from langchain_sire.any_retriever import retriever_source
from langchain_sire.graph_state import Progress, ReasoningInput, ReasoningState
from langchain_sire.reasoner import Reasoner, make_reasoner
from langchain_sire.steps import atraced, question_of, step_to_chunk, traced
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.reason import AnswerPiece, PassageSource, ReasoningStep
from sire_core.reason.replay import PausedError, RecordedModel, RecordedSearches

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.retrievers import BaseRetriever
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    from sire_core.protocols import FloatArray, LanguageModel

_NODES = {"ircot": ("retrieve", "think", "answer"), "self-ask": ("retrieve", "think", "read", "answer")}


def create_ircot_graph(
    retriever: BaseRetriever | Index,
    llm: BaseChatModel | LanguageModel | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
    stream_answer: bool = False,
    **options: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """IRCoT as a LangGraph graph with the nodes `retrieve`, `think` and `answer`, each with at most one model call.

    Ask with `graph.invoke({"question": ...}, config)`. The state is `ReasoningState`, plain JSON; its final value is
    what `create_ircot_chain` returns. With a checkpointer, `graph.invoke(None, config)` resumes an interrupted or
    killed run without repeating a model call. Searches of earlier nodes are repeated, except those of other retrievers,
    whose results are stored. `timeout` applies to each node.

    With `interrupt_before=["retrieve"]`, a person can replace the model's query: `graph.update_state(config, {"query":
    "..."})`, then `graph.invoke(None, config)`.

    Args:
        retriever: See `create_ircot_chain`.
        llm: See `create_ircot_chain`.
        checkpointer: Stores the states, for example LangGraph's `InMemorySaver`.
        interrupt_before: Nodes before which the graph pauses.
        interrupt_after: Nodes after which the graph pauses.
        stream_answer: Whether the answer streams to the graph's custom stream: `graph.stream(...,
            stream_mode=["updates", "custom"])` then also gives `{"answer": piece}`, as the chunks of
            `create_ircot_chain`. In async code this needs Python 3.11.
        **options: See `create_ircot_chain`, except `on_model_error`: if the model fails, nothing is raised; the state
            has the evidence, `stop` is `model_failed`, and `note` says why.

    Raises:
        ImportError: LangGraph is missing.
        ConfigurationError: An option is unknown or impossible.
    """
    graph = _graph("ircot", retriever, llm, options, streams=stream_answer)
    return graph.compile(
        checkpointer, interrupt_before=[*interrupt_before], interrupt_after=[*interrupt_after], name="IRCoT"
    )


def create_self_ask_graph(
    retriever: BaseRetriever | Index,
    llm: BaseChatModel | LanguageModel | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
    stream_answer: bool = False,
    **options: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Self-ask as a graph of `retrieve`, `think` (asks a follow-up question), `read` (answers it) and `answer`.

    Args:
        retriever: See `create_ircot_chain`.
        llm: See `create_ircot_chain`.
        checkpointer: See `create_ircot_graph`, as for the rest.
        interrupt_before: See `create_ircot_graph`.
        interrupt_after: See `create_ircot_graph`.
        stream_answer: See `create_ircot_graph`.
        **options: See `create_self_ask_chain`, except `on_model_error`, as in `create_ircot_graph`.

    Raises:
        ImportError: LangGraph is missing.
        ConfigurationError: An option is unknown or impossible.
    """
    graph = _graph("self-ask", retriever, llm, options, streams=stream_answer)
    return graph.compile(
        checkpointer, interrupt_before=[*interrupt_before], interrupt_after=[*interrupt_after], name="SelfAsk"
    )


def _graph(
    strategy: str,
    retriever: BaseRetriever | Index,
    llm: BaseChatModel | LanguageModel | None,
    options: Mapping[str, Any],
    *,
    streams: bool,
) -> StateGraph[Any, Any, Any, Any]:
    try:
        from langgraph.graph import END, START, StateGraph
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "langgraph":
            raise
        raise ImportError('A graph needs LangGraph: pip install "sire-rag[langgraph]"') from error

    if options.get("on_model_error", "return") != "return":
        raise ConfigurationError(
            "A graph takes no on_model_error: it never raises when the model fails, but keeps that in its state, where "
            "`stop` is 'model_failed' and `note` says why. A chain (create_ircot_chain) raises."
        )
    work = _Work(make_reasoner(strategy, retriever, llm, {**options, "on_model_error": "return"}), streams=streams)
    nodes = _NODES[strategy]
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(ReasoningState, input_schema=ReasoningInput)
    for node in nodes:
        graph.add_node(node, RunnableLambda(partial(work.run, node), partial(work.arun, node), name=node))
    graph.add_edge(START, "retrieve")
    for node in nodes[:-1]:
        graph.add_conditional_edges(node, _next, {**{name: name for name in nodes}, "end": END})
    graph.add_edge("answer", END)
    return graph


def _next(state: ReasoningState) -> str:
    return state["next"]


class _Work:
    """What the nodes do: take the reasoning up where the last one left it, and go on until the next call."""

    def __init__(self, reasoner: Reasoner, *, streams: bool) -> None:
        self._reasoner = reasoner
        self._streams = streams
        self._vectors: dict[tuple[str, str], FloatArray] = {}

    def run(self, node: str, state: ReasoningState, config: RunnableConfig) -> ReasoningState:
        """A node, from sync code."""
        progress = self._progress(node, state)
        steps = self._steps(node, progress)
        callbacks = get_callback_manager_for_config(config)
        try:
            run_sync(_repeat(steps, progress))
            with closing(traced(steps, callbacks, progress.query, **self._reasoner.traces())) as walk:
                for step in walk:
                    if self._note(step, progress):
                        break
        except PausedError as paused:
            progress.pause(paused)
        return progress.update()

    async def arun(self, node: str, state: ReasoningState, config: RunnableConfig) -> ReasoningState:
        """A node."""
        progress = self._progress(node, state)
        steps = self._steps(node, progress)
        callbacks = get_async_callback_manager_for_config(config)
        try:
            await _repeat(steps, progress)
            async with aclosing(atraced(steps, callbacks, progress.query, **self._reasoner.traces())) as walk:
                async for step in walk:
                    if self._note(step, progress):
                        break
        except PausedError as paused:
            progress.pause(paused)
        return progress.update()

    def _progress(self, node: str, state: ReasoningState) -> Progress:
        reasoner = self._reasoner
        reads = reasoner.strategy == "self-ask" and reasoner.searches
        return Progress(node, question_of(state), state, reads=reads, searches=reasoner.searches)

    def _steps(self, node: str, progress: Progress) -> AsyncGenerator[ReasoningStep, None]:
        reasoner, replies = self._reasoner, progress.replies
        if isinstance(reasoner.source, (Index, PassageSource)):
            source: Any = RecordedSearches(reasoner.source, replies["search"], self._vectors)
            model = reasoner.model or reasoner.source.language_model
        else:
            source = retriever_source(reasoner.retriever, replies["search"])
            model = reasoner.model
        if model is not None:
            limit = 0 if node == "retrieve" else 1
            model = RecordedModel(model, replies["model"], numbered=True, most=limit)
        edits = {int(number): query for number, query in progress.edits.items()}
        streams = self._streams and node == "answer"
        return replace(reasoner, model=model, source=source).steps(progress.question, stream=streams, edits=edits)

    @staticmethod
    def _note(step: ReasoningStep, progress: Progress) -> bool:
        """Note a step, or pass on a piece of the answer. Whether the node's work ends with it."""
        if not isinstance(step, AnswerPiece):
            return progress.add(step)
        from langgraph.config import get_stream_writer

        get_stream_writer()({"answer": step_to_chunk(progress.question, step)["answer"]})
        return False


async def _repeat(steps: AsyncGenerator[ReasoningStep, None], progress: Progress) -> None:
    """Go through the steps that are known."""
    for _ in range(progress.known):
        step = await anext(steps, None)
        if step is not None:
            progress.add(step)
