"""The doubles that tests and users run against."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from sire_core.errors import ModelError
from sire_core.protocols import LanguageModel, Prompt
from sire_core.testing.doubles import ScriptedModel


class Deep(BaseModel):
    class Inner(BaseModel):
        text: str
        score: float

    items: list[Inner]
    level: int
    sure: bool
    note: str | None = None


async def test_the_default_script_answers_any_schema_and_always_the_same() -> None:
    model = ScriptedModel()
    assert isinstance(model, LanguageModel)
    prompt = Prompt("Fill it.", "First sentence. Second one.")
    one = await model.complete(prompt, schema=Deep)
    assert one.parsed.items[0].text == "First sentence."
    assert (await ScriptedModel().complete(prompt, schema=Deep)).parsed == one.parsed
    assert (await model.complete(prompt)).text == "First sentence. Second one."
    assert (await model.complete(prompt, stop=[" Second"])).text == "First sentence."
    assert [call.number for call in model.log] == [1, 2, 3]


async def test_a_list_of_answers_ends() -> None:
    model = ScriptedModel(["one", ModelError("two")])
    assert (await model.complete(Prompt("x"))).text == "one"
    with pytest.raises(ModelError, match="two"):
        await model.complete(Prompt("x"))
    with pytest.raises(ModelError, match="2 answers"):
        await model.complete(Prompt("x"))
