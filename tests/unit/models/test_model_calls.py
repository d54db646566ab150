"""Calls of models: cache, limits, prices, retries, prose."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
from email.utils import formatdate

import pytest
from pydantic import BaseModel

from sire_core import Document, Index, UsageLimits
from sire_core.changes.estimate import estimate_extraction
from sire_core.errors import ConfigurationError, LimitExceededError, UnusableAnswerError
from sire_core.extraction.answer_schemas import ExtractionAnswer
from sire_core.extraction.model_extractor import ModelExtractor
from sire_core.models.base import CheckedModel, ModelBase
from sire_core.models.caching import CachedModel, answer_key
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.embedder import OpenAIEmbedder
from sire_core.models.openai.faults import RetryPolicy, retry_after
from sire_core.models.usage import CostRange, Price, load_prices, price_of
from sire_core.models.usage_meter import UsageMeter, with_meter
from sire_core.protocols import ChunkInContext, Completion, ModelRequest, Prompt
from sire_core.storage.call_cache import CallStore
from sire_core.testing.doubles import ScriptedModel
from sire_core.types import Chunk
from support.scripted_server import ScriptedServer


class Name(BaseModel):
    name: str


class Other(BaseModel):
    name: str
    year: int = 0


PROMPT = Prompt("Name it.", "a cat")


async def test_the_second_time_is_free_and_equal() -> None:
    store, meter = CallStore(), UsageMeter()
    model = ScriptedModel(['```json\n{"name": "cat",}\n```', "plain"])
    cached = CachedModel(model, store, "naming", meter=meter)
    first = await cached.complete(PROMPT, schema=Name)
    text = await cached.complete(PROMPT)
    again = CachedModel(model, store, "naming", meter=meter)
    assert (await again.complete(PROMPT, schema=Name)).parsed == first.parsed == Name(name="cat")
    assert (await again.complete(PROMPT)).text == text.text == "plain"
    assert len(model.log) == 2
    assert [(stage, answers) for stage, answers, *_ in store.spent()] == [("naming", 2)]
    used = meter.report().stages["naming"]
    assert (used.calls, used.cached) == (2, 2)


async def test_equal_prompts_under_way_are_asked_once() -> None:
    model = ScriptedModel(latency=0.02)
    cached = CachedModel(model, CallStore())
    answers = await asyncio.gather(*(cached.with_sources([str(n)]).complete(PROMPT) for n in range(20)))
    assert len(model.log) == 1
    assert {answer.text for answer in answers} == {"a cat"}
    assert [answer.stored for answer in answers].count(False) == 1  # one has paid for all


async def test_when_the_one_who_asks_is_cancelled_another_takes_over() -> None:
    model = ScriptedModel(latency=0.02)
    cached = CachedModel(model, CallStore())
    first = asyncio.create_task(cached.complete(PROMPT))
    await asyncio.sleep(0.005)
    second = asyncio.create_task(cached.complete(PROMPT))
    await asyncio.sleep(0.005)
    first.cancel()
    assert (await second).text == "a cat"
    with pytest.raises(asyncio.CancelledError):
        await first


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
    store = CallStore()
    cached = CachedModel(ScriptedModel(['{"name": "cat"}']), store)
    store.put_answer(answer_key("scripted:default", ModelRequest(PROMPT, Name)), '{"nonsense": 1}')
    assert (await cached.complete(PROMPT, schema=Name)).parsed == Name(name="cat")


def items(count: int) -> list[ChunkInContext]:
    return [
        ChunkInContext(Chunk(f"c{n}", f"d{n}", 0, f"Title {n}", f"Passage {n} tells of Ann. " * 9))
        for n in range(count)
    ]


def test_the_packaged_table_knows_editions_of_a_model_and_no_other_of_like_names() -> None:
    table = load_prices()
    assert price_of("gpt-4o-mini-2024-07-18", table) == table["gpt-4o-mini"]
    assert price_of("openai:gpt-4o", table) == table["gpt-4o"]
    assert price_of("openai/gpt-4.1-nano", table) == table["gpt-4.1-nano"]
    assert price_of("gpt-4o-latest", table) == price_of("gpt-4o-0613", table) == table["gpt-4o"]
    # Other models, often dearer ones.
    for other in ("my-llama", "gpt-5-pro", "o3-pro", "o3-deep-research", "gpt-5.5-turbo", "gpt-4o-audio-preview"):
        assert price_of(other, table) is None


def test_the_users_own_table(tmp_path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"prices": {"my-llama": [1, 2]}}), encoding="utf-8")
    assert price_of("http://localhost:8000/v1:my-llama", load_prices(path)) == Price(1.0, 2.0)
    for bad in ("[]", "{", '{"prices": {"x": 3}}'):
        path.write_text(bad, encoding="utf-8")
        with pytest.raises(ConfigurationError, match="price table"):
            load_prices(path)
    with pytest.raises(ConfigurationError, match="price table"):
        load_prices(tmp_path / "missing.json")


def test_equal_passages_are_counted_once_and_stored_ones_not_at_all() -> None:
    extractor = ModelExtractor(ScriptedModel())
    chunks = items(3)
    assert estimate_extraction(chunks + chunks, extractor).calls == (3, 3)
    done = estimate_extraction(chunks, extractor, recorded={chunk.chunk.hash for chunk in chunks}, price=Price(1, 1))
    assert done == CostRange(price=(0.0, 0.0))


CORPUS = [Document("film", "The Long Tide was directed by Mira Vale."), Document("port", "Port Amber is a harbor.")]


async def test_an_index_with_a_model_and_an_embedder_works_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with ScriptedServer(lambda call: "0") as server:
        embedder = OpenAIEmbedder("scripted-embedder", base_url=server.base_url)
        model = OpenAIChat("m", base_url=server.base_url, api_key="sk-secret", limits=UsageLimits(max_calls=2))
        with Index(tmp_path / "ix", recipe="flat", language_model=model, embedder=embedder) as index:
            await index.abuild(CORPUS)
            expected = [hit.unit.id for hit in await index.asearch("Who directed it?")]
            await model.complete(Prompt("Say."))
            sent = pickle.dumps((index, embedder))
        assert b"sk-secret" not in sent
        monkeypatch.setenv("OPENAI_API_KEY", "sk-elsewhere")
        again, other = pickle.loads(sent)
        with again:
            assert [hit.unit.id for hit in await again.asearch("Who directed it?")] == expected
            assert (await again.language_model.complete(Prompt("Say."))).text == "0"
            with pytest.raises(LimitExceededError):  # one call was made before it was sent
                await again.language_model.complete(Prompt("Say."))
            await again.language_model.aclose()
            await other.aclose()
        await embedder.aclose()
        await model.aclose()


@pytest.mark.parametrize(
    "given",
    [
        {"api_key": "sk-own"},
        {"base_url": "http://user:sk-own@localhost:1/v1"},
        {"client_options": {"default_headers": {"x-key": "sk-own"}}},
        {"client_options": {"default_query": {"key": "sk-own"}}},
        {"client_options": {"webhook_secret": "sk-own"}},
    ],
)
@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIEmbedder])
def test_a_key_of_its_own_is_not_sent(monkeypatch, kind, given):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="Set OPENAI_API_KEY in both processes"):
        pickle.dumps(kind("m", **{"base_url": "http://localhost:1/v1", **given}))


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


class Repeating(ModelBase):
    """Answers with the stop texts that it was given."""

    fingerprint = "repeating"

    async def answer(self, request: ModelRequest) -> Completion:
        return Completion("|".join(request.stop))


async def test_one_stop_text_is_not_a_list_of_letters() -> None:
    model, prompt = Repeating(), Prompt("Go on.")
    assert (await model.complete(prompt, stop="END")).text == "END"
    assert [piece async for piece in model.stream(prompt, stop="END")] == ["END", Completion("END")]
    assert (await model.complete(prompt, stop=["A", "B"])).text == "A|B"


LONG_PROMPT = Prompt("Summarise it.", "a long story")


class Cut(CheckedModel):
    """Gives answers in turn, those marked with three dots as cut off; the last one for ever."""

    fingerprint = "cut"

    def __init__(self, *texts):
        self.texts, self.rooms = list(texts), []

    async def send(self, request):
        self.rooms.append(request.max_tokens)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return Completion(text.removesuffix("..."), None, 10, 5, "length" if text.endswith("...") else "stop")


async def test_prose_that_is_cut_off_twice_ends_with_a_whole_sentence(caplog):
    with caplog.at_level(logging.WARNING, "sire_core"):
        done = await Cut("Ada built it. Then...", "Ada built it. Then she left. The rest...").complete(
            LONG_PROMPT, max_tokens=100
        )
    assert (done.text, done.finish) == ("Ada built it. Then she left.", "stop")
    assert "cut off" in caplog.text


async def test_an_answer_that_was_cut_off_comes_back_from_the_store_as_such():
    cached = CachedModel(model := Cut("The two ships were built by..."), CallStore())
    first, again = [await cached.complete(LONG_PROMPT, max_tokens=100) for _ in range(2)]
    assert first.text == again.text == "The two ships were built by"
    assert first.finish == again.finish == "length"
    assert again.stored
    assert len(model.rooms) == 2


async def test_an_equal_prompt_does_not_wait_for_the_reader_of_a_stream():
    model = ScriptedModel(["one two three four"], gap=0.01)
    cached = CachedModel(model, CallStore())
    stopped = cached.stream(LONG_PROMPT)
    assert await anext(stopped) == "one "
    assert (await asyncio.wait_for(cached.complete(LONG_PROMPT), 5)).text == "one two three four"
    assert len(model.log) == 1
    await stopped.aclose()


async def test_repairs_and_answers_that_fail_are_counted_as_they_are_sent():
    meter = UsageMeter()
    model = with_meter(ScriptedModel(["no json", "neither"]), meter, "s")
    with pytest.raises(UnusableAnswerError):
        await model.complete(LONG_PROMPT, schema=ExtractionAnswer)
    used = meter.report().total
    assert used.calls == 2
    assert used.input_tokens > 10
    assert used.output_tokens >= 3


async def test_a_repair_that_is_refused_loses_no_answer_and_leaves_no_reservation():
    inner, outer = UsageMeter(UsageLimits(max_calls=1)), UsageMeter()
    model = with_meter(with_meter(ScriptedModel(["no json", "neither"]), inner), outer)
    with pytest.raises(LimitExceededError) as raised:
        await model.complete(LONG_PROMPT, schema=ExtractionAnswer)
    assert (raised.value.said, raised.value.bound) == ("no json", "calls")
    assert outer.report() == inner.report()
    assert outer.report().total.calls == 1


@pytest.mark.parametrize("value", [float("nan"), 1.5, "3", True, -1])
def test_limits_are_whole_numbers(value):
    for name in ("max_calls", "max_tokens"):
        with pytest.raises(ConfigurationError, match="whole number"):
            UsageLimits(**{name: value})


@pytest.mark.parametrize(
    ("model", "argument", "meant"), [(OpenAIChat, "base_urll", "base_url"), (OpenAIEmbedder, "dimension", "dimensions")]
)
def test_a_misspelled_argument_of_a_model_names_the_class_and_what_was_meant(model, argument, meant):
    with pytest.raises(TypeError, match=rf"{model.__name__}\(\) has no argument '{argument}'; did you mean '{meant}'"):
        model("a-model", **{argument: None})
