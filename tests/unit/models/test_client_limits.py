from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import LimitExceededError
from sire_core.models.usage import StageUsage, UsageLimits, estimate_tokens
from sire_core.models.usage_meter import UsageMeter


@given(st.integers(0, 40), st.integers(1, 8))
def test_threads_together_never_pass_the_call_limit(limit: int, threads: int) -> None:
    meter = UsageMeter(UsageLimits(max_calls=limit))
    made = []

    def work() -> None:
        while True:
            try:
                reservation = meter.try_reserve(10, "s")
            except LimitExceededError:
                return
            assert reservation is not None
            made.append(1)
            meter.settle(reservation, 5, 5)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(made) == limit
    assert meter.report().total == StageUsage(limit, 0, 5 * limit, 5 * limit)


async def test_tokens_reserved_by_others_are_waited_for_not_failed_on() -> None:
    meter = UsageMeter(UsageLimits(max_tokens=100))
    first = await meter.reserve(80)
    waiting = asyncio.create_task(meter.reserve(50))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    meter.settle(first, 20, 10)  # used 30 of the 80
    second = await waiting
    meter.settle(second, 30, 30)
    with pytest.raises(LimitExceededError, match=r"limit of 100 tokens .*run the build again"):
        await meter.reserve(20)
    meter.settle(await meter.reserve(10), 10, 0)
    assert meter.report().total.input_tokens + meter.report().total.output_tokens == 100


async def test_the_message_says_how_far_it_got() -> None:
    meter = UsageMeter(UsageLimits(max_calls=1))
    meter.settle(await meter.reserve(5, "extract"), 3, 2)
    with pytest.raises(LimitExceededError, match=r"limit of 1 call .*extract: 1 call, 3 \+ 2 tokens"):
        await meter.reserve(5, "extract")


def test_estimates_cover_scripts_without_spaces() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("The cat sat on the mat.") == 7
    assert estimate_tokens("\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd") >= 7
    assert estimate_tokens("x" * 420) == 100
