"""`sire eval`: indexes that models made, settings of ablations, and what their rows say."""

import json

import pytest
from typer.testing import CliRunner

from sire_core.cli.app import app
from sire_core.data import demo_documents, demo_questions
from sire_core.testing.scripted_server import ScriptedServer
from sire_core.testing.scripts import default_script


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def rows_of(file):
    return json.loads(file.read_text(encoding="utf-8"))


def lines(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    folder = tmp_path / "musique-demo"
    folder.mkdir()
    lines(folder / "corpus.jsonl", [{"id": d.id, "title": d.title, "text": d.text} for d in demo_documents()])
    asked = [
        {"id": q.id, "question": q.question, "answers": q.answers, "supporting": q.supporting} for q in demo_questions()
    ]
    lines(folder / "questions.jsonl", asked)
    return folder


@pytest.mark.parametrize("made_by", ["model", "recording"])
def test_an_index_that_a_model_made_is_measured_without_the_model(dataset, tmp_path, made_by):
    index, file = tmp_path / "ix", tmp_path / "r.json"
    corpus, questions = dataset / "corpus.jsonl", dataset / "questions.jsonl"
    if made_by == "model":
        with ScriptedServer(default_script) as server:
            model = ("--llm", "m", "--base-url", server.base_url, "--yes")
            run("index", corpus, "--to", index, "-r", "sirerag", *model)
    else:
        recording = tmp_path / "recording.jsonl"
        lines(recording, [{"id": d.id, "entities": [d.title], "triples": [], "model": "m"} for d in demo_documents()])
        run("index", corpus, "--to", index, "-r", "sirerag", "--extractions", recording)
    before = run("stats", index, "--json").stdout
    run("eval", index, "--questions", questions, "--json", file)
    assert [row["recipe"] for row in rows_of(file)] == ["bm25", "dense", "hybrid", "sirerag"]
    assert rows_of(file)[-1]["pool"] == json.loads(before)["units"]
    assert run("stats", index, "--json").stdout == before
