"""A small model's records completed by the rules."""

import json

from sire_core import Document, Index
from sire_core.extraction.merged import merge_records
from sire_core.models.base import CheckedModel
from sire_core.protocols import Completion
from sire_core.types import Entity, ExtractionRecord, Fact, Triple

TEXT = (
    "Petra Quillon was a Norwegian painter. She was born in Varn Harbour in 1931. Her teacher was Odd Lunde. "
    "In 1960 she painted The Salt Lantern for the Holt Museum."
)


class OneFact(CheckedModel):
    """Says one thing of every passage, as small models do."""

    fingerprint = "one-fact"

    def __init__(self):
        self.calls = 0

    async def send(self, request):
        self.calls += 1
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


def test_an_index_finds_what_the_model_left_out_and_asks_it_no_more_often(tmp_path):
    documents = [
        Document("petra", TEXT, "Petra Quillon"),
        Document("holt", "The Holt Museum stands in Osby. It was founded by Ada Brink.", "Holt Museum"),
        Document("osby", "Osby is a town of 9,000 people on the river Lene.", "Osby"),
    ]

    def linked(extraction, folder):
        model = OneFact()
        index = Index(tmp_path / folder, recipe="pagerank", language_model=model, extraction=extraction)
        index.build(documents)
        assert model.calls == 3
        assert not index.build(documents).calls  # stored
        names = {
            (head.unit.title, step.note)
            for head in index.search("Where is the museum that holds The Salt Lantern?", 3)
            for step in head.path
        }
        fingerprint = index.stats()["extraction"]
        index.close()
        return fingerprint, " ".join(note for _, note in sorted(names))

    alone, poor = linked("joint", "a")
    both, rich = linked("model+rules", "b")
    assert both == f"{alone}+rules/2"
    assert "Salt Lantern" not in poor
    assert "Salt Lantern" in rich


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
