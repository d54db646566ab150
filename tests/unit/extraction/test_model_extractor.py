"""Extraction by models, alone and merged with rules."""

from __future__ import annotations

import json

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.extend import estimate_tokens
from sire_core.extraction.merged import MergedExtractor, merge_records
from sire_core.extraction.model_extractor import ModelExtractor
from sire_core.extraction.record import from_json, to_json, validate
from sire_core.models.base import CheckedModel
from sire_core.models.prompt_format import render
from sire_core.protocols import ChunkInContext, Completion, Extractor
from sire_core.testing.doubles import ScriptedModel
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple


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
    assert validate(record, item.chunk) == record
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
    with pytest.raises(ConfigurationError, match="native is one of"):
        ModelExtractor(model, native="triples:Disease")


def test_prompts_stay_short() -> None:
    """The system message of a passage, counted in words and marks, which is above a tokenizer's count for it."""
    rendered = render(ModelExtractor(ScriptedModel()).prompt(chunk(1)))
    assert estimate_tokens(rendered.system) < 260


TEXT = (
    "Petra Quillon was a Norwegian painter. She was born in Varn Harbour in 1931. Her teacher was Odd Lunde. "
    "In 1960 she painted The Salt Lantern for the Holt Museum."
)


class OneFact(CheckedModel):
    """Says one thing of every passage, as small models do."""

    fingerprint = "one-fact"

    def __init__(self):
        self.calls = 0
        self.requests = []

    async def send(self, request):
        self.calls += 1
        self.requests.append(request)
        entities = [{"id": "n1", "name": "Quillon", "type": "Painter", "aliases": ["Petra Quillon"]}]
        fact = {"text": "Petra Quillon was taught by Odd Lunde.", "entities": ["n1"], "triples": []}
        return Completion(json.dumps({"entities": entities, "facts": [fact], "keywords": [], "topic": "a painter"}))


def test_a_fact_that_both_state_is_one_and_what_the_model_left_out_is_added():
    model = ExtractionRecord(
        "h",
        "m",
        "p",
        entities=(Entity("n1", "Petra Quillon", "Painter"), Entity("n2", "Odd Lunde")),
        facts=(Fact("f1", "Odd Lunde taught Petra Quillon.", ("n1",), triples=(Triple("n2", "taught", "n1"),)),),
        keywords=("teacher",),
        topic="a painter",
    )
    rules = ExtractionRecord(
        "h",
        "rules",
        "p",
        entities=(
            Entity("e1", "Quillon", aliases=("Petra Quillon",)),
            Entity("e2", "Lunde", "Person", ("Odd Lunde",)),
            Entity("n2", "Varn Harbour"),
        ),
        facts=(
            Fact("f1", "Petra Quillon taught Odd Lunde.", ("e1", "e2"), triples=(Triple("e1", "met", "e2"),)),
            Fact("f2", "Petra Quillon was born in Varn Harbour.", ("e1", "n2"), triples=(Triple("e1", "born", "n2"),)),
        ),
        keywords=("Varn Harbour",),
        topic="Quillon",
    )
    merged = merge_records(model, rules)
    assert [(entity.id, entity.name, entity.type) for entity in merged.entities] == [
        ("n1", "Petra Quillon", "Painter"),
        ("n2", "Odd Lunde", "Person"),
        ("n3", "Varn Harbour", ""),
    ]
    assert "Quillon" in merged.entities[0].aliases
    same, added = merged.facts
    assert (same.text, same.entities) == ("Odd Lunde taught Petra Quillon.", ("n1", "n2"))
    assert same.triples == (Triple("n2", "taught", "n1"),)  # the same ends are related already
    assert (added.text, added.entities, added.triples) == (
        "Petra Quillon was born in Varn Harbour.",
        ("n1", "n3"),
        (Triple("n1", "born", "n3"),),
    )
    assert merged.keywords == ("teacher", "Varn Harbour")
    assert (merged.topic, merged.model) == ("a painter", "m")


def test_the_model_is_given_the_names_and_asked_once_for_each_passage(tmp_path):
    documents = [
        Document("petra", TEXT, "Petra Quillon"),
        Document("holt", "The Holt Museum stands in Osby. It was founded by Ada Brink.", "Holt Museum"),
        Document("osby", "Osby is a town of 9,000 people on the river Lene.", "Osby"),
    ]

    def built(extraction, folder):
        model = OneFact()
        index = Index(tmp_path / folder, recipe="pagerank", language_model=model, extraction=extraction)
        index.build(documents)
        assert model.calls == 3
        assert not index.build(documents).calls  # stored
        if extraction == "model+rules":  # the names are given, and nothing else is asked for
            asked = {json.loads(request.prompt.data)["title"]: request for request in model.requests}["Petra Quillon"]
            assert {"Varn Harbour", "Odd Lunde"} <= set(json.loads(asked.prompt.data)["entities"])
            assert set(asked.schema.model_fields) == {"facts"}
            assert asked.max_tokens < 500
        fingerprint = index.stats()["extraction"]
        index.close()
        return fingerprint

    alone, both = built("joint", "a"), built("model+rules", "b")
    assert (alone, both) == ("one-fact|extract/v1", "one-fact|given/v1+rules/8")


async def test_sentences_that_the_model_left_out_are_facts_of_the_record():
    chunk = Chunk("petra#0", "petra", 0, "Petra Quillon", TEXT)
    ((record,),) = [batch async for batch in MergedExtractor(OneFact()).extract([ChunkInContext(chunk)])]
    names = {entity.id: entity.name for entity in record.entities}
    facts = {fact.text: {names[found] for found in fact.entities} for fact in record.facts}
    assert {"Petra Quillon", "Odd Lunde"} <= facts["Petra Quillon was taught by Odd Lunde."]
    (painted,) = (found for text, found in facts.items() if "1960" in text)
    assert any("Salt Lantern" in name for name in painted)
    assert len(facts) >= 4
    assert record.model == "one-fact"
    assert record.keywords
