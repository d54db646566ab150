"""Measuring: questions asked, answers kept, rows of experiments."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import pytest

from sire_core import Document, Hit, Index
from sire_core.data import demo_documents, demo_questions
from sire_core.errors import ConfigurationError
from sire_core.evaluate import DataSet, EvalConfig, Experiment, load_questions
from sire_core.evaluate.rows import Setup
from sire_core.evaluate.runner import evaluate
from sire_core.extend import Question
from sire_core.recipes import pagerank, raptor
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from sire_core.types import Unit, UnitKind

DOCUMENTS = tuple(Document(f"d{i}", text=f"Passage number {i} speaks of Rome{i}.", title=f"T{i}") for i in range(6))
TEXTS = {document.id: document.text for document in DOCUMENTS}


def chunk(name):
    return Hit(Unit(f"chunk-{name}", UnitKind.CHUNK, TEXTS[name], (f"c-{name}",)), 1.0, (name,))


def bridge(*names):
    return Hit(Unit(f"bridge-{names}", UnitKind.BRIDGE, "A bridge.", tuple(f"c-{n}" for n in names)), 1.0, names)


@dataclass
class WrittenIndex:
    """Answers every question with the ranking written for it."""

    rankings: dict
    asked: list = field(default_factory=list)

    async def asearch(self, query, k, *, filter=None, returns="units"):
        """Units as written; of passages what the bridges stand on, in their order."""
        assert filter is None
        self.asked.append((query, k, returns))
        if returns == "units":
            return self.rankings[query][:k]
        ids = dict.fromkeys(name for hit in self.rankings[query] for name in hit.doc_ids)
        return [chunk(name) for name in ids][:k]


QUESTIONS = (
    Question("q1", "one?", ("Rome1",), ("d1", "d2"), "bridge", 2),
    Question("q2", "two?", ("yes",), ("d3",), "comparison", 2),
    Question("q3", "three?", (), ("d4", "d5"), "bridge"),
    Question("q4", "four?", ("Rome0", "Paris"), ()),
    Question("q5", "never asked?"),
)
RANKINGS = {
    "one?": [bridge("d2", "d3"), chunk("d1"), chunk("d2"), chunk("d0")],
    "two?": [chunk("d0"), chunk("d1"), chunk("d3")],
    "three?": [chunk("d4"), bridge("d5", "d4"), chunk("d1")],
    "four?": [chunk("d1"), chunk("d2")],
}
DATASET = DataSet("toy", DOCUMENTS, QUESTIONS)


async def row(budget=1500, **config):
    setup = Setup("flat", "hash", "none", pool=9, build_s=1.26)
    return await evaluate(
        WrittenIndex(RANKINGS), DATASET, EvalConfig(ks=(1, 2, 5), budget=budget, **config), setup=setup
    )


async def test_every_measurable_question_is_asked_in_order():
    index = WrittenIndex(RANKINGS)
    steps = []
    await evaluate(index, DATASET, EvalConfig(budget=None), progress=lambda *step: steps.append(step))
    names = ("one?", "two?", "three?", "four?")
    assert index.asked == [(name, 20, returns) for name in names for returns in ("units", "passages")]
    index.asked.clear()
    await evaluate(index, DATASET, EvalConfig(budget=None, returns="passages"))
    assert index.asked == [(name, 20, "passages") for name in names]  # one search serves both
    assert steps == [("questions", i, 4) for i in (1, 2, 3, 4)]


async def test_means_are_over_the_questions_that_count():
    found = await row()
    # Recall: q1, q2, q3. q1 ranks d2 d3 d1 d0, q2 d0 d1 d3, q3 d4 d5 d1.
    assert found.mean("R@1 prov") == pytest.approx(100 * (0.5 + 0 + 0.5) / 3)
    assert found.mean("R@2 prov") == pytest.approx(100 * (0.5 + 0 + 1) / 3)
    assert found.mean("R@5 prov") == pytest.approx(100)
    assert found.mean("R@2 literal") == pytest.approx(100 * (0.5 + 0 + 0.5) / 3)
    assert found.mean("R@5 literal") == pytest.approx(100 * (1 + 1 + 0.5) / 3)
    # Two hits are four documents by provenance, and two passages.
    shallow = await row(depth=2)
    assert shallow.mean("R@5 prov") == pytest.approx(100 * (1 + 0 + 1) / 3)
    assert shallow.recall_passages(5) == pytest.approx(100 * (0.5 + 0 + 1) / 3)
    assert found.recall_passages(2) == pytest.approx(50)
    # Gains at ranks 1 and 3 of two gold ones; at rank 3 of one; at ranks 1 and 2 of two.
    assert found.mean("nDCG@5") == pytest.approx(100 * (1.5 / (1 + 1 / np.log2(3)) + 0.5 + 1) / 3)
    assert found.mean("all@2") == pytest.approx(100 / 3)
    assert found.mean("MRR") == pytest.approx(100 * (1 + 1 / 3 + 1) / 3)
    # Text inside: q1 both, q2 d3, q3 only d4. Answers: q1 found, q4 not; q2 is yes/no and q3 has none.
    assert found.mean("R@budget") == pytest.approx(100 * (1 + 1 + 0.5) / 3)
    assert found.mean("answer@budget") == pytest.approx(50)


async def test_by_kind_splits_recall_by_the_unit_that_brought_the_passage():
    found = await row()
    assert found.results[0].brought_by == ("bridge", "bridge", "chunk", "chunk")  # d2, d3, d1, d0
    kinds = found.by_kind()
    assert list(kinds) == ["bridge", "chunk"]
    assert kinds["bridge"]["hits_5"] == pytest.approx(2 / 4)
    assert kinds["chunk"]["hits_20"] == pytest.approx(10 / 4)
    assert kinds["bridge"]["gold_5"] == pytest.approx(100 * (0.5 + 0 + 0.5) / 3)
    assert kinds["bridge"]["gold_5"] + kinds["chunk"]["gold_5"] == pytest.approx((await row()).mean("R@5 prov"))


async def test_json_has_the_agreed_fields_in_order():
    given = (await row()).as_json()
    assert json.loads(json.dumps(given)) == given
    assert list(given) == [
        *("recipe", "embedder", "extraction", "questions", "passages", "pool", "recall", "recall_passages"),
        *("recall_literal", "returns", "interval", "all", "mrr"),
        *("recall_at_budget", "answer_in_context", "build_s", "query_p50_ms"),  # so far scripts rely on them
        *("dataset", "budget", "ndcg", "documents", "by_hops", "by_type", "by_documents", "by_kind", "results"),
    ]
    assert given["query_p50_ms"] >= 0
    assert {name: given[name] for name in list(given)[:16]} == {
        "recipe": "flat",
        "embedder": "hash",
        "extraction": "none",
        "questions": 4,
        "passages": 6,
        "pool": 9,
        "recall": {"1": 33.3, "2": 50.0, "5": 100.0},
        "recall_passages": {"1": 33.3, "2": 50.0, "5": 100.0},
        "recall_literal": {"1": 16.7, "2": 33.3, "5": 83.3},
        "returns": "units",
        "interval": None,
        "all": {"1": 0.0, "2": 33.3, "5": 100.0},
        "mrr": 77.8,
        "recall_at_budget": 83.3,
        "answer_in_context": 50.0,
        "build_s": 1.3,
    }
    assert given["by_type"] == {"bridge": 100.0, "comparison": 100.0}
    assert given["by_hops"] == {"0": 100.0, "2": 100.0}


async def test_what_no_question_counts_for_is_none():
    only_answers = DataSet("toy", DOCUMENTS, (QUESTIONS[3],))
    given = (await evaluate(WrittenIndex(RANKINGS), only_answers)).as_json()
    assert given["recall"] == {"2": None, "5": None, "10": None, "20": None}
    assert given["mrr"] is given["recall_at_budget"] is None
    assert given["answer_in_context"] == 0
    without = (await row(budget=None)).as_json()
    assert without["recall_at_budget"] is without["answer_in_context"] is None


async def test_an_unfilled_budget_is_filled_with_more_hits_that_recall_does_not_see():
    index = WrittenIndex({"one?": [chunk(f"d{i}") for i in range(6)]})
    dataset = DataSet("toy", DOCUMENTS, (QUESTIONS[0],))
    length = 7  # tokens of one passage
    found = await evaluate(index, dataset, EvalConfig(ks=(1,), budget=3 * length))
    assert found.results[0].documents == ("d0",)
    assert found.mean("R@budget") == 100
    assert index.asked == [("one?", 1, "units"), ("one?", 1, "passages"), ("one?", 4, "units")]
    index.asked.clear()
    await evaluate(index, dataset, EvalConfig(ks=(1,), budget=1000))
    assert index.asked[-1][1] > 6  # the pool ended before the budget, and so did the search
    assert [returns for _, _, returns in index.asked] == ["units", "passages", "units"]


async def test_nothing_to_measure_is_an_error():
    with pytest.raises(ConfigurationError, match="nothing can be measured"):
        await evaluate(WrittenIndex({}), DataSet("toy", DOCUMENTS, (QUESTIONS[4],)))


NOTHING = json.dumps({"names": [], "triples": [], "aliases": []})
DEMO = DataSet("demo", tuple(demo_documents()), tuple(demo_questions()))


def experiment(*recipes, **options):
    return Experiment(DEMO, recipes, embedder=HashEmbedder(), **options)


def names(rows):
    return [row.setup.recipe for row in rows]


def test_rows_of_baselines_and_recipes_share_a_folder_and_are_told_one_by_one(tmp_path):
    finished, stages = [], set()
    run = experiment(
        "flat",
        raptor(depth=1),
        "pagerank",
        settings={"damping": 0.3},
        folder=tmp_path / "ix",
        on_row=lambda row: finished.append(row.setup.recipe),
        progress=lambda stage, *_: stages.add(stage),
    )
    rows = run.run()
    assert names(rows) == finished == ["bm25", "dense", "hybrid", "flat", "raptor", "pagerank"]
    assert [dict(row.setup.settings) for row in rows[3:]] == [{}, {"depth": 1}, {"damping": 0.3}]
    assert rows[0].interval is not None
    assert rows[2].interval is None  # what the others are compared with
    assert "questions to pagerank" in stages
    assert all(row.recall_passages(20) > 50 for row in rows)
    with Index(tmp_path / "ix") as index:
        assert {"flat", "raptor", "pagerank"} <= set(index.stats()["recipes"])
    again = experiment("pagerank", baselines=(), settings={"damping": 0.3}).run()
    assert names(again) == ["pagerank"]
    assert again[0].as_json()["recall_passages"] == rows[-1].as_json()["recall_passages"]


def test_rows_say_that_a_preset_has_no_model_and_that_a_model_returned_nothing():
    for model, notes in (
        (None, ["", "extraction by rules, without a model"]),
        (
            ScriptedModel(lambda _: NOTHING),
            ["", "every ranking is that of dense: the extraction gave no units to rank by"],
        ),
    ):
        options = {"language_model": model, "config": EvalConfig(limit=4)}
        rows = experiment("hipporag2", baselines=("dense",), settings={"preset": "published"}, **options).run()
        assert [row.setup.note for row in rows] == notes
        assert [line["note"] for line in rows.table()] == notes
        for text in (rows.to_csv(), rows.to_latex(), str(rows)):
            assert notes[1] in text


def test_mistakes_are_found_before_anything_is_built(tmp_path):
    for wrong in (
        experiment("pagerank", settings={"dampin": 0.3}, folder=tmp_path),
        experiment("no such recipe", folder=tmp_path),
        experiment("pagerank", baselines=("no such ranker",), folder=tmp_path),
        experiment("flat", ablations=True, folder=tmp_path),
        experiment("flat", ablations=True, repeats=2, folder=tmp_path),
        *([] if find_spec("umap") else [experiment("raptor", settings={"preset": "published"}, folder=tmp_path)]),
    ):
        with pytest.raises(ConfigurationError):
            wrong.run()
    assert not list(tmp_path.iterdir())


def test_an_index_is_asked_as_it_is_with_quotes_as_gold(tmp_path):
    place, questions = tmp_path / "ix", tmp_path / "questions.jsonl"
    with Index(place, recipe=pagerank(), embedder=HashEmbedder(), chunker=None) as index:
        index.build(DEMO.documents)
        documents = index.documents()
    before = sorted(path.name for path in place.iterdir())
    document = documents[0]
    need = {"doc": document.id, "quote": document.passages[0].text[:60]}
    questions.write_text(json.dumps({"id": "q", "question": document.passages[0].text[:60], "needs": [[need]]}))
    dataset = load_questions(questions, documents, "ix")
    rows = Experiment(dataset, (), index=place, settings={"damping": 0.4}, embedder=HashEmbedder()).run()
    assert names(rows) == ["bm25", "dense", "hybrid", "pagerank"]
    assert rows[-1].setup.settings == {"damping": 0.4}
    assert rows[0].recall_passages(5) == 100
    assert sorted(path.name for path in place.iterdir()) == before
    with pytest.raises(ConfigurationError, match="does not hold raptor; it holds pagerank"):
        Experiment(dataset, ["raptor"], index=place).run()
    with pytest.raises(ConfigurationError, match="changes what is built"):
        Experiment(dataset, ["pagerank"], index=place, settings={"max_names": 3}).run()
