import json

from sire_core import Document, Index
from sire_core.knowledge.element_summaries import summarize_elements
from sire_core.recipes import msrag
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.types import Unit, UnitKind


def answer(call):
    data = json.loads(call.data)
    said = [
        {"id": e["id"], "summary": f"About {e['name']}:  {data['passages'][e['passages'][0]]}"}
        for e in data["elements"]
    ]
    return json.dumps({"summaries": said})


async def test_twenty_elements_share_a_call_and_their_passages_are_sent_once():
    model = ScriptedModel(answer)
    elements = [Unit(f"e{i}", UnitKind.ENTITY, f"name {i}", ("c0", f"c{i}")) for i in range(1, 42)]
    texts = {f"c{i}": f"text {i}" for i in range(42)}
    found, failures = await summarize_elements(elements, texts, model)
    assert [len(json.loads(call.data)["elements"]) for call in model.log] == [20, 20, 1]
    assert json.loads(model.log[0].data)["passages"].count("text 0") == 1
    assert found["e7"] == "About name 7: text 0"
    assert list(found) == [element.id for element in elements]
    assert failures == []


async def test_a_call_that_fails_is_reported_and_loses_only_itself():
    model = ScriptedModel(lambda call: answer(call) if '"name": "n1"' not in call.data else "garbage")
    elements = [Unit(f"e{i}", UnitKind.ENTITY, f"n{i}", (f"c{i}",)) for i in range(2)]
    texts = {f"c{i}": "word " * 5_000 for i in range(2)}
    found, failures = await summarize_elements(elements, texts, model)
    assert set(found) == {"e0"}
    assert len(failures) == 1
    assert "'n1'" in failures[0].where


def script(call):
    return answer(call) if '"elements"' in call.data else ""


def test_eager_summaries_follow_the_corpus_and_are_asked_for_once():
    model = ScriptedModel(script)
    one = Document("a", "Mira Vale directed The Long Tide.", "The Long Tide")
    two = Document("b", "Port Amber is a harbor near Elmford.", "Port Amber")
    index = Index(
        recipe=msrag(summaries="eager"), embedder=HashEmbedder(), language_model=model, extractor=PlainExtractor()
    )

    def summaries():
        view = index.view()
        return {
            unit.text: unit.metadata["summary"]
            for unit in view.units(range(view.size))
            if unit.kind.value in ("entity", "relation")
        }

    index.build([one])
    first = summaries()
    assert first
    assert all(text.startswith("About ") for text in first.values())
    calls = len(model.log)
    index.add([two])
    asked = [e["name"] for call in model.log[calls:] for e in json.loads(call.data)["elements"]]
    assert asked
    assert not set(asked) & set(first)
    both = summaries()
    assert {name: both[name] for name in first} == first
    index.delete(["b"])
    assert summaries() == first
