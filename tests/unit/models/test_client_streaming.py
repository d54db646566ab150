"""What carries streams: worker threads, meters, the call cache below a reasoning."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator

import pytest

from sire_core.errors import LimitExceededError, ModelError
from sire_core.models.base import stream_answer
from sire_core.models.sync import iterate_in_thread
from sire_core.models.usage import UsageLimits
from sire_core.models.usage_meter import MeteredModel, UsageMeter, with_meter
from sire_core.protocols import Completion, ModelRequest, Prompt
from sire_core.testing.doubles import ScriptedModel

PROMPT = Prompt("Say it.", "Where was she born?")


class Breaking:
    """Breaks off after two pieces."""

    fingerprint = "breaking"

    async def complete(self, prompt, **_):
        raise NotImplementedError

    async def stream(self, prompt, **_):
        yield "one "
        yield "two"
        raise ModelError("it broke")


async def gather(parts):
    return [part async for part in parts]


async def test_a_meter_counts_a_stream_as_it_counts_an_answer() -> None:
    streamed, whole = UsageMeter(), UsageMeter()
    parts = await gather(stream_answer(with_meter(ScriptedModel(["One two."]), streamed, "s"), ModelRequest(PROMPT)))
    assert parts[:-1] == ["One ", "two."]
    assert isinstance(parts[-1], Completion)
    assert await with_meter(ScriptedModel(["One two."]), whole, "s").complete(PROMPT) == parts[-1]
    assert streamed.report() == whole.report()
    assert streamed.report().total.calls == 1


async def test_what_came_before_a_break_is_paid_for() -> None:
    meter = UsageMeter(UsageLimits(max_tokens=5000))
    parts = MeteredModel(Breaking(), meter).stream(PROMPT)
    assert [await anext(parts), await anext(parts)] == ["one ", "two"]
    with pytest.raises(ModelError):
        await anext(parts)
    used = meter.report().total
    assert (used.calls, used.output_tokens) == (1, 2)
    assert used.input_tokens > 3
    leaving = MeteredModel(Breaking(), meter).stream(PROMPT)
    await anext(leaving)
    await leaving.aclose()
    assert meter.report().total.output_tokens == 3
    meter.try_reserve(4900)  # nothing stays reserved


async def test_limits_hold_before_a_stream_begins() -> None:
    model = ScriptedModel(["One."])
    with pytest.raises(LimitExceededError):
        await gather(MeteredModel(model, UsageMeter(UsageLimits(max_calls=0))).stream(PROMPT))
    assert model.log == []


# --- worker threads -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["left", "cancelled"])
async def test_leaving_does_not_wait_for_the_thread_and_closes_the_generator_in_it(how: str) -> None:
    closed = threading.Event()
    go_on = threading.Event()

    def slow() -> Generator[int, None, None]:
        try:
            yield 1
            go_on.wait(10)
            yield 2
        finally:
            closed.set()

    async def read() -> None:
        items = iterate_in_thread(slow)
        await anext(items)
        if how == "left":
            await items.aclose()
        else:
            await anext(items)

    started = time.monotonic()
    task = asyncio.create_task(read())
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
    assert time.monotonic() - started < 5
    assert not closed.is_set()
    go_on.set()
    assert await asyncio.to_thread(closed.wait, 10)
