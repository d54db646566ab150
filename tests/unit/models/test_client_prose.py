"""Answers in prose: what a model thought aloud, what was cut off; and meters that see every request."""

import asyncio
import logging

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, LimitExceededError, UnusableAnswerError
from sire_core.extraction.answers import ExtractionAnswer
from sire_core.models.base import CheckedModel
from sire_core.models.caching import CachedModel
from sire_core.models.usage import UsageLimits
from sire_core.models.usage_meter import UsageMeter, with_meter
from sire_core.protocols import Completion, Prompt
from sire_core.search.selectors.rerank import ask_order
from sire_core.storage.calls import CallStore
from sire_core.testing.doubles import ScriptedModel

PROMPT = Prompt("Summarise it.", "a long story")


class Cut(CheckedModel):
    """Gives answers in turn, those marked with three dots as cut off; the last one for ever."""

    fingerprint = "cut"

    def __init__(self, *texts):
        self.texts, self.rooms = list(texts), []

    async def send(self, request):
        self.rooms.append(request.max_tokens)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return Completion(text.removesuffix("..."), None, 10, 5, "length" if text.endswith("...") else "stop")


@pytest.mark.parametrize(
    "said",
    [
        "<think>Okay, a summary.</think>\n\nPetra sailed.",
        "<Thinking>\nfirst\n</Thinking>Petra sailed.\n",
        "Let me see.</think> Petra sailed.",
    ],
)
async def test_what_a_model_thought_aloud_is_no_part_of_its_answer(said):
    assert (await ScriptedModel([said]).complete(PROMPT)).text == "Petra sailed."
    parts = [part async for part in ScriptedModel([said]).stream(PROMPT)]
    assert parts[-1].text == "Petra sailed."


async def test_who_only_thought_has_not_answered():
    with pytest.raises(UnusableAnswerError, match="only thought"):
        await ScriptedModel(["<think>Okay, the user wants"]).complete(PROMPT)


async def test_numbers_in_the_thinking_are_no_order():
    thinking = ScriptedModel(["<think>Passage 0 is of rivers, 1 of mills: no help. 3 tells it.</think>\n3"])
    assert await ask_order(thinking, "q", ["a", "b", "c", "d"], 4) == [3, 0, 1, 2]


async def test_prose_that_was_cut_off_gets_twice_the_room():
    model = Cut("The two ships were built...", "The two ships were built by Ada. They sank.")
    done = await model.complete(PROMPT, max_tokens=100)
    assert (done.text, done.finish) == ("The two ships were built by Ada. They sank.", "stop")
    assert (done.input_tokens, done.output_tokens) == (20, 10)
    assert model.rooms == [100, 200]


async def test_prose_that_is_cut_off_twice_ends_with_a_whole_sentence(caplog):
    with caplog.at_level(logging.WARNING, "sire_core"):
        done = await Cut("Ada built it. Then...", "Ada built it. Then she left. The rest...").complete(
            PROMPT, max_tokens=100
        )
    assert (done.text, done.finish) == ("Ada built it. Then she left.", "stop")
    assert "cut off" in caplog.text


async def test_an_answer_that_was_cut_off_comes_back_from_the_store_as_such():
    cached = CachedModel(model := Cut("The two ships were built by..."), CallStore())
    first, again = [await cached.complete(PROMPT, max_tokens=100) for _ in range(2)]
    assert first.text == again.text == "The two ships were built by"
    assert first.finish == again.finish == "length"
    assert again.stored
    assert len(model.rooms) == 2


async def test_an_equal_prompt_does_not_wait_for_the_reader_of_a_stream():
    model = ScriptedModel(["one two three four"], gap=0.01)
    cached = CachedModel(model, CallStore())
    stopped = cached.stream(PROMPT)
    assert await anext(stopped) == "one "
    assert (await asyncio.wait_for(cached.complete(PROMPT), 5)).text == "one two three four"
    assert len(model.log) == 1
    await stopped.aclose()


# --- limits ---------------------------------------------------------------------------------------------------------


def test_a_build_sends_no_more_requests_than_its_limit():
    documents = [Document(f"d{i}", f"Film {i} was directed by Person {i}.", title=f"Film {i}") for i in range(6)]
    model = ScriptedModel(lambda _: "no json")
    index = Index(recipe="sirerag", language_model=model, limits=UsageLimits(max_calls=3))
    with index, pytest.raises(LimitExceededError):
        index.build(documents)
    assert len(model.log) == 3


async def test_repairs_and_answers_that_fail_are_counted_as_they_are_sent():
    meter = UsageMeter()
    model = with_meter(ScriptedModel(["no json", "neither"]), meter, "s")
    with pytest.raises(UnusableAnswerError):
        await model.complete(PROMPT, schema=ExtractionAnswer)
    used = meter.report().total
    assert used.calls == 2
    assert used.input_tokens > 10
    assert used.output_tokens >= 3


async def test_a_repair_that_is_refused_loses_no_answer_and_leaves_no_reservation():
    inner, outer = UsageMeter(UsageLimits(max_calls=1)), UsageMeter()
    model = with_meter(with_meter(ScriptedModel(["no json", "neither"]), inner), outer)
    with pytest.raises(LimitExceededError) as raised:
        await model.complete(PROMPT, schema=ExtractionAnswer)
    assert (raised.value.said, raised.value.bound) == ("no json", "calls")
    assert outer.report() == inner.report()
    assert outer.report().total.calls == 1


@pytest.mark.parametrize("value", [float("nan"), 1.5, "3", True, -1])
def test_limits_are_whole_numbers(value):
    for name in ("max_calls", "max_tokens"):
        with pytest.raises(ConfigurationError, match="whole number"):
            UsageLimits(**{name: value})
