"""`sire eval`: rows, settings and what models cost."""

import json
import re
import shlex
from collections import Counter

import pytest

from sire_core.data import demo_documents
from sire_core.errors import RefusalError
from sire_core.models.openai.faults import RetryPolicy
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
def demo_set(demo_set, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return demo_set.rename(demo_set.with_name("musique-demo"))


@pytest.mark.parametrize("made_by", ["model", "recording"])
def test_an_index_that_a_model_made_is_measured_without_the_model(demo_set, tmp_path, made_by):
    index, file = tmp_path / "ix", tmp_path / "r.json"
    corpus, questions = demo_set / "corpus.jsonl", demo_set / "questions.jsonl"
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
    demo_set, tmp_path, monkeypatch
):
    kept(monkeypatch, "indexrag", "facts of documents only", "at most 1 bridging facts")
    file = tmp_path / "r.json"
    words = ("--ablations", "--limit", 1, "--json", file)
    table = run("eval", demo_set, "-r", "indexrag", "--set", "k_b=2", *words).stdout
    rows = {row["recipe"]: row for row in rows_of(file)}
    assert list(rows) == ["dense", "hybrid", "facts of documents only", "at most 1 bridging facts"]
    assert rows["facts of documents only"]["note"] == "without k_b, idle here"
    assert "| without k_b, idle here |" in " ".join(table.split())
    assert rows["at most 1 bridging facts"]["settings"]["k_b"] == 1  # the row's own
    assert all("note" not in row for name, row in rows.items() if name != "facts of documents only")

    result = run("eval", demo_set, "-r", "indexrag", "--set", "stage2=false", *words)
    assert "at most 1 bridging facts: left out, k_b has no effect with stage2=False" in " ".join(result.stderr.split())
    assert [row["recipe"] for row in rows_of(file)] == ["dense", "hybrid", "facts of documents only"]

    kept(monkeypatch, "sirerag", "RAPTOR", "BM25 over passages")
    run("eval", demo_set, "-r", "sirerag", "--set", "depth=1", *words)
    rows = {row["recipe"]: row["settings"] for row in rows_of(file)}
    assert rows["RAPTOR"] == {"depth": 1}  # the comparison is made as the recipe is
    assert rows["BM25 over passages"] == {"ranker": "bm25"}
    assert rows["dense"] == {"ranker": "dense"}


def test_a_value_that_is_refused_costs_nothing(demo_set, tmp_path):
    with ScriptedServer(default_script) as server:
        words = ("-r", "sirerag,indexrag", "--ablations", "--set", "k_b=-1", "--sentence-groups")
        words += ("--llm", "m", "--base-url", server.base_url)
        assert "k_b" in run("eval", demo_set, *words, code=1).stderr
        assert not server.log


def varn(call):
    if "Always answer" in call.instructions:
        return "Varn Harbour"
    return json.dumps({"answer": "Varn Harbour [1]", "citations": [1], "sufficient": True})


def test_tokens_of_answers_from_a_file_count_and_rows_without_effect_are_marked(demo_set, tmp_path, monkeypatch):
    kept(monkeypatch, "smart", "passages alone")  # the recipe flat, as `dense` is
    file = tmp_path / "r.json"
    with ScriptedServer(varn) as server:
        words = ("-r", "smart", "--ablations", "--answer", "single", "--reader-only", "--limit", 2, "--json", file)
        words += ("--llm", "m", "--base-url", server.base_url, "--answers", tmp_path / "kept.jsonl")
        run("eval", demo_set, *words)
        first = rows_of(file)
        run("eval", demo_set, *words)
    for rows in (first, rows_of(file)):
        assert [row.get("same_as", "") for row in rows] == ["", "", "dense"]
        assert rows[0]["answers"]["tokens"] == rows[2]["answers"]["tokens"] > 100
    assert first[0]["answers"]["tokens"] == rows[0]["answers"]["tokens"]
    assert "TPQ" in first[0]["answers"]
    assert "TPQ" not in rows[0]["answers"]  # nobody was asked


