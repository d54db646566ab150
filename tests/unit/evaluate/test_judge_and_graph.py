"""MS-RAG's pairwise judge (table 4) and missing relations (appendix M)."""

import json

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, ModelError
from sire_core.evaluate import DataSet
from sire_core.evaluate.analysis import CRITERIA, compare_answers, judge_pair, missing_triples
from sire_core.evaluate.answer_metrics import AnsweredQuestion
from sire_core.extend import Question
from sire_core.extraction.record import RecordedExtractor
from sire_core.recipes import msrag
from sire_core.testing.doubles import HashEmbedder, ScriptedModel


def verdict(**winners):
    return json.dumps({**dict.fromkeys(CRITERIA, 1), **winners})


async def test_a_judge_sees_both_orders_and_a_split_is_half():
    def script(call):
        data = json.loads(call.data)
        assert data["accepted"] == ["Otto"]
        place = 1 if data["answer 1"] == "Otto" else 2
        return verdict(correctness=place, comprehension={"winner": f"Answer {place}"}, overall=place)

    model = ScriptedModel(script)
    # Diversity: whoever stands first; so each wins once.
    assert await judge_pair("Who?", ["Otto"], "Otto", "Mira", model) == {
        "correctness": 1.0,
        "diversity": 0.5,
        "comprehension": 1.0,
        "overall": 1.0,
    }
    assert len(model.log) == 2
    assert await judge_pair("Who?", ["Otto"], "Otto", "Otto ", ScriptedModel([])) == dict.fromkeys(CRITERIA, 0.5)


def answered(name, text):
    return AnsweredQuestion(Question(name, "Who?", ("Otto",)), text, "answered", {}, 1, 1)


async def test_shares_of_wins_leave_out_what_the_judge_failed_on():
    answers = [verdict(), verdict(**dict.fromkeys(CRITERIA, 2)), ModelError("no")]
    ones, others = [answered("q1", "Otto"), answered("q2", "Otto")], [answered("q1", "Mira"), answered("q2", "Elm")]
    model = ScriptedModel(answers)
    model.concurrency = 1
    found = await compare_answers(ones, others, model)
    assert found == {**dict.fromkeys(CRITERIA, 100.0), "questions": 1, "failed": 1}
    with pytest.raises(ConfigurationError, match="same questions"):
        await compare_answers(ones, others[:1], model)


@pytest.fixture
def index(tmp_path):
    rows = [
        {"id": "a", "entities": ["Mira Vale", "Port Amber"], "triples": [["Mira Vale", "lives in", "Port Amber"]]},
        {"id": "b", "entities": ["Otto Kell"], "triples": []},
    ]
    file = tmp_path / "recorded.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    made = Index(recipe=msrag(rerank="none"), embedder=HashEmbedder(), extractor=RecordedExtractor(file))
    made.build([Document("a", "Mira Vale lives in Port Amber."), Document("b", "Otto Kell was a sailor.")])
    return made


async def test_a_model_says_what_the_graph_lacks(index):
    corpus = (Document("a", "Mira Vale lives in Port Amber."), Document("b", "Otto Kell was a sailor."))
    dataset = DataSet("toy", corpus, (Question("q", "Who was a sailor?", ("Otto Kell",), ("b",)),))

    def script(call):
        data = json.loads(call.data)
        lacks = [["Otto Kell", "was", "sailor"]] if "sailor" in data["passage"] else []
        return json.dumps({"correct": [relation["number"] for relation in data["relations"]] + [9], "missing": lacks})

    found = await missing_triples(index, dataset, ScriptedModel(script), 5)
    assert found == {"missing": 50.0, "wrong": 0.0, "passages": 2, "failed": 0, "relations": 1}
    flat = Index(recipe="flat", embedder=HashEmbedder())
    flat.build(corpus)
    assert await missing_triples(flat, dataset, ScriptedModel([])) == {}
