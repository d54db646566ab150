"""`sire questions`, and `sire eval` as a condition of a build."""

import json

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from support.command import run as sire


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("gate")
    with Index(path / "ix", recipe="sire") as index:
        index.build(demo_documents())
    sire("questions", path / "ix", "-o", path / "questions.jsonl", "-n", 6)
    return path


@pytest.fixture(scope="module")
def measure(folder):
    return ["eval", folder / "ix", "-r", "sire", "--questions", folder / "questions.jsonl", "-k", 5]


def test_questions_are_readable_and_their_gold_is_in_the_index(folder):
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 6
    with Index(folder / "ix") as index:
        passages = {hit.unit.id: hit.unit for hit in index.search("Halvern Isles", 100)}
    for row in rows:
        first, second = (passages[name] for name in row["supporting"])
        assert first.title in row["question"]
        assert second.title in first.text
    listed = sire("questions", folder / "ix", "-n", 6).output
    assert [json.loads(line) for line in listed.splitlines()] == rows


def test_text_without_names_gets_no_questions(tmp_path):
    with Index(tmp_path / "ix", recipe="sire") as index:
        index.build([Document(str(n), f"milestone {n} learn rapidly latest") for n in range(9)])
    result = sire("questions", tmp_path / "ix", "-o", tmp_path / "q.jsonl", code=1)
    assert "No readable question can be made" in result.output
    assert not (tmp_path / "q.jsonl").exists()


def test_headings_give_questions_where_sentences_connect_no_names(tmp_path):
    tasks = {"Replacing a worn blade": "Lift the guard first.", "Notes": "None yet.", "How to clean the chain": "Wait."}
    text = "\n\n".join(f"## {heading}\n\n{words} {'It takes a while. ' * 90}" for heading, words in tasks.items())
    with Index(tmp_path / "ix", recipe="sire") as index:
        index.build([Document("saw.md", text, "Saw"), Document("mill.md", "# Mill\n\nIt turns.", "Mill")])
    result = sire("questions", tmp_path / "ix", "-o", tmp_path / "q.jsonl")
    assert "2 of 2 come from headings" in result.output
    rows = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text(encoding="utf-8").splitlines()]
    with Index(tmp_path / "ix") as index:
        titles = {hit.unit.id: hit.unit.title for hit in index.search("chain", 100)}
    assert {row["question"]: [titles[name] for name in row["supporting"]] for row in rows} == {
        "How do I replace a worn blade?": ["Saw > Replacing a worn blade"],
        "How do I clean the chain?": ["Saw > How to clean the chain"],
    }
    assert "sire" in sire("eval", tmp_path / "ix", "-r", "sire", "--questions", tmp_path / "q.jsonl").output


def test_cut_offs_are_those_of_k(measure):
    header = sire(*measure, "--wide").output.split("\n| -")[0]
    assert "R@2" in header
    assert "R@5" in header
    assert "R@10" not in header


def test_recipes_below_a_value_fail_and_baselines_may(measure):
    assert "below" not in sire(*measure, "--fail-under", "recall@5=90", "--fail-under", "mrr=50").output
    result = sire(*measure, "--fail-under", "recall@1=51", "--fail-under", "all@3=0", code=1)
    assert "sire: recall@1 is 50.0, below 51." in result.output
    assert "dense: " not in result.output


def test_a_recipe_that_finds_less_than_the_baseline_fails(measure, tmp_path):
    rows = tmp_path / "rows.json"
    sire(*measure, "--json", rows)
    sire(*measure, "--baseline", rows)
    [row] = [row for row in json.loads(rows.read_text(encoding="utf-8")) if row["recipe"] == "sire"]
    assert {result["id"] for result in row["results"]} == {f"q{n}" for n in range(1, 7)}
    assert row["recall_passages"]["5"] == pytest.approx(sum(r["recall"]["5"] for r in row["results"]) / 6, abs=0.1)
    sire(*measure, "--set", "rounds=1", "--baseline", rows)  # other settings are compared, too
    several = [{**row, "settings": {"rounds": number}} for number in (3, 4)]
    rows.write_text(json.dumps(several), encoding="utf-8")
    result = sire(*measure, "--baseline", rows, code=1)
    assert "sire: the baseline has several rows of this recipe, none with these settings" in result.output
    rows.write_text(json.dumps([{**row, "recipe": "raptor"}]), encoding="utf-8")
    assert "sire: the baseline has no row of this recipe;" in sire(*measure, "--baseline", rows, code=1).output
    better = {**row, "recall_passages": {"2": 100.0, "5": 101.0}}
    better["results"] = [{**r, "recall": {"2": 100.0, "5": 101.0 if r["id"] == "q3" else 0.0}} for r in row["results"]]
    rows.write_text(json.dumps([better]), encoding="utf-8")
    result = sire(*measure, "--baseline", rows, code=1)
    assert "and was 101.0; worse: q3." in result.output
    rows.write_text(json.dumps([{**row, "questions": 7}]), encoding="utf-8")
    assert "was measured on 7 questions, this run on 6" in sire(*measure, "--baseline", rows, code=1).output
    others = [{**r, "id": f"other-{r['id']}"} for r in row["results"]]
    rows.write_text(json.dumps([{**row, "results": others}]), encoding="utf-8")
    assert "was measured on other questions, without q1, q2" in sire(*measure, "--baseline", rows, code=1).output
    missing = sire(*measure, "--baseline", tmp_path / "none.json", code=1).output
    assert "none.json: No such file or directory. Write it with sire eval --json." in missing


@pytest.mark.parametrize("text", ["recall=80", "recall@5", "mrr@3=5", "recall@0=5", "recall@5=180", "hits@5=3"])
def test_unreadable_conditions_are_refused_before_anything_is_measured(measure, text):
    result = sire(*measure, "--fail-under", text, code=1)
    assert "write METRIC@K=PERCENT" in result.output


def test_a_condition_on_more_hits_than_are_searched_for_is_refused(measure):
    assert "give -k 10 or more" in sire(*measure, "--fail-under", "recall@10=1", code=1).output


def test_a_file_that_is_no_baseline_is_refused(measure, folder):
    assert "Write it with sire eval --json" in sire(*measure, "--baseline", folder / "questions.jsonl", code=1).output
    assert "Write it with sire eval --json" in sire(*measure, "--baseline", folder / "none.json", code=1).output