def test_a_row_without_retrieval_shows_none(demo_set, tmp_path, monkeypatch):
    kept(monkeypatch, "iier", "no retrieval")
    file = tmp_path / "r.json"
    with ScriptedServer(varn) as server:
        words = ("-r", "iier", "--ablations", "--answer", "single", "--reader-only", "--limit", 2, "--json", file)
        table = run("eval", demo_set, *words, "--llm", "m", "--base-url", server.base_url).stdout
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


def test_a_preset_is_built_kept_and_measured(demo_set, tmp_path):
    index, file = tmp_path / "i", tmp_path / "r.json"
    words = ("-r", "msrag", "--preset", "published", "--set", "hop_decay=0.9")
    run("index", demo_set / "corpus.jsonl", "--to", index, *words)
    config = recipe_of(index).config
    assert (config["preset"], config["vote"], config["hop_decay"]) == ("published", "count", 0.9)
    run("index", demo_set / "corpus.jsonl", "--to", index, "-r", "msrag", "--preset", "ours")
    assert recipe_of(index).config == recipe_by_name("msrag").config
    run("eval", demo_set, "-r", "flat,msrag", "--preset", "published", "--limit", 1, "--json", file)
    assert [row.get("settings") for row in rows_of(file)[-2:]] == [None, {"preset": "published"}]
    refused = run("eval", demo_set, "-r", "flat", "--preset", "published", code=1).output
    assert "flat has no preset 'published'; it has ours." in refused


def test_answers_of_a_flavor_read_what_it_collects(demo_set, tmp_path):
    examples = tmp_path / "examples.txt"
    examples.write_text("Q: one? A: two.")
    with ScriptedServer(default_script) as server:
        words = ("-r", "flat", "--limit", 1, "--llm", "m", "--base-url", server.base_url, "--reader-only")
        run("eval", demo_set, *words, "--answer", "ircot", "--flavor", "original", "--examples", examples)
        readers = [e.call for e in server.log if "numbered passages alone" in e.call.instructions]
        assert max(len(call.fields["passages"]) for call in readers) > 10
        assert any("Q: one? A: two." in e.call.instructions for e in server.log)
        wrong = run("eval", demo_set, *words, "--answer", "single", "--flavor", "original", code=1).output
    assert "A flavor and examples are for ircot and self-ask only." in wrong
    assert "--flavor and --examples need --answer" in run("eval", demo_set, "--flavor", "original", code=1).output


