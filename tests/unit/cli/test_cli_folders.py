"""Commands on an index folder that is there."""

import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from sire_core import Document, Index
from sire_core.evaluate import experiment
from sire_core.models.openai.faults import RetryPolicy
from sire_core.testing.doubles import HashEmbedder, default_script
from support.command import run
from support.scripted_server import ScriptedServer

TEXTS = {
    "ada.md": "# Ada Holm\n\nAda Holm founded Brackwater Press in Lindle.",
    "press.md": "# Brackwater Press\n\nBrackwater Press stood in Lindle. It burnt down in 1930.",
    "deep/lindle.md": "# Lindle\n\nLindle lies on the Marl. Its mayor was Ada Holm.",
}
QUESTIONS = [
    {"id": "q1", "question": "Who founded Brackwater Press?", "answers": ["Ada Holm"], "supporting": ["ada.md"]},
    {"id": "q2", "question": "Where does Lindle lie?", "answers": ["on the Marl"], "supporting": ["deep/lindle.md"]},
]


def langchain_document(name, text):
    from langchain_core.documents import Document

    return Document(id=name, page_content=text)


def ids(folder):
    with Index(folder) as index:
        return sorted(document.id for document in index.documents())


def stats(folder):
    return json.loads(run("stats", folder, "--json").stdout)


@pytest.fixture
def source(tmp_path):
    for name, text in TEXTS.items():
        place = tmp_path / "docs" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "docs"


@pytest.fixture
def folder(tmp_path, source):
    run("index", source, "--to", tmp_path / "ix", "--recipe", "flat")
    return tmp_path / "ix"


@pytest.fixture
def on_terminal(monkeypatch):
    """Somebody is there to answer: the stream that CliRunner puts in the place of stdin is a terminal."""
    stream = inspect.getmodule(CliRunner.isolation)._NamedTextIOWrapper  # of typer, or of click where typer uses it
    monkeypatch.setattr(stream, "isatty", lambda self: self.name == "<stdin>", raising=False)


def test_index_adds_and_updates_and_removes_nothing(tmp_path, source, folder):
    before = ids(folder)
    more = tmp_path / "more"
    more.mkdir()
    (more / "marl.md").write_text("# Marl\n\nThe Marl is a river.")
    result = run("index", more, "--to", folder)
    assert "1 document added" in result.stdout
    assert ids(folder) == sorted([*before, "more/marl.md"])
    (more / "marl.md").write_text("# Marl\n\nThe Marl is a long river.")
    assert "1 document updated" in run("index", more, "--to", folder).stdout
    assert "Nothing changed" in run("index", more, "--to", folder).stdout
    assert len(ids(folder)) == 4


def test_sync_lists_what_goes_and_asks(source, folder, on_terminal):
    (source / "press.md").unlink()
    (source / "new.md").write_text("# New\n\nA new page.")
    result = run("sync", source, "--to", folder, given="n\n", code=1)
    assert "to be removed from the index: 1 document." in result.stderr
    assert "press.md" in result.stderr
    assert "Nothing was changed" in result.stderr
    assert len(ids(folder)) == 3
    result = run("sync", source, "--to", folder, given="y\n")
    assert "1 document added, 1 removed" in result.stdout
    assert ids(folder) == ["ada.md", "deep/lindle.md", "new.md"]
    again = run("sync", source, "--to", folder)
    assert "Nothing changed" in again.stdout
    assert "Continue?" not in again.stderr


def test_dry_run_of_sync_lists_what_would_change_and_changes_nothing(source, folder):
    (source / "press.md").unlink()
    (source / "new.md").write_text("# New\n\nA new page.")
    (source / "ada.md").write_text("# Ada\n\nAnother page.")
    before = ids(folder)
    result = run("sync", source, "--to", folder, "--dry-run")
    assert result.stdout.splitlines() == ["added: new.md", "updated: ada.md", "removed: press.md"]
    assert "Nothing was changed" in result.stderr
    told = json.loads(run("sync", source, "--to", folder, "--dry-run", "--json").stdout)
    assert told == {"added": ["new.md"], "updated": ["ada.md"], "removed": ["press.md"]}
    assert ids(folder) == before
    run("sync", source, "--to", folder, "--yes")
    assert run("sync", source, "--to", folder, "--dry-run").stdout == ""


