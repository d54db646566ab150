"""`sire eval` on a small data set."""

import importlib.util
import json
import re

import pytest

from sire_core.data import demo_documents, demo_questions
from sire_core.errors import RefusalError
from sire_core.models.openai.faults import RetryPolicy
from sire_core.recipes.published import PUBLISHED, Published, ablations_of
from sire_core.testing.doubles import default_script
from support.command import run
from support.scripted_server import ScriptedServer


def test_baselines_stand_beside_every_recipe(demo_set, tmp_path):
    file = tmp_path / "rows.json"
    result = run("eval", demo_set, "--recipes", "raptor,sirerag", "--json", file, "--by-kind")
    rows = json.loads(file.read_text(encoding="utf-8"))
    assert [row["recipe"] for row in rows] == ["bm25", "dense", "hybrid", "raptor", "sirerag"]
    for row in rows:
        assert (row["questions"], row["passages"]) == (8, 41)
        assert 0 < row["recall"]["5"] <= 100
    assert [row["pool"] for row in rows[:3]] == [41, 41, 41]
    assert rows[3]["pool"] > 41
    assert [row["extraction"].split("/")[0] for row in rows] == ["none", "none", "none", "none", "rules"]
    assert len({json.dumps(row["recall"]) for row in rows}) > 2  # the rankers really differ
    assert len({row["embedder"] for row in rows}) == 1
    assert all(f"| {row['recipe']} " in result.stdout for row in rows)
    assert "What each kind of unit contributes" in result.stdout
    assert "8 of 8 questions" in result.stderr
    assert [row["interval"] is None for row in rows] == [False, False, True, False, False]
    assert rows[4]["interval"]["difference"] == pytest.approx(
        rows[4]["recall_passages"]["5"] - rows[2]["recall_passages"]["5"], abs=0.11
    )


def test_texts_questions_settings_and_hits_are_chosen(demo_set, tmp_path):
    file = tmp_path / "rows.json"
    asked = ("--questions", "odd", "--untitled", "--returns", "passages", "-k", 3, "--by-type")
    words = ("-r", "pagerank,iier", "--set", "damping=0.3", "--json", file, *asked)
    result = run("eval", demo_set, *words)
    rows = {row["recipe"]: row for row in json.loads(file.read_text(encoding="utf-8"))}
    assert list(rows) == ["bm25", "dense", "hybrid", "pagerank", "iier"]
    for row in rows.values():
        assert (row["questions"], row["dataset"]) == (4, "demo-set, untitled, odd questions")
        assert row["returns"] == "passages"
        assert row["recall"] == row["recall_passages"] == row["recall_literal"]
        assert list(row["recall"]) == ["2", "3"]  # there are three hits
    assert rows["pagerank"]["settings"] == {"damping": 0.3}
    assert not any("settings" in rows[name] for name in ("bm25", "hybrid", "iier"))
    assert "| pagerank damping=0.3 |" in result.stdout
    assert "R@5 by hops" in result.stdout
    for words, message in (
        (("--set", "damping=7"), "damping"),
        (("--set", "nope=1"), "nope"),
        (("--untitled", "--titles-in-text"), "not both"),
        (("--questions", "odd", "--questions", "even"), "takes one of"),
        (("--questions", "none.jsonl"), "is for an index folder"),
        (("--reader-prompt", "paper"), "need --answer"),
        (("--answers", tmp_path / "a.jsonl"), "needs --llm"),
    ):
        assert message in run("eval", demo_set, "-r", "pagerank", *words, code=1).stderr


def test_rows_of_the_builds_before_one_that_fails_are_shown_and_written(demo_set, tmp_path):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "seed-1").write_text("a file where the second build would be")
    words = ("--to", tmp_path / "to", "--limit", 2, "--json", tmp_path / "r.json")
    result = run("eval", demo_set, "-r", "flat", "--repeats", 2, *words, code=1)
    rows = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [(row["recipe"], row["repeats"]["builds"]) for row in rows] == [
        (name, 1) for name in ("bm25", "dense", "hybrid", "flat")
    ]
    assert "4 rows of it" in result.stderr
    assert all(f"| {row['recipe']} " in result.stdout for row in rows)


