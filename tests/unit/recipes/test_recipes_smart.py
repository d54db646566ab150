"""The recipe `smart`, its rows of tables, and what evaluation says of its trees."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import QueryError
from sire_core.evaluate import DataSet, Experiment
from sire_core.evaluate.answer_eval import AnswerConfig, answer_questions, answer_scores
from sire_core.evaluate.report import format_ablations
from sire_core.extend import Question
from sire_core.recipes import flat, smart
from sire_core.recipes.published import Published, ablations_of
from sire_core.testing.contracts import broken_promises, check_filters, check_order
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.indexes import indexed

ROOT = Path(__file__).resolve().parents[3]
CORPUS = tuple(demo_documents())
QUESTIONS = (
    Question("q1", "Who designed Corrow Lighthouse?", ("Maren Holt",), ("corrow-lighthouse",)),
    Question("q2", "Who commanded the Northern Wren?", ("Aldous Brack",), ("northern-wren",)),
)


@pytest.mark.quick(base=["hybrid", "iier"])
@pytest.mark.parametrize("base", ["bm25", "hybrid", "pagerank", "mix_recall", "sire", "iier"])
@pytest.mark.parametrize("check", [check_order, check_filters], ids=lambda check: check.__name__)
def test_any_base_keeps_the_promises(base, check):
    assert broken_promises(lambda: smart(base=base), [check]) == {}


@pytest.mark.parametrize("base", ["dense", "bm25", "hybrid"])
def test_the_passages_of_a_context_are_those_of_the_base_in_its_order(base):
    with (
        Index(recipe=smart(base=base), embedder=HashEmbedder()) as with_reports,
        Index(recipe=flat(ranker=base), embedder=HashEmbedder()) as without,
    ):
        for index in (with_reports, without):
            index.build(CORPUS)
        for question in QUESTIONS:
            hits = with_reports.search(question.question, 24, returns="units")
            passages = [hit.unit.id for hit in hits if hit.unit.kind.value == "chunk"]
            assert passages == [hit.unit.id for hit in without.search(question.question, len(passages))]
            reports = [hit for hit in hits if hit.unit.kind.value == "report"]
            assert len(reports) == 8
            for hit in reports:
                assert hit.path[0].step == "perspective"
                assert re.search(rf"above {len(hit.path[0].ids)} of the \d+ entities", hit.path[0].note)
            scores = [hit.score for hit in hits if hit.path[-1].step != "top_up"]
            assert scores == sorted(scores, reverse=True)
            for k in (1, 2, 3, 4, 6, 11, 12, 23):
                first = with_reports.search(question.question, k, returns="units")
                assert first == hits[:k]
                assert sum(hit in reports for hit in first) <= k // 3


@pytest.mark.parametrize("base", ["dense", "sire", "iier", "own"])
def test_no_report_pushes_a_passage_out_and_answers_read_them_beside(base):
    from sire_core.recipes import iier, sire
    from sire_core.search.rankers.lexical import Lexical

    class Own(Lexical):
        """A ranker of the user's own."""

    below = {"dense": flat(), "sire": sire(), "iier": iier(), "own": flat(ranker="bm25")}[base]
    recipe = smart(base=Own(leave_out=("report",)) if base == "own" else base)
    with (
        Index(recipe=recipe, embedder=HashEmbedder()) as with_reports,
        Index(recipe=below, embedder=HashEmbedder()) as without,
    ):
        for index in (with_reports, without):
            index.build(CORPUS)
        for question in QUESTIONS:
            for k in (1, 4, 5, 12):
                found = [hit.unit.id for hit in with_reports.search(question.question, k)]
                assert found == [hit.unit.id for hit in without.search(question.question, k)]
        snapshot = with_reports.snapshot()
        hits = snapshot.search(QUESTIONS[0].question, 4)
        beside = [step for hit in hits for step in hit.path if step.step == "report_beside"]
        assert beside
        assert "entities that the hits before it name" in beside[0].note
        lines = asyncio.run(snapshot.background(hits))
        reports = {
            hit.unit.id: hit.unit.text for hit in with_reports.search(QUESTIONS[0].question, 500, returns="units")
        }
        assert lines == [reports[step.ids[0]] for step in beside]
        assert asyncio.run(snapshot.background(snapshot.search(QUESTIONS[0].question, 4, returns="units"))) == []
    bringing = smart(bring=True) if base == "dense" else None
    if bringing is not None:
        with indexed(CORPUS, recipe=bringing, embedder=HashEmbedder()) as index:
            paths = [hit.path for question in QUESTIONS for hit in index.search(question.question, 12)]
            assert any(step.step == "perspective" for path in paths for step in path)


