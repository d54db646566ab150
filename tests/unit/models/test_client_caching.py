from __future__ import annotations

import asyncio
import threading

import pytest
from pydantic import BaseModel

from sire_core.errors import LimitExceededError, ModelError, RefusalError
from sire_core.models.caching import CachedModel, answer_key
from sire_core.models.usage import UsageLimits
from sire_core.models.usage_meter import UsageMeter
from sire_core.protocols import ModelRequest, Prompt
from sire_core.testing.doubles import ScriptedModel


class Name(BaseModel):
    name: str


class Other(BaseModel):
    name: str
    year: int = 0


class MemoryStore:
    """The shape of CallStore, in memory, with a note of every put."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.puts: list[dict[str, object]] = []
        self.lock = threading.Lock()

    def answer(self, key: str) -> str | None:
        with self.lock:
            return self.answers.get(key)

    def tokens(self, _key: str) -> tuple[int, int]:
        return 0, 0

    def put_answer(self, key: str, answer: str, **rest: object) -> None:
        with self.lock:
            self.answers[key] = answer
            self.puts.append(rest)


PROMPT = Prompt("Name it.", "a cat")


async def test_the_second_time_is_free_and_equal() -> None:
    store, meter = MemoryStore(), UsageMeter()
    model = ScriptedModel(['```json\n{"name": "cat",}\n```', "plain"])
    cached = CachedModel(model, store, "naming", meter=meter)
    first = await cached.complete(PROMPT, schema=Name)
    text = await cached.complete(PROMPT)
    again = CachedModel(model, store, "naming", meter=meter)
    assert (await again.complete(PROMPT, schema=Name)).parsed == first.parsed == Name(name="cat")
    assert (await again.complete(PROMPT)).text == text.text == "plain"
    assert len(model.log) == 2
    assert sorted(store.answers.values()) == ["plain", '{"name":"cat"}']
    assert store.puts[0]["stage"] == "naming"
    used = meter.report().stages["naming"]
    assert (used.calls, used.cached) == (2, 2)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (["x {", "y {"], ModelError),
        ([RefusalError("no")], RefusalError),
        ([ModelError("down")], ModelError),
        ([""], ModelError),
    ],
)
async def test_failures_are_never_kept(script: list[str | Exception], error: type[Exception]) -> None:
    store = MemoryStore()
    cached = CachedModel(ScriptedModel(script), store)
    with pytest.raises(error):
        await cached.complete(PROMPT, schema=Name if len(script) == 2 else None)
    assert store.answers == {}
    assert (await CachedModel(ScriptedModel(["fine"]), store).complete(PROMPT)).text == "fine"


async def test_equal_prompts_under_way_are_asked_once() -> None:
    model = ScriptedModel(latency=0.02)
    cached = CachedModel(model, MemoryStore())
    answers = await asyncio.gather(*(cached.with_sources([str(n)]).complete(PROMPT) for n in range(20)))
    assert len(model.log) == 1
    assert {answer.text for answer in answers} == {"a cat"}
    assert [answer.stored for answer in answers].count(False) == 1  # one has paid for all


async def test_when_the_one_who_asks_is_cancelled_another_takes_over() -> None:
    model = ScriptedModel(latency=0.02)
    cached = CachedModel(model, MemoryStore())
    first = asyncio.create_task(cached.complete(PROMPT))
    await asyncio.sleep(0.005)
    second = asyncio.create_task(cached.complete(PROMPT))
    await asyncio.sleep(0.005)
    first.cancel()
    assert (await second).text == "a cat"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_limits_hold_for_any_model_and_stored_answers_cost_nothing() -> None:
    store, meter = MemoryStore(), UsageMeter(UsageLimits(max_calls=2))
    model = ScriptedModel()
    cached = CachedModel(model, store, "s", meter=meter)
    results = await asyncio.gather(*(cached.complete(Prompt("x", str(n))) for n in range(6)), return_exceptions=True)
    assert sum(isinstance(result, LimitExceededError) for result in results) == 4
    assert len(model.log) == len(store.answers) == 2
    assert (await cached.complete(Prompt("x", "0"))).text == "0"


async def test_sources_are_translated_and_noted_once_each() -> None:
    store = MemoryStore()
    cached = CachedModel(ScriptedModel(), store, "s", source_of=lambda name: f"hash-{name}")
    await cached.with_sources(["a", "b", "a"]).complete(PROMPT)
    assert store.puts[0]["sources"] == ("hash-a", "hash-b")


def test_the_key_depends_on_everything_that_changes_an_answer() -> None:
    base = ("model", PROMPT, None, (), None, 0.0)
    others = [
        ("model2", PROMPT, None, (), None, 0.0),
        ("model", Prompt("Name it", "a cat"), None, (), None, 0.0),
        ("model", Prompt("Name it.", "a dog"), None, (), None, 0.0),
        ("model", Prompt("Name it.a cat", ""), None, (), None, 0.0),
        ("model", Prompt("Name it.", "a cat", (b"png",)), None, (), None, 0.0),
        ("model", PROMPT, Name, (), None, 0.0),
        ("model", PROMPT, Other, (), None, 0.0),
        ("model", PROMPT, None, ("x",), None, 0.0),
        ("model", PROMPT, None, (), 10, 0.0),
        ("model", PROMPT, None, (), None, 0.5),
    ]
    keys = {answer_key(name, ModelRequest(*arguments)) for name, *arguments in [base, *others]}
    assert len(keys) == len(others) + 1
    assert answer_key(base[0], ModelRequest(*base[1:])) == answer_key(base[0], ModelRequest(*base[1:]))


async def test_a_stored_answer_that_no_longer_fits_is_asked_again() -> None:
    store = MemoryStore()
    cached = CachedModel(ScriptedModel(['{"name": "cat"}']), store)
    store.answers[answer_key("scripted:default", ModelRequest(PROMPT, Name))] = '{"nonsense": 1}'
    assert (await cached.complete(PROMPT, schema=Name)).parsed == Name(name="cat")