def test_ablations_stand_beside_the_papers_figures(demo_set, tmp_path, monkeypatch):
    demo_set = demo_set.rename(tmp_path / "musique-demo")
    labels = (
        "SiReRAG",
        "RAPTOR",
        "BM25 over SiReRAG's pool",
        "BM25 over passages",
        "closed book",
        "instruction embedded",
    )
    rows = [row for row in ablations_of("sirerag") if row.label in labels or row.label[:2] in ("B:", "C:", "D:")]
    assert len(rows) == len(labels) + 3
    monkeypatch.setitem(PUBLISHED, "sirerag", Published(tuple(rows)))
    file = tmp_path / "rows.json"
    table = run("eval", demo_set, "--recipe", "sirerag", "--ablations", "--json", file, "--to", tmp_path / "ix").stdout
    rows = {row["recipe"]: row for row in json.loads(file.read_text(encoding="utf-8"))}
    assert rows["SiReRAG"]["paper"] == {
        "table": "T4, T7, T11",
        "dataset": "musique",
        "EM": 40.5,
        "F1": 53.08,
        "TPQ": 2.653,
        "TPER": 0.6,
    }
    assert "closed book" not in rows  # a row about answers, and nobody was asked for any
    assert rows["instruction embedded"]["paper"] == {"table": "code"}
    assert {row["extraction"].split("/")[0] for row in rows.values()} == {"none", "rules"}
    pools = {name: row["pool"] for name, row in rows.items()}
    assert pools["BM25 over SiReRAG's pool"] == pools["SiReRAG"]
    assert pools["BM25 over passages"] == 41 < pools["RAPTOR"] < pools["SiReRAG"]
    assert pools["B: and all propositions"] > pools["C: B without aggregates"] > pools["D: C without their summaries"]
    first = next(line for line in table.splitlines() if "| SiReRAG " in line)
    assert [cell.strip() for cell in first.split("|")[1:5]] == ["T4, T7, T11", "SiReRAG", "40.5", "53.1"]
    # A second run finds every variant, whichever was built last.
    run("eval", demo_set, "--recipe", "sirerag", "--ablations", "--json", file, "--to", tmp_path / "ix")
    again = {row["recipe"]: row for row in json.loads(file.read_text(encoding="utf-8"))}
    assert {name: row["pool"] for name, row in again.items()} == pools
    assert {name: row["recall"] for name, row in again.items()} == {n: row["recall"] for n, row in rows.items()}


def test_a_sample_is_seeded_and_rows_are_reproducible(demo_set, tmp_path):
    def rows(seed, folder):
        words = ("-r", "raptor", "--limit", 3, "--seed", seed, "--json", tmp_path / "r.json")
        run("eval", demo_set, *words, "--to", folder)
        kept = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        return [{key: value for key, value in row.items() if key not in ("build_s", "query_p50_ms")} for row in kept]

    first = rows(1, tmp_path / "a")
    assert first == rows(1, tmp_path / "b")
    assert first == rows(1, tmp_path / "a")  # the kept index is used again
    assert [row["questions"] for row in first] == [3] * 4
    assert any(first != rows(seed, tmp_path / "a") for seed in (2, 3, 4))


def test_recorded_extractions_are_used(demo_set, tmp_path):
    recording = tmp_path / "recording.jsonl"
    rows = [{"id": d.id, "entities": [d.title], "triples": [], "model": "m"} for d in demo_documents()]
    recording.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run("eval", demo_set, "-r", "sirerag", "--extractions", recording, "--json", tmp_path / "r.json", "--limit", 1)
    rows = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert rows[-1]["extraction"].startswith("recorded/1+m+")


def test_an_index_of_other_documents_is_not_overwritten(demo_set, tmp_path):
    (tmp_path / "mine.txt").write_text("My own text.")
    run("index", tmp_path / "mine.txt", "--to", tmp_path / "ix", "-r", "flat")
    result = run("eval", demo_set, "--to", tmp_path / "ix", code=1)
    assert "holds 1 document that demo-set does not have" in result.stderr
    assert json.loads(run("stats", tmp_path / "ix", "--json").stdout)["documents"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-r", "nope"), "There is no recipe 'nope'"),
        (("-r", "flat", "--ablations"), "no ablations of 'flat'"),
        (("--json", "{tmp}/nothing/r.json"), "an existing folder"),
        (("--embedder", "nope"), "unknown embedder"),
        (("--extractions", "{tmp}/nothing"), "Cannot read the recorded extractions"),
    ],
)
def test_mistakes_are_found_before_anything_is_built(demo_set, tmp_path, words, message):
    given = [word.format(tmp=tmp_path) for word in words]
    assert message in run("eval", demo_set, "--to", tmp_path / "ix", *given, code=1).stderr
    assert not (tmp_path / "ix").exists()


