"""Run an async function over many items with few tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from itertools import takewhile
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def bounded_map(
    function: Callable[[T], Awaitable[R]], items: Iterable[T], workers: int
) -> AsyncGenerator[list[tuple[T, R]], None]:
    """Apply `function` to every item, at most `workers` at a time."""
    source = iter(items)  # advanced between awaits only, so that one iterator serves all
    finished: asyncio.Queue[tuple[T, R] | None] = asyncio.Queue()  # results, and None from every worker that ends
    room = asyncio.Semaphore(2 * workers)  # holds workers back while results are not taken
    errors: list[BaseException] = []

    async def work() -> None:
        try:
            for item in takewhile(lambda _: not errors, source):
                result = await function(item)
                await room.acquire()
                finished.put_nowait((item, result))
        except BaseException as error:  # noqa: BLE001 - raised again by the consumer, after the finished results
            errors.append(error)
        finished.put_nowait(None)

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
            for _ in results:
                room.release()
        if errors:
            raise errors[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def map_all(
    function: Callable[[T], Awaitable[R]],
    items: Sequence[T],
    workers: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[R]:
    """Results of every item in the order of the items; see `bounded_map`."""
    by_number: dict[int, R] = {}

    async def one(number: int) -> R:
        return await function(items[number])

    if progress and items:
        progress(0, len(items))
    async with aclosing(bounded_map(one, range(len(items)), workers)) as results:
        async for batch in results:
            by_number.update(batch)
            if progress:
                progress(len(by_number), len(items))
    return [by_number[number] for number in range(len(items))]
