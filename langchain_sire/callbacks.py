"""Passing callbacks down to the models inside a search, so that a trace shows every inner call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableConfig

# Context variables travel with tasks, with `asyncio.to_thread` and with the sync bridge.
_callbacks: ContextVar[Callbacks] = ContextVar("langchain_sire_callbacks", default=None)


@contextmanager
def child_runs(callbacks: Callbacks) -> Iterator[None]:
    """Inner model calls of this block report to these callbacks (`run_manager.get_child()`)."""
    token = _callbacks.set(callbacks)
    try:
        yield
    finally:
        _callbacks.reset(token)


def inner_config() -> RunnableConfig:
    """The configuration of an inner call. Outside of `child_runs` LangChain's own context decides."""
    callbacks = _callbacks.get()
    return {} if callbacks is None else {"callbacks": callbacks}
