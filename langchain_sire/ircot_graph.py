"""`create_ircot_graph`: IRCoT as a LangGraph graph whose every step can be looked at, stored and resumed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import get_async_callback_manager_for_config, get_callback_manager_for_config

from langchain_sire.graph_state import IRCoTInput, IRCoTState, Progress
from langchain_sire.reasoner import Reasoner, make_reasoner
from langchain_sire.recorded_model import PausedError, RecordedModel
from langchain_sire.recorded_searches import RecordedSearches
from langchain_sire.retriever import SireRetriever
from langchain_sire.runs import atraced, traced
from langchain_sire.steps import question_of, step_to_chunk
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.reason import AnswerPiece, Step

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

    from sire_core.protocols import FloatArray, LanguageModel

__all__ = ["create_ircot_graph"]

_NODES = ("retrieve", "think", "answer")


def create_ircot_graph(
    retriever: SireRetriever | Index,
    llm: BaseChatModel | LanguageModel | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
    stream_answer: bool = False,
    **options: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """IRCoT as a graph of the nodes `retrieve`, `think` and `answer`, each with at most one call of the model.

    Ask with `graph.invoke({"question": ...}, config)`; the state is `IRCoTState`, plain JSON, and ends as what
    `create_ircot_chain` returns. With a checkpointer a run that was interrupted or killed is resumed by
    `graph.invoke(None, config)`: no call of the model is made twice. The searches of earlier nodes are
    repeated, their questions embedded once per process. `timeout` holds for each node.

    Args:
        retriever: See `create_ircot_chain`.
        llm: See `create_ircot_chain`.
        checkpointer: Where states are kept, for example LangGraph's `InMemorySaver`.
        interrupt_before: Nodes before which the graph stops and waits.
        interrupt_after: Nodes after which it does.
        stream_answer: Whether the answer is written to the graph's custom stream while the model writes it:
            `graph.stream(..., stream_mode=["updates", "custom"])` then also gives `{"answer": piece}`, as the chunks of
            `create_ircot_chain`. In async code this needs Python 3.11.
        **options: See `create_ircot_chain`.

    Raises:
        ImportError: LangGraph is missing.
        ConfigurationError: An option is unknown or impossible.
    """
    try:
        from langgraph.graph import END, START, StateGraph
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "langgraph":
            raise
        raise ImportError('create_ircot_graph needs LangGraph: pip install "sire-rag[langgraph]"') from error

    work = _Work(make_reasoner("ircot", retriever, llm, options), streams=stream_answer)
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(IRCoTState, input_schema=IRCoTInput)
    for node in _NODES:
        graph.add_node(node, RunnableLambda(partial(work.run, node), partial(work.arun, node), name=node))
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", _next, {"think": "think", "answer": "answer", "end": END})
    graph.add_conditional_edges("think", _next, {**{name: name for name in _NODES}, "end": END})
    graph.add_edge("answer", END)
    return graph.compile(
        checkpointer=checkpointer,
        interrupt_before=list(interrupt_before),
        interrupt_after=list(interrupt_after),
        name="IRCoT",
    )


def _next(state: IRCoTState) -> str:
    return state["next"]


class _Work:
    """What the nodes do: take the reasoning up where the last one left it, and go on until the next call."""

    def __init__(self, reasoner: Reasoner, *, streams: bool) -> None:
        self._reasoner = reasoner
        self._streams = streams
        self._vectors: dict[tuple[str, str], FloatArray] = {}

    def run(self, node: str, state: IRCoTState, config: RunnableConfig) -> IRCoTState:
        """A node, from sync code."""
        progress = Progress(node, question_of(state), state)
        steps = self._steps(node, progress)
        callbacks = get_callback_manager_for_config(config)
        try:
            run_sync(_repeat(steps, progress))
            with closing(traced(steps, callbacks, progress.query)) as walk:
                for step in walk:
                    if self._note(step, progress):
                        break
        except PausedError as paused:
            progress.pause(paused)
        return progress.update()

    async def arun(self, node: str, state: IRCoTState, config: RunnableConfig) -> IRCoTState:
        """A node."""
        progress = Progress(node, question_of(state), state)
        steps = self._steps(node, progress)
        callbacks = get_async_callback_manager_for_config(config)
        try:
            await _repeat(steps, progress)
            async with aclosing(atraced(steps, callbacks, progress.query)) as walk:
                async for step in walk:
                    if self._note(step, progress):
                        break
        except PausedError as paused:
            progress.pause(paused)
        return progress.update()

    def _steps(self, node: str, progress: Progress) -> AsyncGenerator[Step, None]:
        reasoner, kept = self._reasoner, progress.replies
        model = reasoner.model or reasoner.index.language_model
        if model is not None:
            most = 0 if node == "retrieve" else 1
            recorded = RecordedModel(model, kept["model"], numbered=True, most=most)
            searched: Any = RecordedSearches(reasoner.index, kept["search"], self._vectors)
            reasoner = replace(reasoner, model=recorded, index=searched)
        return reasoner.steps(progress.question, stream=self._streams and node == "answer")

    @staticmethod
    def _note(step: Step, progress: Progress) -> bool:
        """Note a step, or pass on a piece of the answer. Whether the node's work ends with it."""
        if not isinstance(step, AnswerPiece):
            return progress.add(step)
        from langgraph.config import get_stream_writer

        get_stream_writer()({"answer": step_to_chunk(progress.question, step)["answer"]})
        return False


async def _repeat(steps: AsyncGenerator[Step, None], progress: Progress) -> None:
    """Go through the steps that are known."""
    for _ in range(progress.known):
        step = await anext(steps, None)
        if step is not None:
            progress.add(step)
