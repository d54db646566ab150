"""The sire command with a model: estimated, agreed to, bounded, reported; the key is nobody else's business."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import command
from support.scripted_server import ScriptedServer
from support.terminal import asked_at_terminal

SECRET = "sk_very_secret_key_0815"
TOWNS = ["Arle", "Brinn", "Corvo", "Delme", "Essen Hall", "Fjord", "Gullane", "Holm"]


class KeyedServer(ScriptedServer):
    """Notes the keys that it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()

    async def _handle(self, request):
        self.keys.add(request.headers.get("authorization", ""))
        return await super()._handle(request)


@pytest.fixture
def server():
    with KeyedServer() as running:
        yield running


@pytest.fixture
def source(tmp_path) -> Path:
    rows = [
        {"id": f"d{n}", "title": town, "text": f"{town} lies on the Marl. Its mayor met {TOWNS[n - 1]} in 19{n:02d}."}
        for n, town in enumerate(TOWNS)
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(*words, code=0):
    result = command.run(*words, code=code)
    assert SECRET not in result.output
    return result


def model(server: ScriptedServer, name: str = "m") -> tuple[str, ...]:
    return ("--llm", name, "--base-url", server.base_url)


def test_nothing_is_spent_when_nobody_can_agree(tmp_path, source, server):
    result = run("index", source, "--to", tmp_path / "ix", *model(server), code=2)
    assert "8 passages, 0 of them extracted already" in result.stderr
    assert "extraction: 8 calls" in result.stderr
    assert "--yes" in result.stderr
    assert "not a terminal" in result.stderr
    assert server.received == 0
    assert not (tmp_path / "ix").exists()


def test_yes_builds_and_reports_usage_by_stage(tmp_path, source, server):
    result = run("index", source, "--to", tmp_path / "ix", *model(server), "--yes", "--json")
    report = json.loads(result.stdout)
    assert report["usage"]["extraction"]["calls"] == 8
    assert report["usage"]["summaries"]["calls"] > 0
    assert report["calls"] == server.received == sum(used["calls"] for used in report["usage"].values())
    assert "extraction: 8 calls, " in result.stderr
    assert "summaries: " in result.stderr
    stats = json.loads(run("stats", tmp_path / "ix", "--json").stdout)
    assert stats["language_model"] == "openai:m"
    # Nothing left to pay: nobody is asked.
    asked = server.received
    assert "Nothing changed" in run("index", source, "--to", tmp_path / "ix", *model(server), "--yes").stdout
    assert server.received == asked


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("y\n", 0), ("\x04", 130)])
def test_a_person_at_a_terminal_is_asked(tmp_path, source, server, answer, code):
    ended, told = asked_at_terminal(answer, "index", source, "--to", tmp_path / "ix", *model(server))
    assert ended == code, told
    assert "Continue?" in told
    assert ("Nothing was changed" in told) == (code != 0)
    assert (server.received > 0) == (code == 0)
    assert (tmp_path / "ix").exists() == (code == 0)


def test_a_removal_is_asked_about_once_whether_it_costs_or_not_and_never_for_unknown_ids(tmp_path, source, server):
    folder, paid = tmp_path / "ix", tmp_path / "paid"
    run("index", source, "--to", folder, "-r", "sire", *model(server), "--yes")
    ended, told = asked_at_terminal("n\n", "delete", folder, "d1", *model(server))
    assert (ended, told.count("Continue?")) == (1, 1)
    assert "No model calls are needed." in told
    assert json.loads(run("stats", folder, "--json").stdout)["documents"] == 8
    run("index", source, "--to", paid, "-r", "raptor", *model(server), "--yes")
    ended, told = asked_at_terminal("y\ny\n", "delete", paid, "d1", *model(server))
    assert (ended, told.count("Continue?")) == (0, 1)
    assert "Expected model calls" in told
    unknown = run("delete", paid, "d2", "nobody", *model(server), code=1)
    assert "Not in the index: 1 id to delete (nobody)" in unknown.stderr
    assert "Expected model calls" not in unknown.stderr