def test_a_model_answers_and_its_answers_are_scored(demo_set, tmp_path, monkeypatch):
    demo_set = demo_set.rename(tmp_path / "musique-demo")
    golds = {q.question: q.answers[0] for q in demo_questions()}
    right = list(golds)[: len(golds) // 2]

    def script(call):
        if "sufficient" not in call.instructions:
            return default_script(call)
        question = json.loads(call.data)["question"]
        known = question in right
        answer = f"{golds[question]} [1]" if known else "insufficient evidence"
        return json.dumps({"answer": answer, "citations": [1] if known else [], "sufficient": known})

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ScriptedServer(script) as server:
        model = ("--llm", "m", "--base-url", server.base_url)
        run("eval", demo_set, "-r", "raptor", "--answer", "single", "--json", tmp_path / "r.json", *model)
        rows = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        share = 100 * len(right) / len(golds)
        for row in rows:
            assert row["answers"]["EM"] == row["answers"]["F1"] == pytest.approx(share, abs=0.1)
            assert row["answers"]["via"] == "single"
            assert row["answers"]["calls"] == row["answers"]["retrievals"] == 1
        monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 0.0)
        broken = ScriptedServer(lambda call: RefusalError("no"))
        with broken:
            model = ("--llm", "m", "--base-url", broken.base_url)
            result = run("eval", demo_set, "-r", "flat", "--answer", "single", "--limit", 2, *model, code=1)
            assert "none of 2 questions was answered" in result.stderr
    assert "--answer is one of single, " in run("eval", demo_set, "--answer", "guess", code=1).stderr
    assert "needs --llm" in run("eval", demo_set, "--answer", "single", code=1).stderr


