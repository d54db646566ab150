"""Passing callbacks down to the models inside a search, so that a trace shows every inner call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableConfig

from sire_core.models.sync import in_thread, serves_sync_call

T = TypeVar("T")

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


async def call(sync: Callable[..., T], native: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Call a LangChain object the way its caller came.

    A sync call of ours uses the object's sync method in a worker thread: its async connections belong to the loop of
    the user, not to ours. An async call uses the async method, which LangChain itself runs in a thread where the class
    has none of its own.
    """
    if serves_sync_call():
        with suppress(NotImplementedError):  # a class that is async only; one that is neither raises below
            return await in_thread(sync, *args)
    return await native(*args)