def test_three_perspectives_reach_more_of_what_ambiguous_questions_ask_for(tmp_path):
    # As published, all reports above the hits: with three perspectives more of what "which other" may mean.
    lines = (ROOT / "benchmarks/perspective_questions.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    assert {name for one in asked for name in one["supporting"]} <= {document.id for document in CORPUS}
    reached = {}
    for kappa in (1, 3):
        with indexed(CORPUS, recipe=smart(kappa=kappa, cap=None), chunker=None) as index:
            shares = []
            for one in asked:
                hits = index.search(one["question"], 4, returns="units")
                found = {name for hit in hits for name in hit.doc_ids}
                shares.append(len(found & set(one["supporting"])) / len(one["supporting"]))
        reached[kappa] = sum(shares) / len(shares)
    assert reached[3] > reached[1] > 0.6


def test_four_units_hold_a_report_and_a_search_may_name_its_perspective(tmp_path):
    path = tmp_path / "index"
    with indexed(CORPUS, path, recipe=smart(), embedder=HashEmbedder()) as index:
        hits = index.search(QUESTIONS[0].question, 4, returns="units")
        assert [hit.unit.kind.value for hit in hits] == ["chunk", "chunk", "chunk", "report"]
        views = [tree["view"] for tree in index.stats()["perspectives"]["trees"]]
    with Index(path, recipe=smart(perspective=views[1]), embedder=HashEmbedder()) as index:
        told = index.search(QUESTIONS[0].question, 12, returns="units")
        assert {hit.unit.metadata["view"] for hit in told if hit.unit.kind.value == "report"} == {views[1]}
    with (
        Index(path, recipe=smart(perspective="weather"), embedder=HashEmbedder()) as index,
        pytest.raises(QueryError, match="no perspective 'weather'"),
    ):
        index.search(QUESTIONS[0].question, 12, returns="units")


def test_head_counts_are_a_table_of_modularity_nmi_and_rates(tmp_path, monkeypatch):
    rows = [row for row in ablations_of("smart") if row.label in ("passages alone", "2 heads", "3 heads (the default)")]
    monkeypatch.setattr("sire_core.recipes.published.PUBLISHED", {"smart": Published(tuple(rows))})
    dataset = DataSet("multihop", CORPUS, QUESTIONS)
    made = Experiment(dataset, ["smart"], ablations=True, folder=tmp_path, embedder=HashEmbedder()).run()
    assert [row.setup.recipe for row in made[:2]] == ["dense", "hybrid"]  # baselines stand above the paper's rows
    assert [len(row.setup.perspectives.get("trees", ())) for row in made] == [0, 0, 0, 2, 3]
    table = format_ablations(made).splitlines()
    header = [cell.strip() for cell in table[2].strip("|").split("|")]
    assert header[-4:] == ["modularity", "NMI", "MB", "note"]
    quality, nmi = header.index("modularity"), header.index("NMI")
    assert "paper NMI" in header
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[6:]]
    # The paper's baseline is ours.
    assert (cells[0][quality], cells[0][nmi], cells[0][-1]) == ("-", "-", "no effect: as dense")
    assert all(0 < float(row[quality]) < 100 and 0 <= float(row[nmi]) <= 100 for row in cells[1:])
    assert cells[1][header.index("paper NMI")] == "41.0"
    assert json.loads(json.dumps(made[3].as_json()))["perspectives"]["nmi"] is not None


def test_answers_are_scored_by_the_perspectives_that_their_words_cover():
    perspectives = ["bats produce milk", "bats possess wings", "bats hunt at night"]
    questions = (
        Question("q1", "What of bats?", ("milk",), metadata={"perspectives": perspectives}),
        Question("q2", "What else?", ("milk",)),
    )
    dataset = DataSet("toy", (Document("d", "Bats have wings and produce milk."),), questions)
    model = ScriptedModel(
        lambda call: (
            json.dumps({"answer": "Bats have wings and produce milk", "sufficient": True, "citations": [1]})
            if call.schema
            else "Bats have wings and produce milk [1]"
        )
    )
    with indexed(dataset.documents, recipe=flat(), embedder=HashEmbedder(), language_model=model) as index:
        answered = asyncio.run(answer_questions(index, dataset, AnswerConfig()))
    assert [found.rates.get("perspectives") for found in answered] == [pytest.approx(2 / 3), None]
    assert answer_scores(answered)["perspectives"] == 66.7
    assert "perspectives" not in answer_scores(answered[1:])
