"""The call that is kept for the answer: neither a ranker nor a repair spends it."""

import asyncio

import pytest

from sire_core import Document, Index
from sire_core.models.usage import UsageLimits
from sire_core.reason import ReasoningLimits, collect, ircot, single
from sire_core.recipes import recipe_by_name
from sire_core.testing.doubles import ScriptedModel, default_script

DOCUMENTS = [
    Document("a", "The Salt Lantern was directed by Petra Quillon.", title="The Salt Lantern"),
    Document("b", "Petra Quillon was born in Varn Harbour.", title="Petra Quillon"),
    Document("c", "Varn Harbour is a town on the Amber. Varn Harbour has a mill.", title="Varn Harbour"),
]
QUESTION = "Where was the director of The Salt Lantern born?"


def built(recipe, **settings):
    model = ScriptedModel()
    index = Index(recipe=recipe_by_name(recipe, **settings), language_model=model)
    index.build(DOCUMENTS)
    model.log.clear()
    return index, model


@pytest.mark.parametrize(
    ("recipe", "settings", "calls"),
    [
        ("iier", {}, 1),
        ("iier", {"scorer": "llm"}, 1),
        ("iier", {"scorer": "llm"}, 2),
        ("msrag", {"extraction": "llm"}, 1),
    ],
)
def test_rankers_leave_the_last_call_to_the_answer(recipe, settings, calls):
    index, model = built(recipe, **settings)
    trace = asyncio.run(collect(single(index, QUESTION, limits=ReasoningLimits(max_calls=calls))))
    assert trace.answer.hits
    assert trace.answer.text
    assert trace.answer.usage.calls == len(model.log) <= calls


def test_a_repair_leaves_the_last_call_to_the_answer():
    asked = []

    def script(call):
        asked.append(call)
        return "garbage one." if len(asked) == 1 else default_script(call)

    index = Index()
    index.build(DOCUMENTS)
    limits = ReasoningLimits(max_calls=2)
    trace = asyncio.run(collect(ircot(index, QUESTION, model=ScriptedModel(script), limits=limits)))
    assert trace.answer.text
    assert len(asked) == trace.answer.usage.calls == 2


def test_the_models_own_limit_of_calls_is_a_limit_of_calls():
    from langchain_core.language_models import FakeListChatModel

    from langchain_sire.chat import LangChainChat
    from sire_core.protocols import Prompt

    model = LangChainChat(FakeListChatModel(responses=["x"]), limits=UsageLimits(max_calls=1))
    asyncio.run(model.complete(Prompt("i", "d")))
    index = Index()
    index.build(DOCUMENTS)
    for limits in (ReasoningLimits(), ReasoningLimits(max_tokens=100_000)):
        answer = asyncio.run(collect(single(index, QUESTION, model=model, limits=limits))).answer
        assert answer.stop == "call_limit"
        assert "call" in answer.note
