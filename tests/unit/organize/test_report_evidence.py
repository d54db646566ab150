"""What passages state arrives in a report, however the trees group it."""

import json

import pytest

from sire_core import Document, Index
from sire_core.extraction.record import RecordedExtractor
from sire_core.recipes import smart
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script

TRIANGLES = [("Alba", "Bero", "Cilo"), ("Dara", "Elmo", "Fion"), ("Gana", "Hugo", "Ivar"), ("Jory", "Kasa", "Lumi")]


def sentences(names):
    return [f"{names[a]} met {names[b]}." for a, b in ((0, 1), (1, 2), (0, 2))]


def barbells(folder, second=()):
    """Two pairs of triangles, each triangle in a passage of its own, and a bridge per pair in one more; a second bridge of the first pair last."""
    texts = {f"t{number}": sentences(names) for number, names in enumerate(TRIANGLES)}
    texts |= {"b0": ["Cilo met Dara."], "b1": ["Ivar met Jory."]}
    return recorded(folder, {**texts, **({"b2": second} if second else {})}, "met")


def recorded(folder, texts, *predicates):
    """Documents, and an extractor that has a triple per sentence `head predicate tail.`."""
    rows = []
    for name, said in texts.items():
        first = [next(word for word in predicates if f" {word} " in sentence) for sentence in said]
        split = [(sentence.rstrip("."), word) for sentence, word in zip(said, first, strict=True)]
        triples = [[part.strip() for part in sentence.partition(f" {word} ")] for sentence, word in split]
        entities = list(dict.fromkeys(end for triple in triples for end in (triple[0], triple[2])))
        rows.append({"id": name, "entities": entities, "triples": triples, "model": "by hand"})
    path = folder / "recorded.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    documents = [Document(name, " ".join(said)) for name, said in texts.items()]
    return documents, RecordedExtractor(path)


def reports(index):
    view = index.view()
    return [unit for unit in view.units(range(view.size)) if unit.kind.value == "report"]


def test_oracle_E11_clusters_of_one_passage_hand_their_statements_on(tmp_path):
    """No triangle has a report, since one passage says it all; the two barbells above them say all seven sentences."""
    documents, extractor = barbells(tmp_path)
    with Index(
        recipe=smart(kappa=1, levels=2, extract_tokens=200), embedder=HashEmbedder(), extractor=extractor
    ) as index:
        index.build(documents)
        found = reports(index)
    assert [unit.level for unit in found] == [2, 2]
    for pair, bridge in ((0, "Cilo met Dara."), (2, "Ivar met Jory.")):
        told = next(unit for unit in found if bridge in unit.text)
        said = {bridge, *sentences(TRIANGLES[pair]), *sentences(TRIANGLES[pair + 1])}
        assert set(told.text.split("\n")[1:]) == said
        assert len(told.chunk_ids) == 3


@pytest.mark.parametrize("model", [None, ScriptedModel()], ids=["extracts", "model"])
def test_as_published_every_internal_node_has_a_report(tmp_path, model):
    documents, extractor = barbells(tmp_path)
    recipe = smart(kappa=1, levels=2, extract_tokens=200, min_passages=1)
    with Index(recipe=recipe, embedder=HashEmbedder(), extractor=extractor, language_model=model) as index:
        index.build(documents)
        found = reports(index)
    assert sorted(unit.level for unit in found) == [1, 1, 1, 1, 2, 2]
    assert sorted(len(unit.chunk_ids) for unit in found) == [1, 1, 1, 1, 3, 3]


def test_a_model_is_shown_what_parts_without_a_report_know(tmp_path):
    shown = []

    def script(call):
        if call.schema is None or "findings" not in json.dumps(call.schema):
            return default_script(call)
        shown.append(json.loads(call.input))
        return json.dumps({"title": "Community", "summary": "They met.", "findings": []})

    documents, extractor = barbells(tmp_path)
    model = ScriptedModel(script)
    with Index(
        recipe=smart(kappa=1, levels=2), embedder=HashEmbedder(), extractor=extractor, language_model=model
    ) as index:
        index.build(documents)
    assert sorted(len(found["statements"]) for found in shown) == [7, 7]