def test_the_key_is_used_and_neither_written_nor_shown(tmp_path, source, server, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    words = (*model(server), "--api-key-env", "MY_KEY")
    run("index", source, "--to", tmp_path / "ix", *words, "--yes")
    assert server.keys == {f"Bearer {SECRET}"}
    run("delete", tmp_path / "ix", "d0", *words, "--yes")
    files = [path for path in (tmp_path / "ix").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_a_missing_key_is_named_before_anything_is_read_and_a_key_given_as_name_is_not_repeated(tmp_path):
    missing = tmp_path / "missing.jsonl"
    result = run("index", missing, "--to", tmp_path / "ix", "--llm", "gpt-4o-mini", "--yes", code=1)
    assert "OPENAI_API_KEY is not set" in result.stderr
    run("index", missing, "--to", tmp_path / "ix", "--llm", "m", "--api-key-env", SECRET, "--yes", code=1)


@pytest.mark.parametrize(
    "option",
    [
        ("--native",),
        ("--max-calls", "3"),
        ("--base-url", "http://localhost:1/v1"),
        ("--api-key-env", "MY_KEY"),
        ("--prices", "prices.json"),
    ],
)
def test_options_of_a_model_need_a_model(tmp_path, source, option):
    assert f"{option[0]} needs --llm" in run("index", source, "--to", tmp_path / "ix", *option, code=1).stderr


def test_a_limit_stops_the_build_and_the_same_command_goes_on(tmp_path, source, server):
    words = ("index", source, "--to", tmp_path / "ix", *model(server), "--yes")
    result = run(*words, "--max-calls", 5, code=1)
    assert "limit of 5 calls" in result.stderr
    assert server.received == 5
    report = json.loads(run(*words, "--json").stdout)
    assert report["usage"]["extraction"]["calls"] == 3
    assert len(server.passages) == 8


def test_estimate_shows_what_index_will_spend(tmp_path, source, server):
    prices = tmp_path / "prices.json"
    prices.write_text('{"prices": {"m": [1.0, 2.0]}}')
    words = ("estimate", source, "--llm", "m", "--prices", prices)
    assert "$" in run(*words).stdout
    found = json.loads(run(*words, "--to", tmp_path / "ix", "--json").stdout)
    assert (found["passages"], found["stored"], found["extraction"]["calls"]) == (8, 0, [8, 8])
    low, high = found["total"]["price"]
    assert 0 < low < high
    assert not (tmp_path / "ix").exists()
    report = json.loads(run("index", source, "--to", tmp_path / "ix", *model(server), "--yes", "--json").stdout)
    assert found["total"]["calls"][0] <= report["calls"] <= found["total"]["calls"][1]
    after = json.loads(run(*words, "--to", tmp_path / "ix", "--json").stdout)
    assert (after["stored"], after["extraction"]["calls"]) == (8, [0, 0])
    assert "no price of other" in run("estimate", source, "--llm", "other", "--prices", prices, code=1).stderr
    assert "price unknown" in run("estimate", source, "--llm", "other").stdout


def test_an_estimate_for_another_model_counts_what_it_supersedes(tmp_path, source, server):
    folder = tmp_path / "ix"
    run("index", source, "--to", folder, *model(server), "--yes")
    asked, words = server.received, ("estimate", source, "--to", folder)
    other = run(*words, "--llm", "other")
    assert "8 passages extracted by openai:m with the prompt extract/" in other.stdout
    assert "`sire index` would refuse this" in other.stderr
    assert "Give --llm m" in other.stderr
    found = json.loads(run(*words, "--llm", "other", "--json").stdout)
    assert (list(found["superseded"].values()), found["stored"], found["extraction"]["calls"]) == ([8], 0, [8, 8])
    native = run(*words, "--llm", "m", "-r", "hipporag2", "--native")
    assert "superseded" in native.stdout
    assert "would refuse" in native.stderr
    same = run(*words, "--llm", "m")
    assert "superseded" not in same.stdout
    assert "refuse" not in same.stderr
    assert (
        "Give --native or --extractions"
        in run(*words, "--llm", "m", "--native", "--extractions", source, code=1).stderr
    )
    assert server.received == asked


def test_an_estimate_counts_what_the_folder_holds_already_as_index_does(tmp_path, source, server):
    run("index", source, "--to", tmp_path / "ix", "-r", "flat")
    new = tmp_path / "new.jsonl"
    new.write_text(json.dumps({"id": "new", "text": "Otto met Ann in Elm."}))
    words = (new, "--to", tmp_path / "ix", "-r", "sirerag", "--llm", "m", "--base-url", server.base_url)
    found = json.loads(run("estimate", *words, "--json").stdout)
    assert (found["passages"], found["extraction"]["calls"]) == (9, [9, 9])
    assert run("estimate", *words).stdout.strip() in run("index", *words, code=2).stderr


@pytest.mark.parametrize("recipe", ["raptor", "sirerag"])
def test_a_folder_of_a_model_is_searched_without_it_and_changed_only_with_it(tmp_path, source, server, recipe):
    folder = tmp_path / "ix"
    run("index", source, "--to", folder, "-r", recipe, *model(server), "--yes")
    asked = server.received
    assert json.loads(run("query", folder, "Who met in Corvo?", "--json").stdout)
    assert server.received == asked
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"id": "new", "text": "Ister lies far from Holm.", "title": "Ister"}) + "\n")
    for words in (
        ("add", folder, more),
        ("add", folder, more, *model(server, "other")),
        ("delete", folder, "d0"),
        ("index", more, "--to", folder),
    ):
        assert "--llm m" in run(*words, code=1).stderr
    if recipe == "sirerag":
        assert "--native" not in run("add", folder, more, *model(server), "--yes").stderr
        assert "no --native" in run("delete", folder, "new", *model(server), "--native", code=1).stderr
        assert server.passages.count("Ister lies far from Holm.") == 1
    else:
        run("update", folder, more, *model(server), "--yes")
    run("delete", folder, "d0", *model(server), "--yes")
    assert json.loads(run("stats", folder, "--json").stdout)["documents"] == 8


