"""A small model's records completed by the rules."""

import json

from sire_core import Document, Index
from sire_core.extraction.merged import MergedExtractor, merge_records
from sire_core.models.base import CheckedModel
from sire_core.protocols import ChunkInContext, Completion
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple

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
    assert (alone, both) == ("one-fact|extract/v1", "one-fact|given/v1+rules/3")


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


def test_a_record_that_failed_stays_failed(tmp_path):
    class Broken(OneFact):
        async def send(self, request):
            return Completion("no JSON")

    index = Index(
        tmp_path / "ix", recipe="pagerank", language_model=Broken(), extraction="model+rules", max_failure_ratio=1.0
    )
    report = index.build([Document("petra", TEXT, "Petra Quillon")])
    assert [failure.where for failure in report.failures] == ["petra#0"]
    index.close()
