"""Calling LlamaIndex objects so that they neither hold up a loop nor carry connections from one loop to another."""

from __future__ import annotations

import dis
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from sire_core.models.sync import in_thread, iterate_in_thread, serves_sync_call

T = TypeVar("T")


async def call(
    sync: Callable[..., T], native: Callable[..., Awaitable[T]], *args: Any, is_async: bool | None = None
) -> T:
    """Call an object the way its caller came.

    A sync call of ours uses the sync method in a worker thread: async connections of the object belong to the loop of
    the user. An async call uses the async method, unless that would only call the sync one on the loop.

    Args:
        sync: The sync method.
        native: The async one.
        *args: Passed to either.
        is_async: Whether the async method really waits; None looks, see `awaits`.
    """
    if serves_sync_call() or not (awaits(native) if is_async is None else is_async):
        with suppress(NotImplementedError):  # a class that is async only; one that is neither raises below
            return await in_thread(sync, *args)
    return await native(*args)


async def call_streaming(
    sync: Callable[[], Generator[T, None, None]],
    native: Callable[[], Awaitable[AsyncGenerator[T, None]]],
    *,
    is_async: bool,
) -> AsyncGenerator[T, None]:
    """`call` for methods that give one thing after the other."""
    if serves_sync_call() or not is_async:
        begun = False
        try:
            async with aclosing(iterate_in_thread(sync)) as walk:
                async for item in walk:
                    begun = True
                    yield item
        except NotImplementedError:
            if begun:
                raise
        else:
            return
    items = await native()
    try:
        async for item in items:
            yield item
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


def awaits(method: Callable[..., Any]) -> bool:
    """Whether an async method waits for anything; many integrations only call their sync twin and block the loop."""
    function = inspect.unwrap(getattr(method, "__func__", method))
    code = getattr(function, "__code__", None)
    if code is None:
        return True
    return any(step.opname in ("GET_AWAITABLE", "GET_ANEXT") for step in dis.get_instructions(code))


def overrides(thing: object, base: type, name: str) -> bool:
    """Whether a class has a method of its own in the place of a base's; LlamaIndex wraps inherited ones again."""
    return inspect.unwrap(getattr(type(thing), name)) is not inspect.unwrap(getattr(base, name))
