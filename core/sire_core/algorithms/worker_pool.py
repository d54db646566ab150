"""Run an async function over many items with few tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["bounded_map"]

T = TypeVar("T")
R = TypeVar("R")


async def bounded_map(
    function: Callable[[T], Awaitable[R]], items: Iterable[T], workers: int
) -> AsyncGenerator[list[tuple[T, R]], None]:
    """Apply `function` to every item, at most `workers` at a time.

    The items are pulled from one iterator by a fixed set of tasks, so that memory does not grow with their number.
    When a call raises, no further item is begun; what is under way is finished and yielded first, then the error is
    raised. Leaving the loop early cancels what is under way: wrap the iterator in `contextlib.aclosing`.

    Args:
        function: What to do; several calls overlap.
        items: Pulled one by one, only when a worker is free.
        workers: Number of tasks, at least 1.

    Yields:
        Lists of (item, result) that finished since the last list, in the order in which they finished.
    """
    source = iter(items)
    finished: asyncio.Queue[tuple[T, R] | None] = asyncio.Queue(maxsize=2 * workers)
    errors: list[BaseException] = []

    async def work() -> None:
        try:
            while not errors:
                try:
                    item = next(source)
                except StopIteration:
                    break
                await finished.put((item, await function(item)))
        except Exception as error:  # noqa: BLE001 - raised again by the consumer, after the finished results
            errors.append(error)
        await finished.put(None)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        running = workers
        while running:
            batch = [await finished.get()]
            while not finished.empty():
                batch.append(finished.get_nowait())
            running -= batch.count(None)
            results = [pair for pair in batch if pair is not None]
            if results:
                yield results
        if errors:
            raise errors[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
