from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from sire_core.algorithms.worker_pool import bounded_map


async def collect(iterator):
    return [pair async for batch in iterator for pair in batch]


async def test_every_item_once_and_never_more_than_the_workers() -> None:
    active = most = 0

    async def work(item: int) -> int:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.001 * (item % 3))
        active -= 1
        return item * item

    pairs = await collect(bounded_map(work, range(50), 7))
    assert sorted(pairs) == [(item, item * item) for item in range(50)]
    assert most == 7


async def test_items_are_pulled_only_when_a_worker_is_free() -> None:
    pulled = 0

    def source() -> Iterator[int]:
        nonlocal pulled
        for item in range(10_000):
            pulled += 1
            yield item

    async def work(item: int) -> int:
        await asyncio.sleep(0)
        return item

    seen = 0
    async with contextlib.aclosing(bounded_map(work, source(), 4)) as results:
        async for batch in results:
            seen += len(batch)
            # Whoever consumes slowly holds the source back: what is out is bounded by workers and queue.
            assert pulled - seen <= 3 * 4
            if seen > 100:
                break
    assert pulled < 200


async def test_leaving_early_cancels_what_is_under_way() -> None:
    cancelled = 0

    async def work(item: int) -> int:
        nonlocal cancelled
        if item == 0:
            return 0
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled += 1
            raise
        return item

    async with contextlib.aclosing(bounded_map(work, range(10), 3)) as results:
        async for _ in results:
            break
    assert cancelled == 3
    assert len(asyncio.all_tasks()) == 1