def test_what_clusters_without_a_report_know_outlives_a_change(tmp_path):
    """The triangles stay as they are, and so are not read again, when a second bridge joins them."""
    documents, extractor = barbells(tmp_path, second=["Alba met Fion."])
    recipe = smart(kappa=1, levels=2, drift=1.0, extract_tokens=200)
    with Index(recipe=recipe, embedder=HashEmbedder(), extractor=extractor) as index:
        index.build(documents[:-1])
        index.add(documents[-1:])
        told = next(unit for unit in reports(index) if "Alba met Fion." in unit.text)
    said = {"Cilo met Dara.", "Alba met Fion.", *sentences(TRIANGLES[0]), *sentences(TRIANGLES[1])}
    assert set(told.text.split("\n")[1:]) == said


def test_every_cluster_that_two_passages_speak_of_has_a_report(tmp_path):
    """The best sentences stand in one passage and fill the report; the other passage is quoted all the same."""
    long = "Alba met Bero in the long winter before the harbour of the northern town was closed for good by the ice."
    texts = [Document("a", f"{long} Bero met Cilo."), Document("b", f"{long[:-1]} again. Alba met Cilo.")]
    path = tmp_path / "recorded.jsonl"
    triples = [
        [["Alba", "met", "Bero"], ["Bero", "met", "Cilo"]],
        [["Alba", "met", "Bero"], ["Alba", "met", "Cilo"]],
    ]
    names = ["Alba", "Bero", "Cilo"]
    rows = [{"id": d.id, "entities": names, "triples": t, "model": "m"} for d, t in zip(texts, triples, strict=True)]
    other = {"id": "c", "entities": ["Dara", "Elmo"], "triples": [["Dara", "met", "Elmo"]], "model": "m"}
    path.write_text("\n".join(map(json.dumps, [*rows, other])))
    recipe = smart(kappa=1, levels=1, extract_tokens=24)
    with Index(recipe=recipe, embedder=HashEmbedder(), extractor=RecordedExtractor(path)) as index:
        index.build([*texts, Document("c", "Dara met Elmo.")])
        (report,) = reports(index)
    assert len(report.chunk_ids) == 2


MILK = ["Cows", "Cats", "Dogs", "Bats"]
WINGS = ["Bats", "Chickens", "Ducks"]


def test_oracle_E12_milk_and_wings_are_two_perspectives(tmp_path):
    """The example of SMART, section 1 and 4: bats stand with the milk givers in one tree, with the winged in another."""
    texts = {f"milk {name}": [f"{name} produce milk."] for name in MILK}
    texts |= {f"no milk {name}": [f"{name} do not produce milk."] for name in ("Chickens", "Ducks")}
    texts |= {f"wings {name}": [f"{name} possess wings."] for name in WINGS}
    documents, extractor = recorded(tmp_path, texts, "do not produce", "produce", "possess")
    recipe = smart(kappa=6, levels=2, extract_tokens=80)  # eight entities need no third level
    with Index(recipe=recipe, embedder=HashEmbedder(), extractor=extractor) as index:
        index.build(documents)
        found = reports(index)
        hits = index.search("What else is like bats?", 24, returns="units")
    milk = {f"{name} produce milk." for name in MILK}
    wings = {f"{name} possess wings." for name in WINGS}
    said = {unit.id: set(unit.text.split("\n")[1:]) for unit in found}
    giving = {unit.tree for unit in found if said[unit.id] == milk}
    winged = {
        unit.tree for unit in found if wings <= said[unit.id] and not said[unit.id] & (milk - {"Bats produce milk."})
    }
    assert giving
    assert winged - giving
    shown = [hit.unit.id for hit in hits]
    assert any(said[name] == milk for name in shown if name in said)
    assert any(wings <= said[name] for name in shown if name in said)
