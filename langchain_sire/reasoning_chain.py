"""`ReasoningChain`: a reasoning strategy as a Runnable that streams its steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, closing
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, Union

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import AddableDict, Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, create_model

from langchain_sire.chat import LLMLike
from langchain_sire.reasoner import Reasoner, make_reasoner
from langchain_sire.steps import atraced, question_of, step_to_chunk, traced
from sire_core.filters import FilterLike
from sire_core.index import Index
from sire_core.reason import AnswerPiece, ReasoningStep
from sire_core.search.validity import Day

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever


Question = Union[str, Mapping[str, Any]]


class ReasoningChain(Runnable[Question, dict[str, Any]]):
    """Answers a question with citations, and streams every step.

    The input is a string, or a mapping with `question`, `input` or `query`. Calls accept `k`, `filter` and `as_of` as a
    `SireRetriever` does. `stream` and `astream` yield one dictionary per step, `{"steps": [step]}`, see `step_to_dict`,
    and then the answer in pieces, `{"steps": [], "answer": piece}`; a model that cannot stream gives one piece. The
    last dictionary has the rest of the result. Everything is plain JSON; documents are dictionaries. The chunks add up
    to the result of `invoke`, in which documents are `Document`s:

    * `answer`, with citations such as [1], and `citations`, the numbers of the documents it cites, from 1;
    * `findings` of cited reports: "3.2" is finding 2 of document 3;
    * `documents`, the final context in order: the documents that were put in, unless the retriever `returns` "units";
    * `stop`, why the reasoning ended, and `note`, what went wrong;
    * `sufficient`, whether the reader found the evidence sufficient;
    * `usage`: calls, tokens, searches;
    * `steps` and `question`.

    A malformed answer is requested again. The pieces then contain both, with the valid one after an empty line; the
    last step's `text` has only the valid one. If an answer breaks off, the received part is kept; `stop` and `note` say
    so.

    Model calls and searches are child runs of the chain's run. A stream that is closed early makes no further call.

    Args:
        reasoner: The strategy.
        name: Of the run in a trace.
    """

    def __init__(self, reasoner: Reasoner, name: str) -> None:
        self.reasoner = reasoner
        self.name = name

    def __repr__(self) -> str:
        return f"ReasoningChain({self.name}, {self.reasoner.config}, {self.reasoner.limits})"

    def invoke(self, input: Question, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Run to the end."""
        chunks = self._transform_stream_with_config(iter([input]), partial(self._run, streams=False), config, **kwargs)
        return dict(reduce(add, chunks))

    async def ainvoke(self, input: Question, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Run to the end."""
        run = partial(self._arun, streams=False)
        chunks = self._atransform_stream_with_config(_once(input), run, config, **kwargs)
        return dict(reduce(add, [chunk async for chunk in chunks]))

    def stream(self, input: Question, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Yield each step when it happens."""
        run = partial(self._run, plain=True)
        return self._transform_stream_with_config(iter([input]), run, config, **kwargs)

    def astream(
        self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield each step when it happens."""
        run = partial(self._arun, plain=True)
        return self._atransform_stream_with_config(_once(input), run, config, **kwargs)

    def transform(
        self, input: Iterator[Question], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[dict[str, Any]]:
        """Yield each step when it happens; the question may come in pieces."""
        return self._transform_stream_with_config(input, self._run, config, **kwargs)

    def atransform(
        self, input: AsyncIterator[Question], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """See `transform`."""
        return self._atransform_stream_with_config(input, self._arun, config, **kwargs)

    def _run(
        self, inputs: Iterator[Any], run_manager: CallbackManagerForChainRun, **options: Any
    ) -> Iterator[AddableDict]:
        call = _Call(self.reasoner, question_of(reduce(add, inputs)), **options)
        with closing(traced(call.steps(), run_manager.get_child(), call.question, **call.traces())) as walk:
            for step in walk:
                yield call.chunk(step)

    async def _arun(
        self, inputs: AsyncIterator[Any], run_manager: AsyncCallbackManagerForChainRun, **options: Any
    ) -> AsyncIterator[AddableDict]:
        call = _Call(self.reasoner, question_of(reduce(add, [piece async for piece in inputs])), **options)
        async with aclosing(atraced(call.steps(), run_manager.get_child(), call.question, **call.traces())) as walk:
            async for step in walk:
                yield call.chunk(step)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """The chain as a tool for agents; see `create_sire_answer_tool`.

        Args:
            args_schema: In the place of our arguments, for descriptions of your own: `question` (or `input`, `query`),
                and what else you want of `k`, `filter`, `as_of` and `show_steps`.
            name: How the model calls it.
            description: When to call it.
            arg_types: The same as names and types.
        """
        if arg_types is not None and args_schema is None:
            fields: dict[str, Any] = {key: (kind, ...) for key, kind in arg_types.items()}
            args_schema = create_model("AnswerArguments", **fields)
        from langchain_sire.tool import create_sire_answer_tool

        words: dict[str, Any] = {key: word for key, word in (("name", name), ("description", description)) if word}
        return create_sire_answer_tool(self, args_schema=args_schema, **words)


class _Call:
    """One question to a chain; made inside of the generators, as LangChain does not survive one that fails before."""

    def __init__(
        self,
        reasoner: Reasoner,
        question: str,
        k: int | None = None,
        filter: FilterLike = None,
        as_of: Day = None,
        *,
        streams: bool = True,
        plain: bool = False,
        recorded: list[ReasoningStep] | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise TypeError(f"a call takes k, filter and as_of, not {', '.join(unknown)}")
        self.question = question
        self.steps = partial(reasoner.steps, question, k, filter, as_of, stream=streams)
        self.traces = partial(reasoner.traces, k, filter)
        self._plain, self._recorded, self._streamed = plain, recorded, False

    def chunk(self, step: ReasoningStep) -> AddableDict:
        """A step as the chain's next output."""
        self._streamed |= isinstance(step, AnswerPiece)
        if self._recorded is not None:
            self._recorded.append(step)
        return step_to_chunk(self.question, step, streamed=self._streamed, plain=self._plain)


async def _once(question: Question) -> AsyncIterator[Question]:
    yield question


def create_ircot_chain(retriever: BaseRetriever | Index, llm: LLMLike = None, **options: Any) -> ReasoningChain:
    """A chain that alternates reasoning and searching, then answers with citations (IRCoT).

    Interleaved retrieval and chain of thought (Trivedi et al.).

    Args:
        retriever: Any LangChain retriever. The `filter`, `as_of`, `recipe` and `returns` of a `SireRetriever` apply,
            and not its `k`: how much is searched for and read belongs to the strategy. Other retrievers are used as
            they are, and calls cannot filter them.
        llm: Reasons and answers: a LangChain chat model or a `LanguageModel`. None uses that of the index.
        **options: `k`, the number of documents in the final context (default: 10, or the up to 15 that the `original`
            flavor collects); settings of `sire_core.reason.IRCoTConfig`
            (`flavor` and others), whose `k` is called `search_k` here; and limits of
            `sire_core.reason.ReasoningLimits`: `max_steps`, `max_calls`, `max_tokens`, `timeout`.
            `on_model_error="return"` returns the evidence and an empty answer if the model failed before there was an
            answer; by default `invoke` and the rest raise `NoAnswerError`, which has the evidence.

    Raises:
        ConfigurationError: An option is unknown or invalid.
    """
    return ReasoningChain(make_reasoner("ircot", retriever, llm, options), "IRCoT")


def create_self_ask_chain(retriever: BaseRetriever | Index, llm: LLMLike = None, **options: Any) -> ReasoningChain:
    """A chain that asks and answers follow-up questions, then answers with citations (self-ask).

    Self-ask (Press et al.).

    Args:
        retriever: See `create_ircot_chain`.
        llm: See `create_ircot_chain`.
        **options: As in `create_ircot_chain`, with the settings of `sire_core.reason.SelfAskConfig` (`mode` and others)
            in the place of those of IRCoT.

    Raises:
        ConfigurationError: An option is unknown or invalid.
    """
    return ReasoningChain(make_reasoner("self-ask", retriever, llm, options), "SelfAsk")
