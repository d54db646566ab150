"""Sync iterators for async code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing
from typing import TypeVar, Union

__all__ = ["iterate_in_thread"]

T = TypeVar("T")


class _End:
    """Comes after the last item."""


async def iterate_in_thread(make: Callable[[], Generator[T, None, None]]) -> AsyncGenerator[T, None]:
    """The items of a sync generator that runs in a worker thread, each as soon as it is there.

    When this generator is closed early, the other is closed after its next item; nobody waits for that.

    Args:
        make: Makes the generator, in the worker thread.
    """
    loop = asyncio.get_running_loop()
    items: asyncio.Queue[Union[T, _End]] = asyncio.Queue()
    left = threading.Event()

    def work() -> None:
        with closing(make()) as walk:
            for item in walk:
                if left.is_set():
                    return
                loop.call_soon_threadsafe(items.put_nowait, item)

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # seen, even if nobody waits for it any more
        items.put_nowait(_End())

    working = asyncio.create_task(asyncio.to_thread(work))
    working.add_done_callback(ended)
    try:
        while not isinstance(item := await items.get(), _End):
            yield item
        await working
    finally:
        left.set()
