"""Run an async function over many items with few tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def bounded_map(
    function: Callable[[T], Awaitable[R]], items: Iterable[T], workers: int
) -> AsyncGenerator[list[tuple[T, R]], None]:
    """Apply `function` to every item, at most `workers` at a time."""
    state = _State(function, iter(items), asyncio.Queue(), asyncio.Semaphore(2 * workers))
    tasks = [asyncio.create_task(state.work()) for _ in range(workers)]
    try:
        running = workers
        while running:
            batch = [await state.finished.get()]
            while not state.finished.empty():
                batch.append(state.finished.get_nowait())
            running -= batch.count(None)
            results = [pair for pair in batch if pair is not None]
            if results:
                yield results
            for _ in results:
                state.room.release()
        if state.errors:
            raise state.errors[0]
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


@dataclass(slots=True)
class _State(Generic[T, R]):
    """What the workers share."""

    function: Callable[[T], Awaitable[R]]
    source: Iterator[T]  # Advanced between awaits only, so that one iterator serves all
    finished: asyncio.Queue[tuple[T, R] | None]  # Results, and None from every worker that ends
    room: asyncio.Semaphore  # Holds workers back while results are not taken
    errors: list[BaseException] = field(default_factory=list)

    async def work(self) -> None:
        """Work off items until there are none, or one failed."""
        try:
            for item in self.source:
                result = await self.function(item)
                await self.room.acquire()
                self.finished.put_nowait((item, result))
                if self.errors:
                    break
        except BaseException as error:  # noqa: BLE001 - raised again by the consumer, after the finished results
            self.errors.append(error)
        self.finished.put_nowait(None)
