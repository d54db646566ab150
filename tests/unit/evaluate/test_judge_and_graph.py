"""MS-RAG's pairwise judge (table 4), error analysis (table 14) and missing relations (appendix M)."""

import json

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, ModelError
from sire_core.evaluate.analysis import (
    CRITERIA,
    classify_error,
    compare_answers,
    graph_errors,
    judge_pair,
    missing_triples,
)
from sire_core.evaluate.answer_eval import AnsweredQuestion
from sire_core.evaluate.datasets import DataSet, Question
from sire_core.evaluate.rows import EvalRow, QuestionResult, Setup
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
    return AnsweredQuestion(Question(name, "Who?", ("Otto",)), text, "answered", 0, 0, 0, 0, 0, 1, 1)


async def test_shares_of_wins_leave_out_what_the_judge_failed_on():
    answers = [verdict(), verdict(**dict.fromkeys(CRITERIA, 2)), ModelError("no")]
    ones, others = [answered("q1", "Otto"), answered("q2", "Otto")], [answered("q1", "Mira"), answered("q2", "Elm")]
    model = ScriptedModel(answers)
    model.concurrency = 1
    found = await compare_answers(ones, others, model)
    assert found == {**dict.fromkeys(CRITERIA, 100.0), "questions": 1, "failed": 1}
    with pytest.raises(ConfigurationError, match="same questions"):
        await compare_answers(ones, others[:1], model)


def result(name, gold, passages):
    return QuestionResult(name, "", gold, passages, (), passages, (), 0.0, passages=passages)


def test_oracle_M8_errors_by_their_cause():
    stated = {"a": ["A knows B"], "b": ["B knows C"]}
    ranked = ("x1", "a", "x2", "b", "x3", "x4", "c")
    # By hand: a is second, b fourth: the rerank could have put it first. c stands seventh and states nothing.
    assert classify_error(result("q", ("a",), ranked), stated) == ""
    assert classify_error(result("q", ("a", "b"), ranked), stated) == "rerank"
    assert classify_error(result("q", ("a", "c"), ranked), stated) == "graph"
    assert classify_error(result("q", ("a", "c"), ranked), {**stated, "c": ["C is D"]}) == "recall"
    assert classify_error(result("q", ("a", "c"), ranked), stated, complete={"c": True}) == "recall"
    # Four gold passages cannot stand among two: the first four are looked at.
    assert classify_error(result("q", ("x1", "a", "x2", "b"), ranked), stated) == ""


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
    passages = ("x1", "x2", "x3", "x4", "x5")
    row = EvalRow(Setup("msrag"), "toy", 2, (2,), None, (result("q", ("b",), passages),))
    shares = {"graph": 100.0, "recall": 0.0, "rerank": 0.0, "errors": 1, "questions": 1}
    assert await graph_errors(index, dataset, row, None) == shares
    assert (await graph_errors(index, dataset, row, ScriptedModel(lambda call: "Yes.")))["recall"] == 100.0

    def script(call):
        data = json.loads(call.data)
        lacks = [["Otto Kell", "was", "sailor"]] if "sailor" in data["passage"] else []
        return json.dumps({"correct": [relation["number"] for relation in data["relations"]] + [9], "missing": lacks})

    found = await missing_triples(index, dataset, ScriptedModel(script), 5)
    assert found == {"missing": 50.0, "wrong": 0.0, "passages": 2, "failed": 0, "relations": 1}
    flat = Index(recipe="flat", embedder=HashEmbedder())
    flat.build(corpus)
    assert await graph_errors(flat, dataset, row, None) == await missing_triples(flat, dataset, ScriptedModel([])) == {}