@pytest.mark.parametrize("command", ["add", "update", "delete"])
def test_a_change_says_its_price_and_nothing_is_spent_when_nobody_can_agree(tmp_path, source, server, command):
    folder, more, prices = tmp_path / "ix", tmp_path / "more.jsonl", tmp_path / "prices.json"
    prices.write_text('{"prices": {"m": [1.0, 2.0]}}')
    run("index", source, "--to", folder, *model(server), "--yes")
    asked = server.received
    more.write_text(json.dumps({"id": "new", "text": "Ister lies far from Holm.", "title": "Ister"}) + "\n")
    words = (command, folder, "d1" if command == "delete" else more, *model(server), "--prices", prices)
    refused = run(*words, code=2)
    new = 0 if command == "delete" else 1
    assert f"{9 if new else 7} passages, " in refused.stderr
    assert f"extraction: {new} call" in refused.stderr  # of the new document, not of the others
    assert "$" in refused.stderr
    assert "--yes" in refused.stderr
    assert server.received == asked
    assert json.loads(run("stats", folder, "--json").stdout)["documents"] == 8
    done = json.loads(run(*words, "--yes", "--json").stdout)
    assert done["calls"] == server.received - asked > 0
    assert (done["added"], done["removed"]) == (new, 1 - new)


def test_a_change_that_costs_nothing_asks_nobody(tmp_path, source, server):
    folder = tmp_path / "ix"
    run("index", source, "--to", folder, *model(server), "--yes")
    again = run("add", folder, source, *model(server))
    assert "Nothing changed" in again.stdout
    assert "No model calls are needed." in again.stderr
    assert "Not in the index: 1 id" in run("delete", folder, "nobody", *model(server), code=1).stderr


def test_native_folders_stay_native_and_a_folder_without_organizers_needs_no_model(tmp_path, source, server):
    run("index", source, "--to", tmp_path / "ix", "-r", "sirerag", *model(server), "--native", "--yes")
    assert len(server.log) > 3 * len(TOWNS)
    assert "--native" in run("delete", tmp_path / "ix", "d0", *model(server), code=1).stderr
    run("delete", tmp_path / "ix", "d0", *model(server), "--native", "--yes")
    run("index", source, "--to", tmp_path / "ix", *model(server), "--native", "--yes")
    asked = server.received
    words = ("index", source, "--to", tmp_path / "ix", "-r", "sire", *model(server))
    assert "Give --native" in run(*words, "--yes", code=1).stderr
    run(*words, "--native")  # shares what was extracted for sirerag: nothing to pay
    assert server.received == asked
    run("delete", tmp_path / "ix", "d1", *model(server), "--native", "--yes")
    assert json.loads(run("stats", tmp_path / "ix", "--json").stdout)["recipes"] == ["sirerag", "sire"]
    run("index", source, "--to", tmp_path / "flat", "-r", "flat", *model(server), "--yes")
    run("delete", tmp_path / "flat", "d0")


def test_eval_pays_extraction_once_for_all_recipes_and_its_limits_hold_for_all_of_them(tmp_path, source, server):
    data = tmp_path / "data"
    data.mkdir()
    source.rename(data / "corpus.jsonl")
    question = {"id": "q", "question": "Who met in Corvo?", "answers": ["Brinn"], "supporting": ["d2"]}
    (data / "questions.jsonl").write_text(json.dumps(question) + "\n")
    words = ("eval", data, "-r", "raptor,sirerag", "--to", tmp_path / "ix", *model(server))
    stopped = run(*words, "--max-calls", 9, code=1)
    assert "limit of 9 calls" in stopped.stderr
    assert server.received == 9
    done = run(*words, "--wide")
    assert "sirerag: summaries: " in done.stderr
    assert "openai:m" in done.stdout
    assert len(server.passages) == len(set(server.passages)) == len(TOWNS)


def test_forget_asks_again_about_the_named_documents(server, source, tmp_path):
    folder = tmp_path / "index"
    model = ["--llm", "gpt-4o-mini", "--base-url", server.base_url]
    run("index", source, "--to", folder, *model, "--yes")
    asked = server.received
    said = run("reextract", folder, "d2", *model, code=2).output  # no terminal, no --yes: nothing is spent
    assert "1 passage" in said
    assert server.received == asked
    run("reextract", folder, "nothing", *model, "--yes", code=1)
    run("reextract", folder, "d2", *model, "--yes")
    assert {entry.call.fields.get("title") for entry in server.log[asked:] if entry.call.schema} == {"Corvo"}
    other = ("index", source, "--to", folder, "--llm", "o", "--base-url", server.base_url)
    assert "made by openai:gpt-4o-mini|extract/v1" in run(*other, code=1).output
