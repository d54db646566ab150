"""Facts grouped by entity: a worked example, and invariants."""

import json
from dataclasses import dataclass

import pytest

from sire_core import Document, Index
from sire_core.extraction.record import RecordedExtractor
from sire_core.papers.sirerag.relatedness_tree import Aggregate, FactLine, RelatednessTree, split_aggregate
from sire_core.recipes import sirerag
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Entity, ExtractionRecord, Fact, Unit, UnitKind
from support.derive_outputs import derive_outputs


class View:
    fingerprint = "test"


def group_facts(lines, rule="safe", entity_key="norm", dup_facts="drop"):
    """Aggregates of facts, each stated by a passage of its own that spells out every name."""
    tree = RelatednessTree(singleton_rule=rule, entity_key=entity_key, dup_facts=dup_facts, copy_share=None)
    passages = []
    for number, line in enumerate(lines):
        names = dict.fromkeys(line.entities)
        entities = tuple(Entity(f"n{i}", name) for i, name in enumerate(names))
        fact = Fact("f", line.text, tuple(f"n{list(names).index(name)}" for name in line.entities))
        text = f"{line.text} {' '.join(names)}"
        unit = Unit(f"p{number}", UnitKind.CHUNK, text, line.chunk_ids)
        passages.append((unit, ExtractionRecord("", "m", "p", entities=entities, facts=(fact,))))
    outputs, units = derive_outputs(tree.steps(View()), passages)
    facts = outputs["facts"]
    found = []
    for output in outputs["aggregates"].values():
        for unit in map(units.__getitem__, output.units):
            said = unit.text.split("\n")
            chunks = {body["text"]: tuple(body["chunks"]) for known in facts.values() for body in known.data}
            lines_ = tuple(FactLine(text, (), chunks[text] if dup_facts == "drop" else ()) for text in said)
            found.append(Found(unit.entity_keys, unit.title, lines_, unit.text, unit.chunk_ids))
    return found


@dataclass
class Found:
    keys: tuple
    name: str
    facts: tuple
    text: str
    chunk_ids: tuple


FACTS = [
    FactLine("A founded B.", ("A", "B"), ("d0",)),
    FactLine("B makes C.", ("B", "C"), ("d0",)),
    FactLine("Sales rise.", (), ("d0",)),
    FactLine("C was sold to A.", ("C", "a"), ("d1",)),
    FactLine("D likes tea.", ("D",), ("d1",)),
    FactLine("E married D.", ("E", "D"), ("d1",)),
    FactLine("F met G.", ("F", "G"), ("d2",)),
    FactLine("G hired F.", ("G", "F"), ("d2",)),
]
NUMBER = {fact.text: number for number, fact in enumerate(FACTS, 1)}


def numbered(aggregates):
    """Fact numbers by key; aggregates of several keys stand under each."""
    return {key: [NUMBER[fact.text] for fact in found.facts] for found in aggregates for key in found.keys}


def test_oracle_S1_singleton_rules():
    everything = {"a": [1, 4], "b": [1, 2], "c": [2, 4], "d": [5, 6], "e": [6], "f": [7, 8], "g": [7, 8]}
    paper = group_facts(FACTS, "paper", "lower")
    assert numbered(paper) == everything
    code = group_facts(FACTS, "code", "lower")
    assert numbered(code) == {key: facts for key, facts in everything.items() if key != "e"}
    assert len(code) == 5
    assert [found.keys for found in code] == [("a",), ("b",), ("c",), ("d",), ("f", "g")]
    assert code[0].text == "A founded B.\nC was sold to A."
    assert code[0].name == "A"
    assert code[0].chunk_ids == ("d0", "d1")
    assert group_facts(FACTS, "safe", "lower") == code


def test_oracle_S1_exact_keys_keep_A_and_a_apart():
    found = numbered(group_facts(FACTS, "paper", "exact"))
    assert len(found) == 8
    assert found["A"] == [1]
    assert found["a"] == [4]


@pytest.mark.parametrize(("rule", "keys"), [("code", []), ("safe", [("x",)]), ("paper", [("x", "y")])])
def test_oracle_S1b_a_fact_that_would_vanish(rule, keys):
    found = group_facts([FactLine("X met Y.", ("X", "Y"), ("d0",))], rule, "lower")
    assert [aggregate.keys for aggregate in found] == keys
    assert all(aggregate.text == "X met Y." for aggregate in found)


def test_equal_facts_of_two_passages_merge_or_stay():
    facts = [FactLine("A met B.", ("A", "B"), ("d0",)), FactLine("A met B.", ("A", "C"), ("d1",))]
    (merged,) = group_facts(facts, "paper")
    assert (merged.text, merged.chunk_ids, merged.keys) == ("A met B.", ("d0", "d1"), ("a", "b", "c"))
    kept = group_facts(facts, "paper", dup_facts="keep")
    assert kept[0].text == "A met B.\nA met B."
    assert [(found.keys, found.text, found.chunk_ids) for found in kept[1:]] == [(("b", "c"), "A met B.", ("d0", "d1"))]


def test_parts_are_headed_only_by_a_name_that_their_chunks_state():
    facts = (FactLine("one two three", ("Ann",), ("c0",)), FactLine("four five six", ("Ann",), ("c1",)))
    parts = split_aggregate(Aggregate(("ann",), "Ann", facts), 4, {"c0"})
    assert parts == [("Ann\none two three", ("c0",)), ("four five six", ("c1",))]


def test_table_3_counts_facts_per_entity_and_follows_changes(tmp_path):
    texts = {
        "a": "Ann Low founded Mill House. Ann Low paints.",
        "b": "Bo Reed met Ann Low.",
        "c": "Cy Dorn met Ann Low.",
    }
    rows = [
        {"id": "a", "entities": ["Ann Low", "Mill House"], "triples": [["Ann Low", "founded", "Mill House"]]},
        {"id": "b", "entities": ["Bo Reed", "Ann Low"], "triples": [["Bo Reed", "met", "Ann Low"]]},
        {"id": "c", "entities": ["Cy Dorn", "Ann Low"], "triples": [["Cy Dorn", "met", "Ann Low"]]},
    ]
    path = tmp_path / "recorded.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    documents = [Document(name, text) for name, text in texts.items()]
    recipe = sirerag(singleton_rule="paper", copy_share=None)
    with Index(recipe=recipe, embedder=HashEmbedder(), extractor=RecordedExtractor(path)) as index:
        index.build(documents[:2])
        first = index.stats()["facts_per_entity"]
        assert first == {"entities": 3, "mean": 1.67, "max": 3, "min": 1}
        index.add(documents[2:])
        assert index.stats()["facts_per_entity"] == {"entities": 4, "mean": 1.75, "max": 4, "min": 1}
        index.delete(["c"])
        assert index.stats()["facts_per_entity"] == first
