from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from sire_core.errors import ConfigurationError, ModelError
from sire_core.extraction.answers import ExtractionAnswer
from sire_core.extraction.model import ModelExtractor
from sire_core.extraction.record import RecordedExtractor
from sire_core.models.answers import parse_answer
from sire_core.protocols import ChunkInContext, LanguageModel, Prompt
from sire_core.testing.doubles import ScriptedCall, ScriptedModel, rule_answer
from sire_core.types import Chunk
from support.faults import FAULTS, always, at_calls, by_chance, first, replay


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


def test_rule_answers_fit_the_extraction_schema() -> None:
    answer = parse_answer(json.dumps(rule_answer("Ann Lee", "Ann Lee met Bob in Paris. It rained.")), ExtractionAnswer)
    assert isinstance(answer, ExtractionAnswer)
    assert [entity.name for entity in answer.entities][:2] == ["Ann Lee", "Bob"]
    assert len(answer.facts) == 2


async def test_a_list_of_answers_ends() -> None:
    model = ScriptedModel(["one", ModelError("two")])
    assert (await model.complete(Prompt("x"))).text == "one"
    with pytest.raises(ModelError, match="two"):
        await model.complete(Prompt("x"))
    with pytest.raises(ModelError, match="2 answers"):
        await model.complete(Prompt("x"))


def test_fault_plans() -> None:
    def call(number: int, attempt: int = 0, data: str = "x") -> ScriptedCall:
        return ScriptedCall("i", data, None, number, attempt)

    assert [at_calls({2: "reset"})(call(n)) for n in (1, 2, 3)] == [None, "reset", None]
    assert [first("empty", 2)(call(1, attempt)) for attempt in range(3)] == ["empty", "empty", None]
    assert always("refusal", lambda call: "bad" in call.data)(call(1, data="bad one")) == "refusal"
    plan = by_chance({"reset": 0.2, "empty": 0.3}, seed=5)
    faults = [plan(call(n, data=str(n))) for n in range(2000)]
    assert 300 < faults.count("reset") < 500
    assert 500 < faults.count("empty") < 700
    assert faults == [by_chance({"reset": 0.2, "empty": 0.3}, seed=5)(call(9, data=str(n))) for n in range(2000)]
    with pytest.raises(ConfigurationError, match="unknown"):
        always("nonsense")  # type: ignore[arg-type]
    assert len(set(FAULTS)) == len(FAULTS)


@pytest.mark.data
async def test_replayed_extractions_become_the_recorded_records() -> None:
    folder = Path(os.environ.get("SIRE_DATA", "../shared/data")) / "musique"
    if not folder.is_dir():
        pytest.skip("no benchmark data")
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(200), strict=False)]
    chunks = [Chunk(row["id"], row["id"], 0, row["title"], row["text"]) for row in rows]
    expected = RecordedExtractor(folder / "extractions.jsonl").records(chunks)
    model = ScriptedModel(replay(folder / "extractions.jsonl", folder / "corpus.jsonl"))
    items = [ChunkInContext(chunk) for chunk in chunks]
    found = {record.hash: record async for batch in ModelExtractor(model).extract(items) for record in batch}
    for chunk, record in zip(chunks, expected, strict=True):
        replayed = found[chunk.hash]
        assert (replayed.status, replayed.entities, replayed.facts) == (record.status, record.entities, record.facts)
        assert replayed.keywords == record.keywords
