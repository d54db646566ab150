from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from sire_core.errors import ConfigurationError, LimitExceededError, ModelError, RefusalError
from sire_core.extraction.answers import ExtractionAnswer
from sire_core.extraction.model import ModelExtractor
from sire_core.extraction.record import from_json, to_json, validate
from sire_core.models.answers import schema_hint, strict_json_schema
from sire_core.models.caching import CachedModel
from sire_core.models.prompt_format import render
from sire_core.models.usage import UsageLimits, estimate_tokens
from sire_core.models.usage_meter import UsageMeter, with_meter
from sire_core.protocols import ChunkInContext, Extractor
from sire_core.testing.doubles import ScriptedCall, ScriptedModel, default_script
from sire_core.types import Chunk, Entity, Triple


def chunk(number: int, text: str | None = None, title: str = "") -> ChunkInContext:
    return ChunkInContext(Chunk(f"c{number}", f"d{number}", 0, title, text or f"Ann met Bob in {1900 + number}."))


async def records(extractor: Extractor, chunks: list[ChunkInContext]):
    found = {record.hash: record async for batch in extractor.extract(chunks) for record in batch}
    return [found[item.chunk.hash] for item in chunks]


ANSWER = {
    "entities": [
        {"id": "n1", "name": "Ann Lee", "type": "Person", "aliases": ["Ann"], "description": "founder"},
        {"id": "n2", "name": "Acme"},
    ],
    "facts": [
        {
            "text": "Ann Lee founded Acme.",
            "entities": ["n1", "n2", "n9"],
            "question": "Who founded Acme?",
            "answer": "",
            "triples": [{"h": "n1", "p": "founded", "t": "n2", "strength": 9}],
        }
    ],
    "keywords": ["founded Acme", "not in the text"],
    "topic": "companies",
    "abstractiveness": "high",
}


async def test_one_call_makes_the_whole_record() -> None:
    model = ScriptedModel([json.dumps(ANSWER)])
    item = chunk(1, "Ann founded Acme.", "Ann Lee")
    (record,) = await records(ModelExtractor(model), [item])
    assert record.status == "ok"
    assert record.hash == item.chunk.hash
    assert (record.model, record.prompt) == ("scripted:default", "extract/v1")
    assert record.entities[0] == Entity("n1", "Ann Lee", "Person", ("Ann",), "founder")
    fact = record.facts[0]
    assert (fact.entities, fact.answer, fact.question) == (("n1", "n2"), "Ann Lee founded Acme.", "Who founded Acme?")
    assert fact.triples == (Triple("n1", "founded", "n2", 9.0),)
    assert (record.keywords, record.topic, record.abstractiveness) == (("founded Acme",), "companies", "high")
    assert from_json(to_json(record)) == record
    assert validate(record, item.chunk)[0] == record
    assert len(model.log) == 1


async def test_the_previous_chunk_is_context_only_and_bounded() -> None:
    model = ScriptedModel()
    item = ChunkInContext(chunk(1).chunk, "word " * 5_000 + "the end")
    await records(ModelExtractor(model), [item])
    fields = model.log[0].fields
    assert fields["passage"] == item.chunk.text
    assert fields["context"].endswith("the end")
    assert len(fields["context"].split()) <= 201
    assert "take nothing else from it" in model.log[0].instructions


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (RefusalError("no"), "RefusalError"),
        (ModelError("server is down"), "server is down"),
        ("never any json", "schema"),
        ('{"unexpected": 1}', "schema"),
    ],
)
async def test_a_failure_is_a_failed_record_and_stops_nothing_else(outcome: str | Exception, reason: str) -> None:
    def script(call: ScriptedCall) -> str:
        if "1905" not in call.input:
            return default_script(call)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    found = await records(ModelExtractor(ScriptedModel(script)), [chunk(n) for n in range(12)])
    assert [n for n, record in enumerate(found) if record.status == "failed"] == [5]
    assert reason in found[5].reason
    assert found[5].facts == ()
    assert all(record.facts for n, record in enumerate(found) if n != 5)


async def test_nothing_to_extract_is_not_a_failure() -> None:
    found = await records(ModelExtractor(ScriptedModel(['{"entities": [], "facts": []}'])), [chunk(1, "Hm.")])
    assert (found[0].status, found[0].reason) == ("empty", "")
    model = ScriptedModel()
    assert (await records(ModelExtractor(model), [chunk(1, "  \n ")]))[0].status == "empty"
    assert model.log == []


async def test_a_chunk_too_long_for_one_answer_fails_without_a_call() -> None:
    model = ScriptedModel()
    found = await records(ModelExtractor(model, max_chunk_tokens=100), [chunk(1, "word " * 200_000)])
    assert found[0].status == "failed"
    assert "smaller chunks" in found[0].reason
    assert model.log == []


async def test_a_limit_yields_everything_answered_first_and_says_how_far_it_got() -> None:
    meter = UsageMeter(UsageLimits(max_calls=7))
    model = ScriptedModel(latency=0.001)
    got = []
    with pytest.raises(LimitExceededError, match=r"stopped after 7 of 30 chunks: the limit of 7 calls"):  # noqa: PT012 - the loop raises
        async for batch in ModelExtractor(with_meter(model, meter, "extract"), concurrency=4).extract(
            [chunk(n) for n in range(30)]
        ):
            got += batch
    assert len(got) == len(model.log) == 7
    assert all(record.status == "ok" for record in got)


