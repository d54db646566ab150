"""Folders whose `calls.sqlite` was deleted: every change mends what it can and says so."""

import json

import pytest

from sire_core import Document, Index
from sire_core.testing.doubles import HashEmbedder
from support.command import run

TEXTS = {
    "ada.md": "# Ada Holm\n\nAda Holm founded Brackwater Press in Lindle.",
    "press.md": "# Brackwater Press\n\nBrackwater Press stood in Lindle. It burnt down in 1930.",
    "lindle.md": "# Lindle\n\nLindle lies on the Marl. Its mayor was Ada Holm.",
}
QUESTION = "Who founded Brackwater Press?"


@pytest.fixture
def source(tmp_path):
    (tmp_path / "docs").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "docs" / name).write_text(text)
    return tmp_path / "docs"


@pytest.fixture
def folder(tmp_path, source):
    for recipe in ("flat", "pagerank"):
        run("index", source, "--to", tmp_path / "ix", "--recipe", recipe)
    return tmp_path / "ix"


def found(folder):
    return {
        name: [hit["id"] for hit in json.loads(run("query", folder, QUESTION, "-r", name, "--json").stdout)]
        for name in ("flat", "pagerank")
    }


@pytest.mark.parametrize("searched", [False, True], ids=["deleted", "deleted and searched"])
@pytest.mark.parametrize("command", ["index", "sync"])
def test_the_same_documents_mend_the_embedder(source, folder, command, searched, caplog):
    before = found(folder)
    (folder / "calls.sqlite").unlink()
    if searched:
        assert "sire sync" in run("query", folder, QUESTION, code=1).stderr
    said = run(command, source, "--to", folder).stdout
    assert "Nothing changed" not in said
    assert said.startswith("No document changed")
    assert "calls.sqlite was missing: a new one begins empty" in caplog.text
    assert "learned again from the passages" in caplog.text
    run("check", folder)
    assert found(folder) == before
    caplog.clear()
    assert "Nothing changed" in run(command, source, "--to", folder).stdout
    assert not caplog.text


def test_an_index_that_has_grown_since_its_embedder_learned_is_mended(source, folder):
    (source / "marl.md").write_text("# Marl\n\nThe Marl flows through Lindle to the sea.")
    run("index", source, "--to", folder)
    (folder / "calls.sqlite").unlink()
    report = json.loads(run("sync", source, "--to", folder, "--json").stdout)
    assert (report["learned_again"], report["unchanged"], report["dropped"]) == (True, 4, [])
    run("check", folder)
    assert all(hits for hits in found(folder).values())
    after = json.loads(run("sync", source, "--to", folder, "--json").stdout)
    assert (after["learned_again"], after["generation"]) == (False, report["generation"])


def test_documents_are_removed_from_an_index_that_cannot_be_searched(source, folder):
    (folder / "calls.sqlite").unlink()
    run("delete", folder, source / "press.md")
    run("check", folder)
    (folder / "calls.sqlite").unlink()
    (source / "lindle.md").unlink()
    (source / "press.md").write_bytes(b"caf\xe9")
    run("sync", source, "--to", folder, "--yes")
    run("check", folder)
    assert [document["id"] for document in json.loads(run("documents", folder, "--json").stdout)] == ["ada.md"]


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
