"""`ReasoningChain`: a reasoning strategy as a Runnable that streams its steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, closing
from functools import partial, reduce
from operator import add
from typing import Any, Union

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import AddableDict, Runnable, RunnableConfig

from langchain_sire.reasoner import Reasoner
from langchain_sire.retriever import FilterLike
from langchain_sire.runs import atraced, traced
from langchain_sire.steps import question_of, step_to_chunk
from sire_core.reason import AnswerPiece

__all__ = ["ReasoningChain"]

Question = Union[str, Mapping[str, Any]]


class ReasoningChain(Runnable[Question, dict[str, Any]]):
    """A question in, a cited answer out, with every step streamed as it happens.

    The input is a text, or a mapping with `question`, `input` or `query`. Calls take `k` and `filter` as those of
    `SireRetriever` do. `stream` and `astream` yield one dictionary per step, `{"steps": [step]}`, see `step_to_dict`,
    and then the answer while it is written, `{"steps": [], "answer": piece}`; a model that cannot stream gives one
    piece. The last dictionary holds the rest of the result. The chunks add up to what `invoke` returns:

    * `answer`, with citations such as [1], and `citations`, the numbers of the documents it cites, from 1;
    * `documents`, the final context in order;
    * `stop`, why the reasoning ended, and `note`, what went wrong;
    * `sufficient`, whether the reader found the evidence sufficient;
    * `usage`: calls, tokens, searches;
    * `steps` and `question`.

    An answer that came malformed is asked for again: then the pieces hold both, the valid one below an empty line, and
    the last step's `text` it alone. One that breaks off keeps what came; `stop` and `note` say so.

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

    def invoke(self, input: Question, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:  # noqa: A002 - LangChain's name
        """Run to the end."""
        chunks = self._transform_stream_with_config(iter([input]), partial(self._run, streams=False), config, **kwargs)
        return dict(reduce(add, chunks))

    async def ainvoke(self, input: Question, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:  # noqa: A002 - as above
        """Run to the end."""
        run = partial(self._arun, streams=False)
        chunks = self._atransform_stream_with_config(_once(input), run, config, **kwargs)
        return dict(reduce(add, [chunk async for chunk in chunks]))

    def stream(
        self,
        input: Question,  # noqa: A002 - as above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[dict[str, Any]]:
        """Yield each step when it happens."""
        return self.transform(iter([input]), config, **kwargs)

    def astream(
        self,
        input: Question,  # noqa: A002 - as above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield each step when it happens."""
        return self.atransform(_once(input), config, **kwargs)

    def transform(
        self,
        input: Iterator[Question],  # noqa: A002 - as above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[dict[str, Any]]:
        """Yield each step when it happens; the question may come in pieces."""
        return self._transform_stream_with_config(input, self._run, config, **kwargs)

    def atransform(
        self,
        input: AsyncIterator[Question],  # noqa: A002 - as above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[dict[str, Any]]:
        """See `transform`."""
        return self._atransform_stream_with_config(input, self._arun, config, **kwargs)

    def _run(
        self,
        given: Iterator[Any],
        run_manager: CallbackManagerForChainRun,
        k: int | None = None,
        filter: FilterLike = None,  # noqa: A002 - the word users look for
        *,
        streams: bool = True,
        **unknown: Any,
    ) -> Iterator[AddableDict]:
        _refuse(unknown)
        question, reasoner = question_of(reduce(add, given)), self.reasoner
        steps = reasoner.steps(question, k, filter, stream=streams)
        streamed = False
        with closing(traced(steps, run_manager.get_child(), question, searches=reasoner.searches)) as walk:
            for step in walk:
                streamed |= isinstance(step, AnswerPiece)
                yield step_to_chunk(question, step, streamed=streamed)

    async def _arun(
        self,
        given: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        k: int | None = None,
        filter: FilterLike = None,  # noqa: A002 - as above
        *,
        streams: bool = True,
        **unknown: Any,
    ) -> AsyncIterator[AddableDict]:
        _refuse(unknown)
        question, reasoner = question_of(reduce(add, [piece async for piece in given])), self.reasoner
        steps = reasoner.steps(question, k, filter, stream=streams)
        streamed = False
        async with aclosing(atraced(steps, run_manager.get_child(), question, searches=reasoner.searches)) as walk:
            async for step in walk:
                streamed |= isinstance(step, AnswerPiece)
                yield step_to_chunk(question, step, streamed=streamed)


async def _once(given: Question) -> AsyncIterator[Question]:
    yield given


def _refuse(arguments: Mapping[str, Any]) -> None:
    # Inside of the generators, because LangChain does not survive one that cannot even be made.
    if arguments:
        raise TypeError(f"a call takes k and filter, not {', '.join(arguments)}")
