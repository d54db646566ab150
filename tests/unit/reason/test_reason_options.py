"""Multiple choice: which option a reply names."""

from contextlib import aclosing

import pytest

from sire_core.reason.calls import ModelCalls, ReasoningLimits
from sire_core.reason.reader import ReadAnswer, ReaderConfig, read
from sire_core.testing.doubles import ScriptedModel

MOODS = ("He is angry", "He is angry and sad", "He is glad")
NUMBERS = ("2", "3", "1", "4")
YEARS = ("1910", "1912", "2 dogs")


@pytest.mark.parametrize(
    ("options", "reply", "chosen"),
    [
        (MOODS, "2. He is angry and sad", "He is angry and sad"),
        (MOODS, "He is angry and sad.", "He is angry and sad"),
        (MOODS, "**3**", "He is glad"),
        (MOODS, "1, and not 3: He is glad", "He is angry"),
        (MOODS, "The answer is 3.", "He is glad"),
        (MOODS, "He is angry", "He is angry"),
        (MOODS, "I cannot say.", ""),
        (NUMBERS, "3", "1"),
        (NUMBERS, "Option 4", "4"),
        (YEARS, "1912", "1912"),
        (YEARS, "2", "1912"),
        (YEARS, "2 dogs", "2 dogs"),
    ],
)
async def test_a_number_decides_then_the_longest_option_that_is_written_out(options, reply, chosen):
    calls = ModelCalls(ScriptedModel([reply]), ReasoningLimits(), keep=True)
    async with aclosing(read(calls, "Which?", (), config=ReaderConfig(options=options))) as parts:
        (answer,) = [part async for part in parts if isinstance(part, ReadAnswer)]
    assert answer.text == chosen
    assert answer.sufficient == bool(chosen)