def test_sync_of_a_part_of_a_folder_is_refused_while_the_rest_is_still_there(source, folder):
    before = ids(folder)
    for part in (source / "deep", source / "ada.md"):
        for answer in ((), ("--yes",)):
            said = run("sync", part, "--to", folder, *answer, code=2).stderr
            assert f"Give {source} instead" in said
            assert f"sire delete {folder}" in said
    assert ids(folder) == before
    (source / "press.md").unlink()
    (source / "ada.md").unlink()
    assert "only a part" not in run("sync", source / "deep", "--to", folder, "--yes").stderr


@pytest.mark.parametrize("command", ["add", "update"])
def test_the_folder_comes_first_where_documents_are_added(source, folder, command):
    assert f"Write: sire {command} DIR FILE" in run(command, source / "ada.md", "--to", folder, code=2).stderr


def test_an_interrupted_first_reading_says_that_nothing_was_written(source, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sire_core.files.readers.read_documents", interrupt)
    said = run("index", source, "--to", tmp_path / "new", code=130).stderr
    assert said.endswith("Interrupted. Nothing was written. Run the same command again.\n")
    assert not (tmp_path / "new").exists()


def test_sync_of_another_folder_says_which_one_is_not_read(source, folder, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mill.md").write_text("# Mill\n\nA mill on the Marl.")
    result = run("sync", tmp_path / "other", "--to", folder, code=2)
    assert f"still exist in {source}, which is not among the sources" in result.stderr


def test_delete_lists_what_goes_and_asks_on_a_terminal(folder, on_terminal):
    result = run("delete", folder, "press.md", given="n\n", code=1)
    assert "To be removed from the index: 1 document." in result.stderr
    assert "  press.md" in result.stderr
    assert len(ids(folder)) == 3
    assert "Continue?" not in run("delete", folder, "nobody.md", code=1).stderr  # refused, so there is nothing to ask
    assert "Continue?" not in run("delete", folder, "--purge").stderr
    run("delete", folder, "press.md", given="y\n")
    assert "Removing from the index without asking: 1" in run("delete", folder, "ada.md", "--yes").stderr
    assert ids(folder) == ["deep/lindle.md"]


def test_delete_in_a_script_says_that_it_did_not_ask(folder):
    result = run("delete", folder, "press.md", given="n\n")
    assert "Removing from the index, not asking as there is no terminal: 1 document." in result.stderr
    assert "1 document removed" in result.stdout
    assert len(ids(folder)) == 2


@pytest.mark.parametrize("command", ["query", "ask", "stats", "mcp", "export-training"])
def test_commands_for_an_index_that_is_there_offer_no_recipe_for_a_new_folder(command):
    said = " ".join(run(command, "--help").stdout.replace("│", " ").split())
    assert "A recipe of the folder" in said
    assert "sire for a new folder" not in said.replace("`", "")


def test_sync_asks_nobody_where_nobody_is(source, folder):
    (source / "press.md").unlink()
    assert "Add --yes" in run("sync", source, "--to", folder, code=2).stderr
    assert len(ids(folder)) == 3
    report = json.loads(run("sync", source, "--to", folder, "--yes", "--json").stdout)
    assert (report["removed"], report["unchanged"]) == (1, 2)


def test_sync_removes_nothing_while_a_source_cannot_be_read(source, folder):
    (source / "press.md").write_bytes(b"caf\0\xe9")
    result = run("sync", source, "--to", folder, "--yes", code=1)
    assert "press.md (in press.md)" in result.stderr
    assert len(ids(folder)) == 3
    (source / "other.txt").write_bytes(b"caf\0\xe9")
    (source / "press.md").write_text(TEXTS["press.md"])
    assert "Nothing changed" in run("sync", source, "--to", folder, "--yes").stdout


def test_files_that_hold_no_documents_do_not_keep_sync_from_removing(source, folder):
    (source / "logo.png").write_bytes(b"\x89PNG")
    (source / "press.md.bak").write_text("old")
    (source / "new.md").write_text("")
    (source / "deep" / "press.txt").write_bytes(b"caf\0\xe9")
    (source / "package.json").write_text('{"name": "docs", "version": "1.0.0"}')
    (source / "press.md").unlink()
    result = run("sync", source, "--to", folder, "--yes")
    assert "1 document removed" in result.stdout
    assert ids(folder) == ["ada.md", "deep/lindle.md"]


def test_sync_removes_nothing_where_records_cannot_be_read(source, folder):
    (source / "more.jsonl").write_text('{"id": "Aren", "text": "Aren is a river."}')
    run("index", source, "--to", folder)
    (source / "more.jsonl").write_text('{"id": "Aren", "text": ')
    assert "Aren (in more.jsonl)" in run("sync", source, "--to", folder, "--yes", code=1).stderr
    assert len(ids(folder)) == 4


def test_documents_are_listed_and_files_filtered_by_their_path(source, folder):
    listed = run("documents", folder)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["ada.md", "deep/lindle.md", "press.md"]
    assert "3 documents." in listed.stderr
    [only] = json.loads(run("documents", folder, "--filter", "source=deep/lindle.md", "--json").stdout)
    assert (only["id"], only["passages"]) == ("deep/lindle.md", 1)
    hits = json.loads(run("query", folder, "Ada", "--filter", "source=deep/lindle.md", "--json").stdout)
    assert [hit["metadata"]["source"] for hit in hits] == ["deep/lindle.md"]
    assert "`sire documents` lists the ids." in run("delete", folder, "zzz", code=1).stderr


def test_a_part_of_a_folder_that_was_indexed_keeps_its_ids(tmp_path):
    project, index = tmp_path / "proj", tmp_path / "ix"
    (project / "docs").mkdir(parents=True)
    page = project / "docs" / "x.md"
    page.write_text("# Queue\n\nThe queue holds ten jobs.")
    (project / "readme.md").write_text("# Project\n\nThe project has a queue.")
    run("index", project, "--to", index)
    before = ids(index)
    assert sorted(before) == ["docs/x.md", "readme.md"]
    for source in (page, project / "docs"):
        assert "Nothing changed" in run("add", index, source).stdout
    page.write_text("# Queue\n\nThe queue holds twenty jobs.")
    assert "1 document updated" in run("update", index, page).stdout
    assert ids(index) == before
    for copied in ("backup", "reembed"):
        run(copied, index, *(["--embedder", "lexical", "--to"] if copied == "reembed" else []), tmp_path / copied)
        assert "Nothing changed" in run("index", page, "--to", tmp_path / copied).stdout
    (project / "docs" / "y.md").write_text("# Worker\n\nA worker takes jobs from the queue.")
    run("index", project / "docs" / "y.md", "--to", index)
    assert "Nothing changed" in run("sync", project, "--to", index, "--yes").stdout


def test_another_embedder_without_extracting_again(tmp_path, source, folder):
    with ScriptedServer(default_script) as server:
        model = ("--llm", "scripted", "--base-url", server.base_url, "--yes")
        run("index", source, "--to", folder, "--recipe", "indexrag", "--default", *model)
        asked = server.received
        assert asked > 0
        before = stats(folder)
        embedder = ("--embedder", "openai:scripted-embedder")
        wrong = run("reembed", folder, *embedder, code=1)
        assert "--llm scripted" in wrong.stderr
        assert "--base-url" in wrong.stderr
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = server.base_url, "none"
        try:
            run("reembed", folder, *embedder, *model)
            hits = json.loads(run("query", folder, "Who founded Brackwater Press?", "-k", 2, "--json").stdout)
        finally:
            del os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
        chats = [entry for entry in server.log if getattr(entry.call, "instructions", "")]
        assert len(chats) == asked  # not one passage was read again
    after = stats(folder)
    assert (before["embedder"].split(":")[0], after["embedder"].split(":")[0]) == ("lexical-svd/1", "openai")
    assert {**after, "embedder": 0, "dimension": 0, "generation": 0} == {
        **before,
        "embedder": 0,
        "dimension": 0,
        "generation": 0,
    }
    assert hits
    assert [found.name for found in tmp_path.iterdir() if found.name.startswith(".")] == []


def test_a_folder_with_another_embedder_follows_its_sources(tmp_path, source, folder, monkeypatch):
    result = run("reembed", folder, "--embedder", "lexical", "--to", tmp_path / "new")
    assert "embedded with lexical" in result.stdout
    assert ids(tmp_path / "new") == ids(folder)
    assert "Nothing changed" in run("sync", source, "--to", tmp_path / "new").stdout
    assert "Nothing changed" in run("index", source, "--to", folder).stdout
    assert "holds something already" in run("reembed", folder, "--embedder", "lexical", "--to", source, code=1).stderr


@pytest.mark.parametrize("to", [False, True])
def test_another_embedder_keeps_what_adapters_and_others_have_in_the_folder(tmp_path, to):
    document_index = pytest.importorskip("langchain_sire").SireRetriever
    folder, new = tmp_path / "ix", tmp_path / ("new" if to else "ix")
    documents = [
        langchain_document("1", "Ada Holm founded Brackwater Press."),
        langchain_document("2", "Lindle lies on the Marl."),
    ]
    document_index.from_documents(documents[:1], path=folder, recipe="flat", k=7)
    document_index.load(folder).upsert(documents[1:])  # waits
    (folder / "README").write_text("Mine.")
    run("reembed", folder, "--embedder", "lexical", *(("--to", new) if to else ()))
    assert ids(new) == ["1", "2"]
    opened = document_index.load(new)
    assert opened.k == 7
    assert [found.page_content for found in opened.get(["2"])] == ["Lindle lies on the Marl."]
    assert to or (folder / "README").read_text() == "Mine."
    assert "nothing is damaged" in run("check", new).stdout


def test_a_failed_change_of_the_embedder_leaves_the_folder_and_goes_on(source, folder, monkeypatch):
    before = stats(folder)
    with ScriptedServer(default_script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 0.0)
        run("reembed", folder, "--embedder", "openai:scripted-embedder", code=1)
        assert stats(folder) == before
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run("reembed", folder, "--embedder", "openai:scripted-embedder")
    assert stats(folder)["embedder"].startswith("openai:")


def test_a_folder_can_be_moved_copied_and_restored(tmp_path, source, folder):
    question = ("Who founded Brackwater Press?", "-k", 3, "--json")
    expected = run("query", folder, *question).stdout
    (tmp_path / "backup").mkdir()
    for name in ("index.sqlite", "calls.sqlite"):  # the others are made of these
        shutil.copy(folder / name, tmp_path / "backup" / name)
    folder.rename(tmp_path / "moved")
    for place in ("moved", "backup"):
        assert run("query", tmp_path / place, *question).stdout == expected
        assert "Nothing changed" in run("index", source, "--to", tmp_path / place).stdout
    run("delete", tmp_path / "moved", "ada.md")
    shutil.rmtree(tmp_path / "moved")
    shutil.copytree(tmp_path / "backup", tmp_path / "moved")
    assert run("query", tmp_path / "moved", *question).stdout == expected


def test_backup_of_an_index_in_use(tmp_path, folder):
    with Index(folder) as index:
        expected = [hit.unit.id for hit in index.search("Who founded Brackwater Press?", 3)]
        result = run("backup", folder, tmp_path / "copy")
        assert str(tmp_path / "copy") in result.stdout
    with Index(tmp_path / "copy") as copy:
        assert [hit.unit.id for hit in copy.search("Who founded Brackwater Press?", 3)] == expected
    assert "holds something already" in run("backup", folder, tmp_path / "copy", code=1).stderr
    assert "There is no index" in run("backup", tmp_path / "none", tmp_path / "copy2", code=1).stderr


def test_eval_asks_an_index_that_is_there_and_only_reads_it(tmp_path, source):
    folder, questions, rows = tmp_path / "ix", tmp_path / "questions.jsonl", tmp_path / "rows.json"
    (source / "press.md").write_text("# Brackwater Press\n\n" + "Brackwater Press stood in Lindle by the Marl. " * 40)
    run("index", source, "--to", folder, "--recipe", "raptor", "--chunk-tokens", 64)
    passages = stats(folder)["passages"]
    assert passages > 5
    questions.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.sqlite")}
    result = run("eval", folder, "--questions", questions, "--json", rows)
    assert f"ix: 3 documents in {passages} passages, 2 of 2 questions." in result.stderr
    assert f"**ix**: 3 documents in {passages} passages, 2 questions" in result.stdout
    assert [
        (row["recipe"], row["questions"], row["documents"], row["passages"]) for row in json.loads(rows.read_text())
    ] == [(recipe, 2, 3, passages) for recipe in ("bm25", "dense", "hybrid", "raptor")]
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*.sqlite")}
    wrong = run("eval", folder, "--questions", questions, "-r", "smart", code=1)
    assert "does not hold smart; it holds raptor" in wrong.stderr


def test_mistakes_in_measuring_an_index(tmp_path, source, folder):
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({**QUESTIONS[0], "supporting": ["nowhere"]}) + "\n")
    assert "name gold passages that are not in" in run("eval", folder, "--questions", questions, code=1).stderr
    assert "give it questions with --questions" in run("eval", folder, code=1).stderr
    assert "--questions is for an index folder" in run("eval", source, "--questions", questions, code=1).stderr
    assert "only read" in run("eval", folder, "--questions", questions, "--ablations", code=1).stderr
    assert "Not found" in run("eval", folder, "--questions", tmp_path / "none", code=1).stderr


def test_estimate_takes_the_address_of_a_server_and_asks_it_nothing(source):
    with ScriptedServer(default_script) as server:
        words = ("--llm", "scripted", "--base-url", server.base_url, "--recipe", "indexrag")
        assert "calls" in run("estimate", source, *words).stdout
        assert server.received == 0
    assert "--base-url is an address" in run("estimate", source, "--llm", "m", "--base-url", "x", code=1).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_complete_commands_and_recipes(monkeypatch, shell):
    monkeypatch.setenv("_SIRE_COMPLETE", f"complete_{shell}")
    for words, expected in (("sire sy", "sync"), ("sire index --recipe rap", "raptor")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", words)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        assert expected in run(prog_name="sire").output


def test_what_was_removed_before_can_be_purged_by_itself(source, folder):
    (source / "press.md").unlink()
    run("sync", source, "--to", folder, "--yes")
    assert "Name the documents" in run("delete", folder, code=1).stderr
    said = run("delete", folder, "--purge").stdout
    assert "was overwritten" in said
    assert "Nothing changed" not in said
    assert len(ids(folder)) == 2
    assert not any(b"burnt down" in file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.skipif(os.name == "nt", reason="kills are signals here")
def test_the_folder_of_a_killed_run_is_removed_by_the_next_and_no_other(tmp_path, monkeypatch):
    script = (
        "import sys, time\nfrom sire_core.evaluate.experiment import temporary_folder\n"
        "with temporary_folder(None) as folder:\n    folder.mkdir()\n    print(folder, flush=True)\n    time.sleep(600)"
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    runs = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    with runs[0], runs[1]:
        folders = [tmp_path / os.path.relpath(run.stdout.readline().strip(), tmp_path) for run in runs]
        runs[0].send_signal(signal.SIGKILL)
        runs[0].wait()
        for folder in folders:
            os.utime(folder.parent / "in-use.lock", (time.time() - 3600,) * 2)
        with experiment.temporary_folder(None) as own:
            assert [folder.exists() for folder in folders] == [False, True]
            own.mkdir()
        assert not own.exists()
        runs[1].kill()


QUESTION = "Who founded Brackwater Press?"


@pytest.fixture
def two_recipes(tmp_path, source):
    for recipe in ("flat", "pagerank"):
        run("index", source, "--to", tmp_path / "ix", "--recipe", recipe)
    return tmp_path / "ix"


def found(two_recipes):
    return {
        name: [hit["id"] for hit in json.loads(run("query", two_recipes, QUESTION, "-r", name, "--json").stdout)]
        for name in ("flat", "pagerank")
    }


@pytest.mark.parametrize("searched", [False, True], ids=["deleted", "deleted and searched"])
@pytest.mark.parametrize("command", ["index", "sync"])
def test_the_same_documents_mend_the_embedder(source, two_recipes, command, searched, caplog):
    before = found(two_recipes)
    (two_recipes / "calls.sqlite").unlink()
    if searched:
        assert "sire sync" in run("query", two_recipes, QUESTION, code=1).stderr
    said = run(command, source, "--to", two_recipes).stdout
    assert "Nothing changed" not in said
    assert said.startswith("No document changed")
    assert "calls.sqlite was missing: a new one begins empty" in caplog.text
    assert "learned again from the passages" in caplog.text
    run("check", two_recipes)
    assert found(two_recipes) == before
    caplog.clear()
    assert "Nothing changed" in run(command, source, "--to", two_recipes).stdout
    assert not caplog.text


def test_documents_are_removed_from_an_index_that_cannot_be_searched(source, two_recipes):
    (two_recipes / "calls.sqlite").unlink()
    run("delete", two_recipes, source / "press.md")
    run("check", two_recipes)
    (two_recipes / "calls.sqlite").unlink()
    (source / "deep" / "lindle.md").unlink()
    (source / "press.md").write_bytes(b"caf\0\xe9")
    run("sync", source, "--to", two_recipes, "--yes")
    run("check", two_recipes)
    assert [document["id"] for document in json.loads(run("documents", two_recipes, "--json").stdout)] == ["ada.md"]


def test_a_lost_file_is_said_where_the_embedder_learns_nothing(tmp_path, caplog):
    place, documents = tmp_path / "ix", [Document("a", "The heron queue keeps messages.")]
    with Index(place, recipe="flat", embedder=HashEmbedder(64)) as index:
        index.build(documents)
    assert not caplog.text
    (place / "calls.sqlite").unlink()
    with Index(place, recipe="flat", embedder=HashEmbedder(64)) as index:
        report = index.build(documents)
    assert (report.unchanged, report.learned_again) == (1, False)
    assert f"{place / 'calls.sqlite'} was missing" in caplog.text


def test_an_index_that_has_grown_since_its_embedder_learned_is_mended(source, two_recipes):
    (source / "marl.md").write_text("# Marl\n\nThe Marl flows through Lindle to the sea.")
    run("index", source, "--to", two_recipes)
    (two_recipes / "calls.sqlite").unlink()
    report = json.loads(run("sync", source, "--to", two_recipes, "--json").stdout)
    assert (report["learned_again"], report["unchanged"], report["dropped"]) == (True, 4, [])
    run("check", two_recipes)
    assert all(hits for hits in found(two_recipes).values())
    after = json.loads(run("sync", source, "--to", two_recipes, "--json").stdout)
    assert (after["learned_again"], after["generation"]) == (False, report["generation"])
