"""Graphs of reasoning, whose every step can be looked at, edited, stored and resumed, and their state."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import get_async_callback_manager_for_config, get_callback_manager_for_config
from typing_extensions import NotRequired, TypedDict, Unpack

from langchain_sire.chat import LLMLike
from langchain_sire.opening import SPELLINGS
from langchain_sire.reasoning import (
    QUESTION_KEYS,
    Reasoner,
    atraced,
    call_options,
    make_reasoner,
    read_question,
    retriever_source,
    step_to_chunk,
    step_to_dict,
    traced,
)
from sire_core.arguments import lists_options
from sire_core.errors import ConfigurationError, QueryError
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.reason import Answer, AnswerPiece, PassageSource, ReasoningStep, Thought
from sire_core.reason.options import IRCoTOptions, SelfAskOptions
from sire_core.reason.prompts import Reading
from sire_core.reason.replay import PausedError, RecordedModel, RecordedSearches
from sire_core.reason.steps import NextSearch

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    from sire_core.protocols import FloatArray

_RESULT = ("answer", "citations", "findings", "stop", "sufficient", "outcome", "usage", "note", "documents")


class ReasoningState(TypedDict, total=False):
    """Plain JSON. `question` is the caller's, and `query` may be edited before it is searched for.

    Attributes:
        question: What is asked.
        k: As in a call of the chain; this, `filter` and `as_of` stay on a thread until others are given.
        filter: As in a call of the chain.
        as_of: As in a call of the chain.
        thought: The last sentence of the reasoning.
        query: What is searched for next; empty when the reasoning is over. What a person writes here (`update_state`)
            is searched for in the place of the model's query, and stays so in what the model is told.
        edits: These queries, by the number of the round.
        steps: All steps so far, as `step_to_dict` gives them; documents are dictionaries.
        replies: What the model has answered, by the number of its call, and `search`, what rankers have asked it or
            what a retriever that is not ours has found.
        next: The node that comes next, or `end`.
        asked: The question that all this belongs to, with its `k`, `filter` and `as_of`.
        answer: With the rest, what `ReasoningChain` returns.
    """

    question: str
    k: int | None
    filter: str | dict[str, Any] | None
    as_of: str | None
    thought: str
    query: str
    steps: list[dict[str, Any]]
    edits: dict[str, str]
    replies: dict[str, Any]
    next: str
    asked: dict[str, Any]
    answer: str
    documents: list[dict[str, Any]]
    citations: list[int]
    findings: list[str]
    stop: str
    sufficient: bool
    outcome: str
    usage: dict[str, int]
    note: str


class ReasoningInput(TypedDict):
    """Input of a graph."""

    question: str
    k: NotRequired[int | None]
    filter: NotRequired[str | dict[str, Any] | None]
    as_of: NotRequired[str | None]


class Progress:
    """One node's work on a state."""

    def __init__(
        self, node: str, question: str, state: ReasoningState, *, reads: bool = False, searches: bool = True
    ) -> None:
        # Another question on the same thread, or the same one again, begins again.
        self.options = call_options(state)
        asked = {"question": question, **self.options}
        going = state.get("asked") == asked and state.get("next") == node
        self.question = question
        self.known = len(state["steps"]) if going else 0
        """Steps that earlier nodes have made."""
        self.query = (state["query"] if node == "retrieve" else "") if going else question
        """Query of the next step; empty when it is no search."""
        stored_replies = state["replies"] if going else {"model": {}, "search": {}}
        self.replies: dict[str, Any] = {name: dict(replies) for name, replies in stored_replies.items()}
        self.edits = _edits(state, edited=node == "retrieve") if going else {}
        self._reads = reads
        self._update = ReasoningState(
            asked=asked, thought="", query="", steps=[], next="end", replies=self.replies, edits=self.edits
        )
        if not going:  # nothing of an earlier question may stand beside this one
            empty = ReasoningState(answer="", documents=[], citations=[], findings=[], stop="", usage={}, note="")
            self._update.update(empty | ReasoningState(sufficient=False, outcome=""))
        self._following = NextSearch(question, searches=searches)

    def add(self, step: ReasoningStep) -> bool:
        """Note a step. Whether the node's work ends with it."""
        self._update["steps"].append(step_to_dict(step))
        self._following.saw(step)
        query = self._update["query"] = self._following.query
        self._update["next"] = "retrieve" if query else "end"
        if isinstance(step, Thought):
            self._update["thought"] = step.text
        elif isinstance(step, Answer):
            result = step_to_chunk(self.question, step, plain=True)
            self._update.update({key: result[key] for key in _RESULT})  # type: ignore[typeddict-item]  # the state's own keys
        return bool(query)

    def pause(self, paused: PausedError) -> None:
        """The next call of the model belongs to the next node."""
        last = self._update["steps"][-1] if self._update["steps"] else {}
        was_retrieved = self._reads and last.get("type") == "retrieved" and last["number"] > 0
        reads = paused.schema is not None and issubclass(paused.schema, Reading)  # reports are read in a form of it
        self._update["next"] = "answer" if reads else "read" if was_retrieved else "think"

    def update(self) -> ReasoningState:
        """Output of the node."""
        return self._update


