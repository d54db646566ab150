"""`single`: one search, one answer; what the other strategies are measured against."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from sire_core.reason.run import Run, run_strategy, start
from sire_core.reason.steps import ReasoningStep

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel
    from sire_core.reason.limits import ReasoningLimits
    from sire_core.reason.reader import ReaderConfig
    from sire_core.reason.searchers import FilterLike, Searchable

__all__ = ["single"]


async def single(
    index: Searchable,
    question: str,
    *,
    model: LanguageModel | None = None,
    k: int | None = None,
    filter: FilterLike = None,  # noqa: A002 - the word users look for
    limits: ReasoningLimits | None = None,
    answer: bool = True,
    stream: bool = False,
    reader: ReaderConfig | None = None,
) -> AsyncGenerator[ReasoningStep, None]:
    """Search once and ask for the answer; one call. The hits are those of `Index.search`.

    Args:
        index: What is searched.
        question: The question.
        model: Who answers; None takes the index's own. Not needed when `answer` is off.
        k: Hits of the context; None means 10.
        filter: As in `Index.search`.
        limits: Bounds of calls, tokens and time.
        answer: Whether the answer is asked for.
        stream: Whether it also comes piece by piece, as `AnswerPiece`s before the `Answer`.
        reader: How the answer is read from the hits; see `ReaderConfig`.

    Raises:
        QueryError: Empty question or k below one.
        ConfigurationError: There is no language model, or the filter cannot be read.
        IndexMissingError: There is no index.
    """
    size = 10 if k is None else k
    run = await start(
        index,
        question,
        model=model,
        k=size,
        where=filter,
        limits=limits,
        strategy="single",
        steps=0,
        answers=answer,
        streams=stream,
        reader=reader,
        thinks=False,
    )
    played = run_strategy(run, _once(run, size))
    try:
        async for step in played:
            yield step
    finally:
        await played.aclose()


async def _once(run: Run, k: int) -> AsyncGenerator[ReasoningStep, None]:
    yield await run.evidence.retrieve(0, run.question, k)
    run.stop = "empty_index" if run.evidence.empty else "answered" if run.answers else "done"
