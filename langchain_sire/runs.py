"""A reasoning in a trace: its model calls and searches become child runs of the run that it belongs to."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, closing
from typing import Any, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document

from langchain_sire.any_retriever import to_document
from langchain_sire.callbacks import child_runs
from sire_core.reason import ReasoningStep, Retrieved, iterate_sync
from sire_core.reason.steps import NextSearch

__all__ = ["atraced", "traced"]

Manager = TypeVar("Manager", CallbackManager, AsyncCallbackManager)

_NAME = "SireSearch"


def traced(
    steps: AsyncGenerator[ReasoningStep, None],
    callbacks: CallbackManager,
    question: str,
    *,
    searches: bool = True,
    about: Mapping[str, Any] | None = None,
) -> Generator[ReasoningStep, None, None]:
    """Steps as they happen, from sync code, reported to the callbacks of the run that they belong to.

    Args:
        steps: A strategy under way; closed at the end.
        callbacks: `run_manager.get_child()`.
        question: What is searched for first; empty when the next step is no search.
        searches: Whether sub-questions are searched for.
        about: Metadata of the searches' runs.
    """
    following = NextSearch(question, searches=searches)
    callbacks = _knowing(callbacks, about)
    with closing(cast("Generator[ReasoningStep, None, None]", iterate_sync(steps))) as walk:
        while True:
            query = following.query
            run = callbacks.on_retriever_start(None, query, name=_NAME) if query else None
            try:
                with child_runs(run.get_child() if run else callbacks):
                    step = next(walk, None)
            except BaseException as error:
                if run:
                    run.on_retriever_error(error)
                raise
            if run:
                run.on_retriever_end(_documents(step))
            if step is None:
                return
            following.saw(step)
            yield step


async def atraced(
    steps: AsyncGenerator[ReasoningStep, None],
    callbacks: AsyncCallbackManager,
    question: str,
    *,
    searches: bool = True,
    about: Mapping[str, Any] | None = None,
) -> AsyncGenerator[ReasoningStep, None]:
    """See `traced`."""
    following = NextSearch(question, searches=searches)
    callbacks = _knowing(callbacks, about)
    async with aclosing(steps) as walk:
        while True:
            query = following.query
            run = await callbacks.on_retriever_start(None, query, name=_NAME) if query else None
            try:
                with child_runs(run.get_child() if run else callbacks):
                    step = await anext(walk, None)
            except BaseException as error:
                if run:
                    await run.on_retriever_error(error)
                raise
            if run:
                await run.on_retriever_end(_documents(step))
            if step is None:
                return
            following.saw(step)
            yield step


def _knowing(callbacks: Manager, about: Mapping[str, Any] | None) -> Manager:
    """Callbacks whose own runs have this metadata; runs below them do not."""
    knowing = callbacks.copy()
    knowing.add_metadata(dict(about or {}), inherit=False)
    return knowing


def _documents(step: ReasoningStep | None) -> list[Document]:
    return [to_document(hit) for hit in step.hits] if isinstance(step, Retrieved) else []
