"""`sire eval`: indexes that models made, settings of ablations, and what their rows say."""

import json

import pytest

from sire_core.data import demo_documents, demo_questions
from sire_core.recipes import recipe_by_name, recipe_of
from sire_core.recipes.published import PUBLISHED, Published, ablations_of
from sire_core.testing.doubles import default_script
from support.command import run
from support.scripted_server import ScriptedServer


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


def kept(monkeypatch, recipe, *labels):
    """Keep few rows of a paper."""
    rows = tuple(row for row in ablations_of(recipe) if row.label in labels)
    assert len(rows) == len(labels)
    monkeypatch.setitem(PUBLISHED, recipe, Published(rows))


def test_a_given_setting_is_left_out_of_rows_that_make_it_idle_and_holds_in_rows_of_other_recipes(
    dataset, tmp_path, monkeypatch
):
    kept(monkeypatch, "indexrag", "facts of documents only", "at most 1 bridging facts")
    file = tmp_path / "r.json"
    words = ("--ablations", "--limit", 1, "--json", file)
    table = run("eval", dataset, "-r", "indexrag", "--set", "k_b=2", *words).stdout
    rows = {row["recipe"]: row for row in rows_of(file)}
    assert list(rows) == ["dense", "hybrid", "facts of documents only", "at most 1 bridging facts"]
    assert rows["facts of documents only"]["note"] == "without k_b, idle here"
    assert "| without k_b, idle here |" in " ".join(table.split())
    assert rows["at most 1 bridging facts"]["settings"]["k_b"] == 1  # the row's own
    assert all("note" not in row for name, row in rows.items() if name != "facts of documents only")

    result = run("eval", dataset, "-r", "indexrag", "--set", "stage2=false", *words)
    assert "at most 1 bridging facts: left out, k_b has no effect with stage2=False" in " ".join(result.stderr.split())
    assert [row["recipe"] for row in rows_of(file)] == ["dense", "hybrid", "facts of documents only"]

    kept(monkeypatch, "sirerag", "RAPTOR", "BM25 over passages")
    run("eval", dataset, "-r", "sirerag", "--set", "depth=1", *words)
    rows = {row["recipe"]: row["settings"] for row in rows_of(file)}
    assert rows["RAPTOR"] == {"depth": 1}  # the comparison is made as the recipe is
    assert rows["BM25 over passages"] == {"ranker": "bm25"}
    assert rows["dense"] == {"ranker": "dense"}


def test_a_value_that_is_refused_costs_nothing(dataset, tmp_path):
    with ScriptedServer(default_script) as server:
        words = ("-r", "sirerag,indexrag", "--ablations", "--set", "k_b=-1", "--sentence-groups")
        words += ("--llm", "m", "--base-url", server.base_url)
        assert "k_b" in run("eval", dataset, *words, code=1).stderr
        assert not server.log


def script(call):
    if "Always answer" in call.instructions:
        return "Varn Harbour"
    return json.dumps({"answer": "Varn Harbour [1]", "citations": [1], "sufficient": True})


def test_tokens_of_answers_from_a_file_count_and_rows_without_effect_are_marked(dataset, tmp_path, monkeypatch):
    kept(monkeypatch, "smart", "passages alone")  # the recipe flat, as `dense` is
    file = tmp_path / "r.json"
    with ScriptedServer(script) as server:
        words = ("-r", "smart", "--ablations", "--answer", "single", "--reader-only", "--limit", 2, "--json", file)
        words += ("--llm", "m", "--base-url", server.base_url, "--answers", tmp_path / "kept.jsonl")
        run("eval", dataset, *words)
        first = rows_of(file)
        run("eval", dataset, *words)
    for rows in (first, rows_of(file)):
        assert [row.get("same_as", "") for row in rows] == ["", "", "dense"]
        assert rows[0]["answers"]["tokens"] == rows[2]["answers"]["tokens"] > 100
    assert first[0]["answers"]["tokens"] == rows[0]["answers"]["tokens"]
    assert "TPQ" in first[0]["answers"]
    assert "TPQ" not in rows[0]["answers"]  # nobody was asked