async def test_concurrency_is_bounded_and_tasks_do_not_grow_with_the_chunks() -> None:
    most_tasks = most_active = 0

    def script(call: ScriptedCall) -> str:
        nonlocal most_tasks, most_active
        most_tasks = max(most_tasks, len(asyncio.all_tasks()))
        most_active = max(most_active, call.active)
        return default_script(call)

    model = ScriptedModel(script, latency=0.0005)
    await records(ModelExtractor(model, concurrency=5), [chunk(n) for n in range(400)])
    assert most_active == 5
    assert most_tasks <= 5 + 2


async def test_native_asks_three_times_and_links_entities_by_triples_and_names() -> None:
    answers = [
        "Ann Lee founded Acme in Paris.",
        json.dumps(
            {"entities": {"n1": {"name": "Ann Lee", "type": "Person"}, "n2": {"name": "Acme"}, "n3": {"name": "Paris"}}}
        ),
        json.dumps(
            {
                "facts": {
                    "f1": {"fact": "Ann Lee founded Acme in Paris.", "triples": [["Ann Lee", "founded", "Acme"]]},
                    "f2": {"fact": "It rained.", "triples": []},
                }
            }
        ),
    ]
    model = ScriptedModel(answers)
    item = ChunkInContext(Chunk("c", "d", 0, "Acme", "She founded it in Paris."), "Ann Lee was rich.")
    (record,) = await records(ModelExtractor(model, native="rewrite"), [item])
    assert [entity.name for entity in record.entities] == ["Ann Lee", "Acme", "Paris"]
    assert [fact.entities for fact in record.facts] == [("n1", "n2", "n3"), ()]
    assert record.facts[0].triples == (Triple("n1", "founded", "n2"),)
    assert record.prompt == "native/v1"
    assert "context" in model.log[0].fields
    assert model.log[1].fields == {"title": "Acme", "passage": answers[0]}
    assert model.log[2].fields["entities"] == ["Ann Lee", "Acme", "Paris"]


def test_fingerprints_tell_ways_of_asking_apart() -> None:
    model = ScriptedModel()
    joint, native = ModelExtractor(model), ModelExtractor(model, native="rewrite")
    assert joint.fingerprint == "scripted:default|extract/v1"
    assert native.fingerprint == "scripted:default|native/v1"
    assert not joint.links_titles
    with pytest.raises(ConfigurationError, match="v1"):
        ModelExtractor(model, prompt_version="v99")


def test_prompts_stay_short() -> None:
    """The system message of a passage, counted in words and marks, which is above a tokenizer's count for it."""
    rendered = render(ModelExtractor(ScriptedModel()).prompt(chunk(1)))
    assert estimate_tokens(rendered.system) < 260


async def test_native_steps_resume_from_stored_answers() -> None:
    class Store(dict):
        def answer(self, key: str) -> str | None:
            return self.get(key, ("", ()))[0] or None

        def tokens(self, _key: str) -> tuple[int, int]:
            return 0, 0

        def put_answer(self, key: str, answer: str, *, sources=(), **_: object) -> None:
            self[key] = (answer, sources)

    store = Store()

    def down_at_facts(call: ScriptedCall) -> str:
        if "entities" in call.fields:
            raise ModelError("down")
        return default_script(call)

    broken, whole = ScriptedModel(down_at_facts), ScriptedModel()
    assert (await records(ModelExtractor(CachedModel(broken, store), native="rewrite"), [chunk(1)]))[
        0
    ].status == "failed"
    assert (await records(ModelExtractor(CachedModel(whole, store), native="rewrite"), [chunk(1)]))[0].status == "ok"
    assert (len(broken.log), len(whole.log)) == (3, 1)
    assert {sources for _, sources in store.values()} == {("c1",)}


@pytest.mark.data
def test_prompts_of_musique_passages_have_at_most_700_tokens(monkeypatch) -> None:
    """Counted by a real byte-pair encoding, with the JSON schema that a server may put in front."""
    tiktoken = pytest.importorskip("tiktoken")
    llama_index = pytest.importorskip("llama_index.core")
    cache = Path(llama_index.__file__).parent / "_static" / "tiktoken_cache"
    data = Path(os.environ.get("SIRE_DATA", "../shared/data")) / "musique" / "corpus.jsonl"
    if not cache.is_dir() or not data.is_file():
        pytest.skip("no encoding or no benchmark data here")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
    encoding = tiktoken.get_encoding("cl100k_base")
    extractor = ModelExtractor(ScriptedModel())
    schema = json.dumps(strict_json_schema(ExtractionAnswer), separators=(",", ":"))
    with data.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    prompts = [
        render(extractor.prompt(ChunkInContext(Chunk(r["id"], r["id"], 0, r["title"], r["text"])))) for r in rows
    ]
    user = sum(map(len, encoding.encode_batch([prompt.user for prompt in prompts]))) / len(rows)
    fixed = len(encoding.encode(prompts[0].system)) + len(encoding.encode(schema)) + 10
    assert user + fixed <= 660
    hinted = len(encoding.encode(prompts[0].system + schema_hint(ExtractionAnswer))) + 10
    assert user + hinted <= 450
    estimate = sum(estimate_tokens(prompt.user) for prompt in prompts) / len(rows)
    assert 0.9 * user < estimate < 1.2 * user
