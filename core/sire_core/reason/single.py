"""`single`: one search, one answer; the baseline of the other strategies."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from sire_core.reason.runner import HITS, ReasoningOptions, Run, Strategy, run_strategy
from sire_core.reason.steps import ReasoningStep

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.reason.searchers import Searchable

__all__ = ["single"]


def single(
    index: Searchable, question: str, **options: Unpack[ReasoningOptions]
) -> AsyncGenerator[ReasoningStep, None]:
    """Search once and answer in one model call. The hits are those of `Index.search`.

    Args:
        index: An `Index` with any recipe, or a `RetrieverSource` over any other retriever.
        question: The question.
        **options: See `ReasoningOptions`; with `answer=False`, no model is needed.

    Raises:
        QueryError: Empty question or k below one.
        ConfigurationError: There is no language model, or the filter is invalid.
        IndexMissingError: There is no index.
        TypeError: An option is unknown.
    """
    return run_strategy(Strategy("single", _once, settings=(), thinks=False), index, question, options)


async def _once(run: Run) -> AsyncGenerator[ReasoningStep, None]:
    yield await run.evidence.retrieve(0, run.question, run.k or HITS)
    run.stop = "empty_index" if run.evidence.empty else "answered" if run.answers else "done"
