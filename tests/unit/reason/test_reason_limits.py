"""Limits of a question are an object or a mapping; anything else is refused before a question is asked."""

import pytest

from sire_core import Document, Index, UsageLimits
from sire_core.errors import ConfigurationError
from sire_core.reason import ReasoningLimits, collect, ircot, self_ask, single
from sire_core.testing.doubles import ScriptedModel


@pytest.mark.parametrize("limits", [{"max_calls": 0}, ReasoningLimits(max_calls=0)])
@pytest.mark.parametrize("strategy", [ircot, self_ask, single])
async def test_limits_are_an_object_or_a_mapping(strategy, limits):
    with Index(recipe="flat") as index:
        index.build([Document("a", "Mira painted the bridge.")])
        trace = await collect(strategy(index, "Who painted?", model=ScriptedModel(), limits=limits))
    assert trace.answer.stop == "call_limit"
    assert trace.answer.hits


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        (UsageLimits(max_calls=1), "UsageLimits is no"),
        (ReasoningLimits, "ReasoningLimits is a class"),
        ({"calls": 1}, "A mapping of calls is no"),
        (5, "int is no"),
    ],
)
def test_other_limits_are_refused_with_the_class_that_is_expected(limits, found):
    with Index(recipe="flat") as index, pytest.raises(ConfigurationError) as caught:
        ircot(index, "Who?", model=ScriptedModel(), limits=limits)
    assert found in str(caught.value)
    assert "sire_core.reason.calls.ReasoningLimits(max_steps=..., max_calls=..." in str(caught.value)
