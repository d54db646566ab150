"""Recall of required evidence within budgets of tokens."""

import json

import pytest

from sire_core import Document, Hit, Passage
from sire_core.errors import ConfigurationError
from sire_core.evaluate import EvalConfig, Experiment, load_dataset
from sire_core.evaluate.delivered import as_pieces, delivered_recall, whole_evidence
from sire_core.evaluate.gate import Gate
from sire_core.extend import Question, count_tokens
from sire_core.questions import Quote
from sire_core.types import Unit, UnitKind
from support.command import run

FILLER = "\n\n".join(f"Paragraph {n} is about ropes, sails and other things of ships in harbours." for n in range(30))


def hit(text, doc):
    return Hit(Unit(doc, UnitKind.CHUNK, text, (doc,), title="Ships > Masts"), 1.0, (doc,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("set") / "ships"
    (folder / "docs").mkdir(parents=True)
    for n in range(3):
        (folder / "docs" / f"{n}.md").write_text(
            f"# Ship {n}\n\n{FILLER}\n\nThe mast of ship {n} is made of oak number {n}.\n"
        )
    question = {"id": "q", "question": "What is the mast of ship 1 made of?", "answers": ["oak"]}
    needs = [[{"doc": "1.md", "quote": "The mast of ship 1 is made of oak number 1."}]]
    (folder / "questions.jsonl").write_text(json.dumps({**question, "needs": needs}) + "\n")
    return folder


def test_whole_hits_are_cut_at_the_budget_with_labels_and_titles_counted():
    evidence = whole_evidence([hit("one two three four five", "a"), hit("six seven eight", "b")], 19)
    assert [one.text for one in evidence] == ["one two three four five", "six seven"]
    shown = "".join(f"[{number}] Ships > Masts\n{one.text}\n" for number, one in enumerate(evidence, 1))
    assert count_tokens(shown) == 19


def test_a_need_is_met_by_a_whole_quote_in_its_document_else_the_answer_counts():
    quote = Question("q", "?", needs=((Quote("a", "two **three**"),),))
    assert delivered_recall(quote, whole_evidence([hit("one two three", "a")], 50)) == 1
    assert delivered_recall(quote, whole_evidence([hit("one two three", "b")], 50)) == 0
    answered = Question("q", "?", ("Two three",), ("a",))
    assert delivered_recall(answered, whole_evidence([hit("one two three", "b")], 50)) == 1
    assert delivered_recall(Question("q", "?", ("yes",)), []) is None


def test_pieces_hold_all_text_with_the_title():
    document = Document("d", chunks=(Passage(f"{FILLER}\n\n" + "word " * 300, title="Ships"),))
    [cut] = as_pieces([document])
    assert "".join("".join(piece.text.split()) for piece in cut.passages) == "".join(document.passages[0].text.split())
    assert {piece.title for piece in cut.passages} == {"Ships"}
    assert max(len(piece.text) for piece in cut.passages[:-1]) <= 450


def test_an_experiment_has_rows_of_pieces_and_contexts(folder):
    rows = Experiment(load_dataset(folder), recipes=["sire"], baselines=["bm25"], budgets=(40, 4000)).run()
    assert [row.setup.recipe for row in rows] == ["bm25", "bm25, pieces", "hybrid, pieces", "sire"]
    assert rows[-1].mean("context@40") == 100.0
    assert rows.measures()[-1] == "context@4000"
    assert rows[-1].mean("tokens@4000") == 100.0
    assert rows[-1].as_json()["context_within"] == {"40": 100.0, "4000": 100.0}
    assert Gate.read(["recall@5=100"], None).failures(rows) == []


def test_sire_eval_takes_budgets(folder, tmp_path):
    out = tmp_path / "rows.json"
    shown = run("eval", folder, "-r", "sire", "--budgets", "4000,40", "--wide", "--json", out).stdout
    assert "| context 40 |" in shown
    assert list(json.loads(out.read_text())[0]["recall_within"]) == ["40", "4000"]
    assert "write numbers of tokens" in run("eval", folder, "--budgets", "many", code=1).stderr
    with pytest.raises(ConfigurationError, match="budgets"):
        EvalConfig(budgets=(0,))
