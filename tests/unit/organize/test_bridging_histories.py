"""What IndexRAG asks for and retires when documents come, change and go; its oracles; failures."""

import json

import pytest

from sire_core.errors import ModelError
from sire_core.index import Index
from sire_core.recipes import indexrag
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.types import Document, UnitKind

IDS = [f"d{i}" for i in range(6)]


def write(call):
    """Joins the first two documents' first facts; `Eve` has nothing to say, and two entities may say the same."""
    data = json.loads(call.data)
    first = [document["facts"][0] for document in data["documents"]]
    facts = [] if data["entity"] == "Eve" else [f"{data['entity']}: {' and '.join(first)}", f"{len(first)} documents."]
    return json.dumps({"facts": facts})


def document(name, content):
    facts = [(f"{who} {what} in {name}.", [who]) for who, what in content]
    return Document(name, " ".join(text for text, _ in facts) or "Nothing."), facts


def flaky(errors):
    """Fails as often as `errors` says."""

    def script(call):
        if errors:
            errors.pop()
            raise ModelError("the model is away")
        return write(call)

    return script


def test_a_failed_entity_is_reported_and_asked_again_by_the_next_change(tmp_path):
    made = {name: document(name, [("Ann", "sang")]) for name in IDS[:3]}
    extractor = PlainExtractor({doc.text: facts for doc, facts in made.values()})
    model = ScriptedModel(flaky([1]))
    with Index(
        tmp_path,
        recipe=indexrag(),
        embedder=HashEmbedder(),
        extractor=extractor,
        language_model=model,
        max_failure_ratio=1,
    ) as index:
        report = index.build([made["d0"][0], made["d1"][0]])
        assert ["Ann" in failure.where for failure in report.failures] == [True]
        assert report.units.get("bridge", 0) == 0
        assert index.add([made["d2"][0]]).units["bridge"] == 2


@pytest.mark.parametrize(("stage1", "asked"), [("qa", 0), ("summary", 1)])
def test_only_the_changed_document_is_read_again(tmp_path, stage1, asked):
    model = ScriptedModel()
    recipe = indexrag(stage1=stage1, stage2=False)
    documents = [Document(name, f"{name} is a document about Ann and {name}.") for name in IDS]
    with Index(
        tmp_path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor(), language_model=model
    ) as index:
        index.build(documents[:5])
        before = len(model.log)
        assert index.add(documents[5:]).units["aku"] == 6
        assert len(model.log) - before == asked


CORPUS = {"d1": "x y hub", "d2": "x hub", "d3": "y z hub", "d4": "hub w"}
WHOLE = {**CORPUS, "d5": "x z w new hub"}
STORIES = {name: document(name, [(who, "sang") for who in names.split()]) for name, names in WHOLE.items()}


class Small:
    """An index over the documents of the oracles, with a model that says of each entity that it joins."""

    def __init__(self, tau, names):
        self.model = ScriptedModel(lambda call: json.dumps({"facts": [f"{json.loads(call.data)['entity']} joins."]}))
        self.index = Index(
            recipe=indexrag(tau=tau),
            embedder=HashEmbedder(),
            extractor=PlainExtractor({made.text: facts for made, facts in STORIES.values()}),
            language_model=self.model,
        )
        self.index.build([STORIES[name][0] for name in names])

    def asked(self):
        """Entities that were asked about since the last time."""
        found = {json.loads(call.data)["entity"] for call in self.model.log}
        self.model.log.clear()
        return found

    def bridges(self):
        """Entities that have bridging facts."""
        view = self.index.view()
        return {unit.text.split()[0] for unit in view.units(range(view.size)) if unit.kind == UnitKind.BRIDGE}


@pytest.mark.parametrize(("tau", "expected"), [(3, {"x", "y"}), (4, {"hub", "x", "y"}), (2, {"x", "y"})])
def test_oracle_X2_bridge_entities(tau, expected):
    small = Small(tau, CORPUS)
    with small.index:
        assert small.asked() == small.bridges() == expected


@pytest.mark.parametrize(
    ("tau", "written", "retired"),
    [
        (3, {"w", "x", "z"}, set()),
        (2, {"w", "z"}, {"x"}),
        (4, {"w", "x", "z"}, {"hub"}),
        (10, {"hub", "w", "x", "z"}, set()),
    ],
)
def test_oracle_X3_adding_a_document(tau, written, retired):
    small = Small(tau, CORPUS)
    with small.index:
        before, _ = small.bridges(), small.asked()
        small.index.add([STORIES["d5"][0]])
        assert small.asked() == written
        assert before - small.bridges() == retired
        assert small.bridges() == (before - retired) | written


def test_oracle_X5_removing_the_document_again():
    small = Small(4, WHOLE)
    with small.index:
        assert small.bridges() == small.asked() == {"w", "x", "y", "z"}
        small.index.delete(["d5"])
        assert small.asked() == {"hub", "x"}  # formed again, and known by less
        assert small.bridges() == {"hub", "x", "y"}
        small.index.add([STORIES["d5"][0]])
        assert small.asked() == set()  # nothing is paid for twice
        assert small.bridges() == {"w", "x", "y", "z"}
