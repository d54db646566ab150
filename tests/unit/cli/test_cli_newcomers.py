"""What newcomers typed, and what they are told."""

import socket

import pytest
from typer.testing import CliRunner

from sire_core import Document, Index
from sire_core.cli.app import app
from support.command import run


@pytest.fixture
def folders(tmp_path):
    for name, text in (("films", "The Gull was filmed by Ann Hask."), ("towns", "Ann Hask was born in Orr.")):
        (tmp_path / name / "old").mkdir(parents=True)
        (tmp_path / name / "readme.md").write_text(f"# {name}\n\n{text}\n")
        (tmp_path / name / "old" / f"{name}.md").write_text(f"# Old {name}\n\nNothing is known of {name}.\n")
    return tmp_path


def ids(folder):
    with Index(folder) as index:
        return {document.id for document in index.documents()}


def test_documents_are_deleted_by_id_or_by_path(folders, monkeypatch):
    run("index", folders / "films", "--to", folders / "ix")
    monkeypatch.chdir(folders / "films" / "old")
    (folders / "films" / "readme.md").unlink()  # a path need not exist any more
    run("delete", "../../ix", "../readme.md", "films.md", "old/films.md")
    assert ids(folders / "ix") == set()
    assert "1 id to delete (../readme.md)" in run("delete", "../../ix", "../readme.md", code=1).stderr


def test_the_path_of_another_file_with_the_same_name_deletes_nothing(folders):
    run("index", folders / "films", "--to", folders / "ix")
    before = ids(folders / "ix")
    for path in (folders / "films" / "new" / "readme.md", folders / "towns" / "readme.md"):
        said = run("delete", folders / "ix", path, code=1).stderr
        assert f"1 id to delete ({path}). Nothing was deleted" in " ".join(said.split())
    assert ids(folders / "ix") == before
    run("index", folders / "towns" / "readme.md", "--to", folders / "one")  # which notes no folder
    run("delete", folders / "one", folders / "towns" / "readme.md")
    assert ids(folders / "one") == set()


def test_an_id_that_is_nearly_right_is_answered_with_the_right_one(folders):
    run("index", folders / "films", "--to", folders / "ix")
    said = run("delete", folders / "ix", "readm.md", code=1).stderr
    assert "Nothing was deleted; similar to readm.md: readme.md." in said


def test_a_file_that_replaces_one_of_another_folder_is_mentioned(folders):
    assert "replaced" not in run("index", folders / "films", "--to", folders / "ix").stderr
    said = run("index", folders / "towns", "--to", folders / "ix").stderr
    assert "Replaced 1 file of another folder with the same id: readme.md." in said
    assert "replaced" not in run("index", folders / "towns" / "readme.md", "--to", folders / "ix").stderr
    run("index", folders, "--to", folders / ".both")
    assert {"films/readme.md", "towns/readme.md"} <= ids(folders / ".both")


def test_a_key_that_no_document_has_is_named_with_the_nearest(tmp_path, caplog):
    with Index(tmp_path / "ix", recipe="flat") as index:
        index.build([Document("a", "The Gull.", metadata={"year": 1931, "lang": "en"})])
    found = run("query", tmp_path / "ix", "who?", "--filter", "yaer>1900 and lang=en")
    assert "No hits: nothing in the index passes the filter." in found.stderr
    (hint,) = caplog.messages
    assert hint.startswith("No passage has the metadata key 'yaer'; did you mean 'year'? The keys are lang, year; ")


def test_a_value_of_another_type_is_named(tmp_path, caplog):
    with Index(tmp_path / "ix", recipe="flat") as index:
        index.build([Document("a", "The Gull.", metadata={"year": 1931, "tags": ["sea", "bird"]})])
    run("query", tmp_path / "ix", "who?", "--filter", '{"year": "1931"}')
    run("query", tmp_path / "ix", "who?", "--filter", '{"tags": {"contains": "land"}}')
    assert caplog.messages == ["Values of the metadata key 'year' are numbers, and the filter compares with texts."]
    caplog.clear()
    run("query", tmp_path / "ix", "who?", "--filter", "year>1990")
    assert caplog.messages == ["Values of the metadata key 'year' go from 1931 to 1931."]


def test_a_question_that_looks_like_an_option(folders):
    run("index", folders / "films", "--to", folders / "ix")
    said = run("query", folders / "ix", "--watch", code=2).stderr
    assert 'A question that begins with a dash goes behind two of them: -- "--watch ..."' in " ".join(said.split())
    assert "[1]" in run("query", folders / "ix", "--", "--watch").stdout
    assert "behind two of them" not in run("stats", folders / "ix", "--watch", code=2).stderr


@pytest.mark.parametrize("command", [("explore", "--port"), ("mcp", "--http")])
def test_a_busy_port_says_what_to_do(folders, command):
    pytest.importorskip("nicegui" if command[0] == "explore" else "mcp")
    run("index", folders / "films", "--to", folders / "ix")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run(command[0], folders / "ix", command[1], port, code=1).stderr
    assert f"error: Port {port} of 127.0.0.1 is in use" in said
    assert "0 for one that is free" in said


def test_pictures_are_skipped_and_not_reported_as_failures(tmp_path):
    source = tmp_path / "docs"
    source.mkdir()
    (source / "marl.md").write_text("# The Marl\n\nA river.\n")
    (source / "logo.png").write_bytes(b"\x89PNG\r\n")
    (source / "map.png").write_bytes(b"\x89PNG\r\n")
    (source / "bad.txt").write_bytes(b"caf\xe9")
    result = CliRunner().invoke(app, ["index", str(source), "--to", str(tmp_path / "ix")])
    assert result.exit_code == 0
    assert "1 file could not be read and was skipped:" in result.stderr
    assert "Skipped 2 files of types that are not read (2 .png)." in result.stderr
    assert "logo.png" not in result.stderr