@pytest.mark.slow
def test_answers_of_ablations_stand_beside_the_papers(demo_set, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ScriptedServer(default_script) as server:
        model = ("--llm", "m", "--base-url", server.base_url)
        table = run("eval", demo_set, "-r", "sirerag", "--ablations", "--answer", "single", "--limit", 3, *model)
    header = next(line for line in table.stdout.splitlines() if "paper EM" in line)
    assert "| EM |" in " ".join(header.split())


def test_answers_are_kept_read_as_the_papers_do_and_counted_over_several_searches(demo_set, tmp_path, monkeypatch):
    golds = {q.question: q.answers[0] for q in demo_questions()}
    calls = []

    def script(call):
        calls.append(call)
        data = json.loads(call.data)
        if "passages" in data and "Always answer" in call.instructions:
            assert sum(len(passage["text"].split()) for passage in data["passages"]) <= 40
            return f"{golds[data['question']]} [1]\nBecause I say so."
        return json.dumps({"reasoning": "It is not said.", "search": "Which river?" if len(calls) % 2 else "DONE"})

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    file, kept = tmp_path / "r.json", tmp_path / "answers.jsonl"
    with ScriptedServer(script) as server:
        words = ("-r", "raptor", "--answer", "ircot", "--reader-prompt", "paper", "--context-tokens", 40, "-k", 10)
        words += ("--llm", "m", "--base-url", server.base_url, "--reader-only", "--answers", kept, "--json", file)
        table = run("eval", demo_set, *words, "--limit", 3, "--workers", 1).stdout
        rows = json.loads(file.read_text(encoding="utf-8"))
        for row in rows:
            scores = row["answers"]
            assert (scores["EM"], scores["via"], scores["reader"]) == (100, "ircot", "paper")
            assert scores["interval"]["EM"] == [100, 100]
            assert {"2", "5", "10"} <= set(scores["recall"])
            assert scores["EM by type"] == {"": 100}
        assert rows[-1]["extraction"].split("/")[0] in ("none", "rules")  # it reads and does not extract
        assert "ircot R@5" in table
        asked = len(calls)
        run("eval", demo_set, *words, "--limit", 3, "--workers", 1)
        assert len(calls) == asked  # nothing is asked twice
    again = json.loads(file.read_text(encoding="utf-8"))
    assert [row["answers"]["EM"] for row in again] == [100] * 4
    kept.write_text("no answers\n" * 1000)
    message = run("eval", demo_set, *words, "--limit", 3, code=1).stderr
    assert "not one of our files" in message


def test_a_set_without_anything_to_measure_is_refused(demo_set, tmp_path):
    (demo_set / "questions.jsonl").write_text(json.dumps({"id": "q", "question": "Why?"}))
    message = run("eval", demo_set, "--to", tmp_path / "ix", code=1).stderr
    assert "No question of demo-set has 'supporting', 'needs' or 'answers'" in message
    assert "supporting is ids of documents or passages" in message


def test_modes_with_a_model_are_tables_of_their_own(demo_set, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def script(call):
        if "accepted" in call.fields:
            return json.dumps(dict.fromkeys(("correctness", "diversity", "comprehension", "overall"), 1))
        if "relations" in call.fields:
            return json.dumps({"correct": [1], "missing": [["a", "b", "c"]]})
        return f"answer {call.number}"

    with ScriptedServer(script) as server:
        model = ("--llm", "m", "--base-url", server.base_url, "--reader-only", "--limit", 2)
        modes = ("--answer", "single", "--reader-prompt", "paper", "--judge", "big", "--missing-edges", 2)
        out = run("eval", demo_set, "-r", "msrag,pagerank", *model, *modes, "--json", tmp_path / "r.json").stdout
        seen = {call.call.body.get("model") for call in server.log}
    rows = {row["recipe"]: row for row in json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))}
    assert rows["pagerank"]["analysis"]["judge"]["against"] == "msrag"
    assert rows["pagerank"]["analysis"]["judge"]["correctness"] == 50.0
    assert set(rows["msrag"]["analysis"]) == {"missing"}
    assert rows["msrag"]["analysis"]["missing"]["missing"] >= 50.0
    assert {"chunk", "entity", "relation"} <= set(rows["msrag"]["storage"])
    assert "better than those of the first row" in out
    assert seen == {"m", "big"}
    assert "give --answer" in run("eval", demo_set, "--judge", "big", "--llm", "m", code=1).stderr
    assert "needs --llm" in run("eval", demo_set, "--missing-edges", 3, code=1).stderr


def test_a_papers_main_table_says_its_price_first_and_asks_nothing_twice(demo_set, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    set_folder = demo_set.rename(tmp_path / "musique-demo")

    def script(call):
        if "passage" not in call.fields:
            return "0"
        first, last = call.fields["passage"].split()[:2]
        return json.dumps({"names": [first, last], "triples": [[first, "meets", last]], "aliases": []})

    with ScriptedServer(script) as server:
        model = ("--llm", "gpt-4o-mini", "--base-url", server.base_url)
        words = ("reproduce", "hipporag2", set_folder, *model, "--questions", 3, "--passages", 12)
        refused = run(*words, code=2).stderr
        assert "3 questions, 12 documents" in refused
        assert re.findall(r"^  (\w+): ", refused, re.MULTILINE) == ["extraction", "searches", "answers"]
        assert "$" in refused
        assert not server.log
        assert not (tmp_path / "hipporag2-musique-demo").exists()
        first = run(*words, "--yes", "--json", "rows.json")
        calls = len(server.log)
        again = run(*words, "--yes")
        assert len(server.log) == calls
    expected = int(refused.partition("Expected in all: ")[2].split(" call")[0].split()[-1].replace(",", ""))
    assert 0.5 * calls <= expected <= 2 * calls
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert [row["recipe"] for row in rows] == ["dense", "hybrid", "HippoRAG 2", "passages alone"]
    assert rows[2]["settings"]["preset"] == "published"
    assert rows[2]["answers"]["reader"] == "paper"
    assert "74.7" in first.stdout  # the paper's R@5
    assert "74.7" in again.stdout
    assert "has no main table" in run("reproduce", "sire", set_folder, *model, code=1).stderr
    assert "give --llm" in run("reproduce", "hipporag2", set_folder, code=1).stderr
    if importlib.util.find_spec("torch") is None:
        refused = run("reproduce", "smart", set_folder, *model, "--questions", 1, "--passages", 6, "--yes", code=1)
        assert "No row of smart itself is left" in refused.stderr
