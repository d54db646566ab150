from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest

from sire_core.errors import ConfigurationError
from sire_core.models.openai.faults import AdaptiveGate, RetryPolicy, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(1_000_060, usegmt=True)}, 60.0),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1_000_000.0) == seconds


def test_back_off_grows_is_capped_and_repeats_with_a_seed() -> None:
    policy = RetryPolicy(base=1.0, cap=8.0, seed=3)
    source = policy.jitter()
    delays = [policy.delay(attempt, None, source) for attempt in range(8)]
    assert all(0.5 * min(8, 2**n) <= delay <= min(8, 2**n) for n, delay in enumerate(delays))
    again = policy.jitter()
    assert delays == [policy.delay(attempt, None, again) for attempt in range(8)]
    assert 60.0 <= policy.delay(0, 60.0, source) <= 61.0
    with pytest.raises(ConfigurationError):
        RetryPolicy(max_retries=-1)


async def test_the_gate_bounds_and_serves_in_order() -> None:
    gate = AdaptiveGate(3)
    active = most = 0
    order = []

    async def work(number: int) -> None:
        nonlocal active, most
        async with gate:
            order.append(number)
            active += 1
            most = max(most, active)
            await asyncio.sleep(0.002)
            active -= 1

    await asyncio.gather(*(work(number) for number in range(20)))
    assert most == 3
    assert order == list(range(20))


async def test_a_wave_of_refusals_halves_once_and_success_grows_back() -> None:
    gate = AdaptiveGate(16)
    wave = gate.wave
    for _ in range(10):
        gate.throttled(wave)
    assert gate.width == 8
    gate.throttled(gate.wave)
    assert gate.width == 4
    for _ in range(5):
        gate.throttled(gate.wave)
    assert gate.width == 1
    for _ in range(200):
        gate.succeeded()
    assert gate.width == 16


async def test_a_pause_holds_everyone_back() -> None:
    gate = AdaptiveGate(4)
    gate.throttled(gate.wave, 0.05)
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with gate:
        assert loop.time() - start >= 0.04


async def test_a_cancelled_waiter_gives_its_place_on() -> None:
    gate = AdaptiveGate(1)
    await gate.__aenter__()
    waiters = [asyncio.create_task(gate.__aenter__()) for _ in range(3)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    await gate.__aexit__(None, None, None)
    waiters[1].cancel()  # it has just been given the place
    await asyncio.wait_for(waiters[2], 1)
    assert [waiter.cancelled() for waiter in waiters] == [True, True, False]
    late = asyncio.create_task(gate.__aenter__())
    await asyncio.sleep(0)
    assert not late.done(), "the last waiter has the only place"
    await gate.__aexit__(None, None, None)
    await asyncio.wait_for(late, 1)
    assert late.done()
    await gate.__aexit__(None, None, None)


def test_a_gate_needs_a_place() -> None:
    with pytest.raises(ConfigurationError):
        AdaptiveGate(0)
