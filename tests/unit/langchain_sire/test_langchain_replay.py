"""`RecordedModel`: answers once given are not asked for again, and count as they did."""

import json

import pytest
from langchain_scripted_chat import GOOD, PROMPT, Answer, model

from langchain_sire import LangChainChat
from sire_core.errors import LimitExceededError, UnusableAnswerError
from sire_core.models.usage import UsageLimits
from sire_core.models.usage_meter import Meterable, UsageMeter
from sire_core.protocols import LanguageModel, Prompt
from sire_core.reason.replay import PausedError, RecordedModel
from sire_core.testing.doubles import ScriptedModel


def test_it_is_a_language_model_that_counts():
    recorded = RecordedModel(ScriptedModel(), {})
    assert isinstance(recorded, LanguageModel)
    assert isinstance(recorded, Meterable)
    assert recorded.fingerprint == "scripted:default"


@pytest.mark.parametrize("numbered", [True, False])
async def test_an_answer_is_asked_for_once_in_the_life_of_the_record(numbered):
    replies = {}
    first = ScriptedModel(["Petra."])
    assert (await RecordedModel(first, replies, numbered=numbered).complete(PROMPT)).text == "Petra."
    replies = json.loads(json.dumps(replies))
    second = RecordedModel(ScriptedModel([]), replies, numbered=numbered)
    assert (await second.complete(PROMPT)).text == "Petra."


async def test_a_numbered_answer_belongs_to_its_place_and_others_to_their_prompt():
    for numbered, expected in ((True, "one"), (False, "two")):
        replies = {}
        await RecordedModel(ScriptedModel(["one"]), replies, numbered=numbered).complete(PROMPT)
        again = RecordedModel(ScriptedModel(["two"]), replies, numbered=numbered)
        assert (await again.complete(Prompt("Something else?"))).text == expected


async def test_a_call_too_many_pauses_and_says_what_it_asks_for():
    recorded = RecordedModel(ScriptedModel(["one"]), {}, numbered=True, most=1)
    await recorded.complete(PROMPT)
    with pytest.raises(PausedError) as caught:
        await recorded.complete(PROMPT, schema=Answer)
    assert caught.value.schema is Answer


async def test_repairs_count_again_when_the_answer_is_taken_from_the_record():
    replies, paid, again = {}, UsageMeter(), UsageMeter()
    chat = LangChainChat(model("no", GOOD))
    first = await RecordedModel(chat, replies).metered(paid).complete(PROMPT, schema=Answer)
    second = await RecordedModel(chat, replies).metered(again).complete(PROMPT, schema=Answer)
    assert first.parsed == second.parsed == Answer(name="Petra", year=1911)
    assert paid.report().total == again.report().total
    assert again.report().total.calls == 2
    assert len(chat.chat_model.log) == 2


async def test_limits_hold_for_what_is_new_and_what_is_not():
    replies = {}
    chat = LangChainChat(model("Petra."))
    await RecordedModel(chat, replies).complete(PROMPT)
    strict = RecordedModel(chat, replies).metered(UsageMeter(UsageLimits(max_calls=1)))
    await strict.complete(PROMPT)
    with pytest.raises(LimitExceededError):
        await strict.complete(Prompt("Something else?"))
    assert len(chat.chat_model.log) == 1


async def test_an_answer_that_cannot_be_used_stays_one():
    replies = {}
    scripted = ScriptedModel(["no", "still no"])
    for _ in range(2):
        with pytest.raises(UnusableAnswerError) as caught:
            await RecordedModel(scripted, replies).complete(PROMPT, schema=Answer)
        assert caught.value.text
    assert len(scripted.log) == 2