NAMES = ("Ann", "Bob", "Cleo", "Dan")


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """Four people, one question each."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "people"
    folder.mkdir()
    texts = {name: f"{name} was born in Drava. {name} met Otto in Elm. Otto painted a bridge." for name in NAMES}
    corpus = [{"id": name, "title": name, "text": text} for name, text in texts.items()]
    asked = [
        {
            "id": f"q{one}",
            "question": f"Where were {one} and {other} born?",
            "answers": ["Drava"],
            "supporting": [one, other],
        }
        for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)
    ]
    for file, rows in (("corpus", corpus), ("questions", asked)):
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def script(call):
    """Answers, verdicts, groups and relations; the rest as usual."""
    if "accepted" in call.fields:
        return json.dumps(dict.fromkeys(("correctness", "diversity", "comprehension", "overall"), 1))
    if "relations" in call.fields:
        return json.dumps({"correct": [1], "missing": []}) if "(missing)" in call.instructions else "yes"
    if "Cut the numbered" in call.instructions:
        return json.dumps({"groups": [{"sentences": [1, 2, 3], "topic": "people", "abstractiveness": "low"}]})
    if "Always answer" in call.instructions:
        return " ".join(passage["title"] for passage in call.fields["passages"])
    if "sufficient" in call.instructions:
        return json.dumps({"answer": "Drava [1]", "citations": [1], "sufficient": True})
    return default_script(call)


@pytest.fixture
def server():
    with ScriptedServer(script) as found:
        yield found


def filter_fields(server):
    """How often each prompt was answered, by model."""
    return Counter((call.call.body.get("model"), call.prompt) for call in server.log)


def test_what_a_stopped_evaluation_paid_for_is_kept_and_the_next_one_goes_on(dataset, server, tmp_path):
    words = ("eval", dataset, "-r", "sirerag", "--answer", "single", "--llm", "m", "--base-url", server.base_url)
    words += ("--json", tmp_path / "r.json")
    go_on = []
    for limit in (3, 6):
        result = run(*words, *go_on, "--max-calls", limit, code=1)
        said = result.stderr.split("goes on from there with: ")
        go_on = go_on or shlex.split(said[1].splitlines()[0])
        assert "limit of" in result.stderr
    assert go_on[0] == "--to"
    run(*words, *go_on)
    assert set(filter_fields(server).values()) == {1}
    rows = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [row["answers"]["EM"] for row in rows] == [100] * 4
    calls = len(server.log)
    run(*words, *go_on)
    assert len(server.log) == calls
    again = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [row["answers"]["calls"] for row in again] == [1] * 4
    assert not any("TPQ" in row["answers"] for row in again)  # nobody was asked: there is no time to tell


def test_answers_have_a_price_before_they_start_and_it_holds(dataset, server, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"prices": {"m": [1000, 2000]}}')
    words = ("eval", dataset, "-r", "flat", "--answer", "single", "--llm", "m", "--base-url", server.base_url)
    words += ("--reader-only", "--json", tmp_path / "r.json", "--answers", tmp_path / "a.jsonl")
    said = " ".join(run(*words, "--prices", prices).stderr.split())
    told = re.search(
        r"Answers: ([\d,]+) calls, about [\d,]+ input tokens \(([\d,]+) to ([\d,]+)\), .*, "
        r"about \$[\d.]+ \(\$([\d.]+) to \$([\d.]+)\),",
        said,
    )
    calls, low, high, cheapest, dearest = (float(found.replace(",", "")) for found in told.groups())
    asked = len(server.log)
    assert asked <= calls == 16  # three baselines and flat, four questions each; equal prompts are asked once
    rows = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    used = sum(row["answers"]["tokens"] * row["questions"] for row in rows)
    assert low <= used <= high + 16 * 200
    assert cheapest <= used / 1000 <= dearest
    assert "price unknown" in run(*words).stderr
    assert len(server.log) == asked  # all of them were stored
    table = run(*words).stdout
    assert re.search(r"\[\d+\.\d, \d+\.\d\]", table)  # intervals
    assert "--prices needs --llm" in run("eval", dataset, "-r", "flat", "--prices", prices, code=1).stderr


def test_a_temporary_folder_goes_when_the_evaluation_ends(dataset, server, tmp_path, monkeypatch):
    run("eval", dataset, "-r", "flat", "--answer", "single", "--llm", "m", "--base-url", server.base_url)
    assert not list(tmp_path.glob("sire-eval-*"))
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 0.0)
    nobody = run("eval", dataset, "-r", "sirerag", "--llm", "m", "--base-url", "http://127.0.0.1:9/v1", code=1)
    assert "goes on from there" not in nobody.stderr
    assert not list(tmp_path.glob("sire-eval-*"))  # nothing was answered, nothing is left


@pytest.mark.parametrize("named", [(), ("--answers", "mine.jsonl")], ids=["temporary", "named"])
def test_a_limit_is_an_error_and_no_wrong_answer_and_the_next_run_goes_on(
    dataset, server, tmp_path, monkeypatch, named
):
    monkeypatch.chdir(tmp_path)
    words = ("eval", dataset, "-r", "flat", "--answer", "single", "--llm", "m", "--base-url", server.base_url)
    words += ("--reader-only", *named)
    result = run(*words, "--max-calls", 2, code=1).stderr
    assert "before every question was answered" in result
    assert "--max-calls" in result
    _, told, more = result.partition("goes on from there with: ")
    assert bool(told) != bool(named)
    assert ("mine.jsonl. To go on, run the same command again." in " ".join(result.split())) == bool(named)
    go_on = shlex.split(more.splitlines()[0]) if more else []
    assert go_on[:1] == ([] if named else ["--answers"])
    assert not (named and list(tmp_path.glob("sire-eval-*")))
    assert "100.0" in run(*words, *go_on).stdout
    assert set(filter_fields(server).values()) == {1}


def test_a_model_that_a_setting_names_obeys_the_limit(dataset, server, tmp_path):
    words = ("eval", dataset, "-r", "sire", "--set", "rerank=model", "--set", f"rerank_model=r@{server.base_url}")
    words += ("--answer", "single", "--llm", "m", "--base-url", server.base_url, "--reader-only", "--workers", 1)
    run(*words)
    models = [call.call.body["model"] for call in server.log]
    before = models.index("r")  # the baselines' answers
    assert models.count("r") == len(NAMES)
    server.log.clear()
    words += ("--answers", tmp_path / "a.jsonl", "--json", tmp_path / "r.json")
    run(*words, "--max-calls", before + 2, code=1)
    assert [call.call.body["model"] for call in server.log][before:] == ["r", "r"]
    run(*words)
    assert set(filter_fields(server).values()) == {1}
    assert len(server.log) == len(models)
    row = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))[-1]
    assert row["calls"] == {"search": 1}


def test_a_judge_shares_the_limit_and_what_stands_before_it_is_written(dataset, server, tmp_path):
    words = ("eval", dataset, "-r", "msrag,pagerank", "--answer", "single", "--reader-prompt", "paper", "--reader-only")
    words += ("--llm", "m", "--base-url", server.base_url, "--judge", "big", "--workers", 1, "-k", 2)
    words += ("--json", tmp_path / "r.json")

    def judged(*more):
        result = run(*words, *more)
        rows = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        assert [row["answers"]["via"] for row in rows] == ["single"] * 5
        return result, [row["analysis"]["judge"] for row in rows if "judge" in row.get("analysis", {})]

    _, whole = judged()
    by_model = Counter(call.call.body["model"] for call in server.log)
    assert by_model["big"] > 1
    server.log.clear()
    result, part = judged("--max-calls", by_model["m"] + 1, "--answers", tmp_path / "a.jsonl")
    assert len(server.log) == by_model["m"] + 1
    assert "the judge stopped after" in result.stderr
    assert sum(found.get("not judged", 0) for found in part) > 0
    assert {sum(found.get(name, 0) for name in ("questions", "failed", "not judged")) for found in part} == {len(NAMES)}
    assert judged("--answers", tmp_path / "a.jsonl")[1] == whole
    assert len(server.log) == sum(by_model.values())  # what was judged before is not judged again


@pytest.mark.parametrize(
    "words",
    [
        ("-r", "msrag", "--missing-edges", 3, "--sentence-groups"),
        ("-r", "msrag", "--set", "rerank=model"),
        ("-r", "msrag", "--set", "rerank=model", "--set", "rerank_model=r", "--answer", "single", "--reader-only"),
    ],
    ids=["analyses", "searches", "searches-that-ask-another"],
)
def test_nothing_that_a_model_was_asked_is_asked_again(dataset, server, tmp_path, words):
    words = [f"{word}@{server.base_url}" if word == "rerank_model=r" else word for word in words]
    words = ("eval", dataset, *words, "--llm", "m", "--base-url", server.base_url, "--to", tmp_path / "new" / "ix")
    run(*words, "--json", tmp_path / "one.json")
    assert set(filter_fields(server).values()) == {1}
    calls = len(server.log)
    assert calls > len(NAMES)
    run(*words, "--json", tmp_path / "two.json")
    assert len(server.log) == calls
    one, two = (json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) for name in ("one", "two"))
    assert [row.get("analysis") for row in one] == [row.get("analysis") for row in two]
    if "rerank=model" in words:
        assert one[-1]["calls"]["search"] == two[-1]["calls"]["search"] == 1


def test_what_cannot_be_shown_is_refused_before_anything_is_asked(dataset, server, tmp_path):
    words = ("eval", dataset, "--llm", "m", "--base-url", server.base_url, "--answer", "single")
    assert "No published figures for people" in run(*words, "-r", "flat", "--compare", code=1).stderr
    assert not server.log


def test_rows_that_are_finished_outlive_a_recipe_that_fails(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 0.0)

    def failing(call):
        return script(call) if "sufficient" in call.instructions else RefusalError("no")

    with ScriptedServer(failing) as server:
        words = ("--llm", "m", "--base-url", server.base_url, "--answer", "single", "--json", tmp_path / "r.json")
        result = run("eval", dataset, "-r", "sirerag", *words, code=1)
    rows = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [(row["recipe"], row["answers"]["EM"]) for row in rows] == [(n, 100) for n in ("bm25", "dense", "hybrid")]
    assert "| hybrid " in result.stdout
    assert "3 rows of it" in result.stderr