def _edits(state: ReasoningState, *, edited: bool) -> dict[str, str]:
    """Queries of people, by round; also the one that stands in the place of the model's last query now."""
    edits = dict(state.get("edits", {}))
    last_question = next((step for step in reversed(state["steps"]) if step["type"] == "sub_question"), None)
    if edited and last_question is not None and state["query"] != last_question["text"]:
        if not isinstance(state["query"], str) or not state["query"].strip():
            raise QueryError("The query that is to be searched for next is empty: write one, or leave the model's.")
        edits[str(last_question["number"])] = state["query"]
    return edits


_INPUT = tuple(ReasoningInput.__annotations__)
_MIN_LIKENESS = 0.81  # Of a misspelled key: `fitler`; `file` is less like `filter`
_NODES = {"ircot": ("retrieve", "think", "answer"), "self-ask": ("retrieve", "think", "read", "answer")}


@lists_options(IRCoTOptions)
def create_ircot_graph(
    retriever: BaseRetriever | Index,
    llm: LLMLike = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
    stream_answer: bool = False,
    **options: Unpack[IRCoTOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """IRCoT as a LangGraph graph with the nodes `retrieve`, `think` and `answer`, each with at most one model call.

    Ask with `graph.invoke({"question": ...}, config)`. The state is `ReasoningState`, plain JSON; its final value is
    what `create_ircot_chain` returns. With a checkpointer, `graph.invoke(None, config)` resumes an interrupted or
    killed run without repeating a model call. Searches of earlier nodes are repeated, except those of other retrievers,
    whose results are stored. `timeout` applies to each node.

    With `interrupt_before=["retrieve"]`, a person can replace the model's query: `graph.update_state(config, {"query":
    "..."})`, then `graph.invoke(None, config)`.

    `k`, `filter` and `as_of` beside the question are those of a call of `create_ircot_chain`. A key that looks
    like a misspelled one is refused; LangGraph ignores all others, as those of a graph around this one.

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
    pauses = {"interrupt_before": interrupt_before, "interrupt_after": interrupt_after}
    return _graph("ircot", retriever, llm, checkpointer, stream_answer=stream_answer, **pauses, **options)


@lists_options(SelfAskOptions)
def create_self_ask_graph(
    retriever: BaseRetriever | Index,
    llm: LLMLike = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
    stream_answer: bool = False,
    **options: Unpack[SelfAskOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Self-ask as a graph of `retrieve`, `think` (asks a follow-up question), `read` (answers it) and `answer`.

    Arguments and errors are those of `create_ircot_graph`, with the settings of `create_self_ask_chain`.
    """
    pauses = {"interrupt_before": interrupt_before, "interrupt_after": interrupt_after}
    return _graph("self-ask", retriever, llm, checkpointer, stream_answer=stream_answer, **pauses, **options)


def _graph(
    strategy: str,
    retriever: BaseRetriever | Index,
    llm: LLMLike,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    *,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
    stream_answer: bool = False,
    **options: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
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
    work = _Work(
        make_reasoner(strategy, retriever, llm, {**options, "on_model_error": "return"}), streams=stream_answer
    )
    nodes = _NODES[strategy]
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(ReasoningState, input_schema=ReasoningInput)
    for node in nodes:
        graph.add_node(node, RunnableLambda(partial(work.run, node), partial(work.arun, node), name=node))
    graph.add_edge(START, "retrieve")
    for node in nodes[:-1]:
        graph.add_conditional_edges(node, _next_node, {**{name: name for name in nodes}, "end": END})
    graph.add_edge("answer", END)
    name = {"ircot": "IRCoT", "self-ask": "SelfAsk"}[strategy]
    before, after = [*interrupt_before], [*interrupt_after]
    compiled = graph.compile(checkpointer, interrupt_before=before, interrupt_after=after, name=name)
    compiled.nodes[START].mapper = _checked_input
    return compiled


def _checked_input(value: Any) -> Any:
    """Refuse misspelled keys of an input, which LangGraph would drop; others may be those of a graph around ours."""
    entries = value if isinstance(value, Mapping) else {}
    for key in entries:
        word = str(key).lower().replace("-", "_")
        options = [SPELLINGS.get(word), *get_close_matches(word, _INPUT, 1, _MIN_LIKENESS)]
        if key in QUESTION_KEYS and "question" not in entries:
            options = ["question"]
        elif key in ReasoningState.__annotations__:
            continue
        if option := next((one for one in options if one in _INPUT), None):
            raise ConfigurationError(
                f"The input has the key {key!r}, which a graph would ignore; did you mean {option!r}? It reads "
                f"{', '.join(_INPUT)}."
            )
    return value


def _next_node(state: ReasoningState) -> str:  # LangGraph reads its signature, which `itemgetter` has not
    return state["next"]


class _Work:
    """Work of the nodes: resume the reasoning where the last one left it, and go on until the next call."""

    def __init__(self, reasoner: Reasoner, *, streams: bool) -> None:
        self._reasoner = reasoner
        self._streams = streams
        self._vectors: dict[tuple[str, str], FloatArray] = {}

    def run(self, node: str, state: ReasoningState, config: RunnableConfig) -> ReasoningState:
        progress, steps = self._start(node, state)
        callbacks = get_callback_manager_for_config(config)
        try:
            run_sync(_repeat(steps, progress))
            with closing(traced(steps, callbacks, progress.query, **self._traces(progress))) as walk:
                for step in walk:
                    if self._note(step, progress):
                        break
        except PausedError as paused:
            progress.pause(paused)
        return progress.update()

    async def arun(self, node: str, state: ReasoningState, config: RunnableConfig) -> ReasoningState:
        progress, steps = self._start(node, state)
        callbacks = get_async_callback_manager_for_config(config)
        try:
            await _repeat(steps, progress)
            async with aclosing(atraced(steps, callbacks, progress.query, **self._traces(progress))) as walk:
                async for step in walk:
                    if self._note(step, progress):
                        break
        except PausedError as paused:
            progress.pause(paused)
        return progress.update()

    def _start(self, node: str, state: ReasoningState) -> tuple[Progress, AsyncGenerator[ReasoningStep, None]]:
        reasoner = self._reasoner
        reads = reasoner.strategy == "self-ask" and reasoner.searches
        progress = Progress(node, read_question(state), state, reads=reads, searches=reasoner.searches)
        replies = progress.replies
        if isinstance(reasoner.source, (Index, PassageSource)):
            source: Any = RecordedSearches(reasoner.source, replies["search"], self._vectors)
            model = reasoner.model or reasoner.source.language_model
        else:
            source = retriever_source(reasoner.retriever, replies["search"])
            model = reasoner.model
        if model is not None:
            limit = 0 if node == "retrieve" else 1
            model = RecordedModel(model, replies["model"], numbered=True, max_calls=limit)
        edits = {int(number): query for number, query in progress.edits.items()}
        streams = self._streams and node == "answer"
        reasoner = replace(reasoner, model=model, source=source)
        return progress, reasoner.steps(progress.question, **progress.options, stream=streams, edits=edits)

    def _traces(self, progress: Progress) -> dict[str, Any]:
        return self._reasoner.traces(progress.options.get("k"), progress.options.get("filter"))

    @staticmethod
    def _note(step: ReasoningStep, progress: Progress) -> bool:
        """Note a step, or pass on a piece of the answer. Whether the node's work ends with it."""
        if not isinstance(step, AnswerPiece):
            return progress.add(step)
        from langgraph.config import get_stream_writer

        get_stream_writer()({"answer": step_to_chunk(progress.question, step)["answer"]})
        return False


async def _repeat(steps: AsyncGenerator[ReasoningStep, None], progress: Progress) -> None:
    for _ in range(progress.known):
        step = await anext(steps, None)
        if step is not None:
            progress.add(step)