def test_a_row_without_retrieval_shows_none(dataset, tmp_path, monkeypatch):
    kept(monkeypatch, "iier", "no retrieval")
    file = tmp_path / "r.json"
    with ScriptedServer(script) as server:
        words = ("-r", "iier", "--ablations", "--answer", "single", "--reader-only", "--limit", 2, "--json", file)
        table = run("eval", dataset, *words, "--llm", "m", "--base-url", server.base_url).stdout
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line]
    found = {line[1]: dict(zip(cells[0], line, strict=True)) for line in cells[2:]}
    searched = [name for name in cells[0] if name.startswith(("R@", "vs", "all@", "nDCG", "answer@"))]
    assert len(searched) > 5
    assert {found["no retrieval"][name] for name in searched} == {"-"}
    assert found["no retrieval"]["EM"] != "-"
    assert found["dense"]["R@5"] != "-"
    assert rows_of(file)[-1]["recall"]["5"] is not None  # what scripts read stays


@pytest.mark.parametrize("form", ["2wiki", "musique"])
def test_the_form_of_official_records_decides_which_f1_is_used(tmp_path, monkeypatch, form):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    record = {"_id": "q", "question": "Is Ada older?", "answer": "no", "type": "comparison"}
    if form == "2wiki":
        record |= {"context": [["Ada", ["Ada is old."]], ["Bo", ["Bo is old."]]], "supporting_facts": [["Ada", 0]]}
    else:
        passages = [("Ada", "Ada is old.", True), ("Bo", "Bo is old.", False)]
        record |= {
            "id": "2hop__1",
            "paragraphs": [
                {"idx": i, "title": title, "paragraph_text": text, "is_supporting": gold}
                for i, (title, text, gold) in enumerate(passages)
            ],
        }
    place = tmp_path / ("dev.json" if form == "2wiki" else "dev.jsonl")
    place.write_text(json.dumps([record]) if form == "2wiki" else json.dumps(record), encoding="utf-8")
    answer = json.dumps({"answer": "no she is not [1]", "citations": [1], "sufficient": True})
    with ScriptedServer(lambda _: answer) as server:
        words = ("--answer", "single", "--reader-only", "--llm", "m", "--base-url", server.base_url)
        table = run("eval", place, "-r", "flat", *words, "--json", tmp_path / "r.json").stdout
    scores = rows_of(tmp_path / "r.json")[0]["answers"]
    assert scores["F1 rule"] == ("hotpot" if form == "2wiki" else "words")
    assert (scores["F1"] == 0) == (form == "2wiki")
    assert ("a wrong yes or no counts 0" in table) == (form == "2wiki")


def test_a_preset_is_built_kept_and_measured(dataset, tmp_path):
    index, file = tmp_path / "i", tmp_path / "r.json"
    run(
        "index",
        dataset / "corpus.jsonl",
        "--to",
        index,
        "-r",
        "msrag",
        "--preset",
        "published",
        "--set",
        "hop_decay=0.9",
    )
    config = recipe_of(index).config
    assert (config["preset"], config["vote"], config["hop_decay"]) == ("published", "count", 0.9)
    run("index", dataset / "corpus.jsonl", "--to", index, "-r", "msrag", "--preset", "ours")
    assert recipe_of(index).config == recipe_by_name("msrag").config
    run("eval", dataset, "-r", "flat,msrag", "--preset", "published", "--limit", 1, "--json", file)
    assert [row.get("settings") for row in rows_of(file)[-2:]] == [None, {"preset": "published"}]
    refused = run("eval", dataset, "-r", "flat", "--preset", "published", code=1).output
    assert "flat has no preset 'published'; it has ours." in refused


def test_answers_of_a_flavor_read_what_it_collects(dataset, tmp_path):
    examples = tmp_path / "examples.txt"
    examples.write_text("Q: one? A: two.")
    with ScriptedServer(default_script) as server:
        words = ("-r", "flat", "--limit", 1, "--llm", "m", "--base-url", server.base_url, "--reader-only")
        run("eval", dataset, *words, "--answer", "ircot", "--flavor", "original", "--examples", examples)
        readers = [e.call for e in server.log if "numbered passages alone" in e.call.instructions]
        assert max(len(call.fields["passages"]) for call in readers) > 10
        assert any("Q: one? A: two." in e.call.instructions for e in server.log)
        wrong = run("eval", dataset, *words, "--answer", "single", "--flavor", "original", code=1).output
    assert "A flavor and examples are for ircot and self-ask only." in wrong
    assert "--flavor and --examples need --answer" in run("eval", dataset, "--flavor", "original", code=1).output
