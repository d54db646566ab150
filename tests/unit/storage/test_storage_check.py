"""Whatever is changed or lost in a folder is found, said with advice, and never built upon."""

import json
import logging
import shutil
import sqlite3
from contextlib import closing

import pytest

from sire_core import Document, Index
from sire_core.errors import EmbedderMismatchError, StorageError
from sire_core.recipes import msrag, pagerank
from sire_core.storage.check import check_folder
from sire_core.storage.database import file_stamp
from sire_core.storage.folder import Folder
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.command import run
from support.indexes import indexed

DOCUMENTS = [
    Document(
        f"d{i}", f"Alma Kovac {i} met Boris Veld in Ceuta. Alma Kovac {i} founded the Drava mill.", f"Alma Kovac {i}"
    )
    for i in range(6)
]
LATE = Document("late", "Boris Veld was born in Izola.", "Boris Veld")

TABLES = {
    "meta": "value",
    "documents": "title",
    "chunks": "text",
    "units": "text",
    "states": "body",
    "notes": "body",
    "steps": "name",
    "step_rows": "body",
    "step_outputs": "body",
}


def opened(path, recipe=None, **settings):
    return Index(path, recipe=recipe or pagerank(), embedder=HashEmbedder(), chunker=None, **settings)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("check") / "index"
    with opened(path) as index:
        index.build(DOCUMENTS)
        index.search("Who founded the Drava mill?")
    return path


@pytest.fixture
def folder(template, tmp_path):
    return shutil.copytree(template, tmp_path / "index")


def sql(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        return [database.execute(statement).rowcount for statement in statements]


def test_a_sound_folder_is_found_sound(folder):
    assert check_folder(folder) == []
    assert json.loads(run("check", folder, "--json").stdout) == {"ok": True, "findings": []}
    assert "nothing is damaged" in run("check", folder).stdout
    run("check", folder / "nowhere", code=1)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("how", ["changed", "lost"])
def test_a_row_that_is_changed_or_lost(folder, table, how):
    column = TABLES[table]
    key = "WHERE key='manifest'" if table == "meta" else ""
    one = f"SELECT {column} FROM {table} {key} LIMIT 1"
    change = {
        "changed": f"UPDATE OR REPLACE {table} SET {column}={column} || 'x' WHERE {column}=({one})",
        "lost": f"DELETE FROM {table} WHERE {column}=({one})",
    }[how]
    assert sql(folder / "index.sqlite", change)[0]
    (finding,) = check_folder(folder)
    assert finding.file == "index.sqlite"
    assert "Restore index.sqlite from a backup" in finding.advice
    with pytest.raises(StorageError, match=r"index\.sqlite .*(backup|Restore)"), opened(folder) as index:
        index.add([LATE])
    found = run("check", folder, "--json", code=1)
    assert json.loads(found.stdout)["findings"][0]["file"] == "index.sqlite"


def test_files_beside_the_database(folder):
    (matrix,) = folder.glob("derived/*/arrays.bin")
    matrix.write_bytes(matrix.read_bytes()[:-1] + b"x")
    assert [(f.file, f.advice[:7]) for f in check_folder(folder)] == [(str(matrix.relative_to(folder)), "Nothing")]
    with opened(folder) as index:
        index.search("Who founded the Drava mill?")
    assert check_folder(folder) == []
    shown = folder / "manifest.json"
    shown.write_text(shown.read_text().replace('"generation": 1', '"generation": 7'))
    assert [finding.file for finding in check_folder(folder)] == ["manifest.json"]
    shown.unlink()  # a change that was killed behind its commit has not written it
    assert check_folder(folder) == []
    with opened(folder) as index:
        index.add([LATE])
    assert check_folder(folder) == []
    with closing(sqlite3.connect(folder / "index.sqlite")):
        kept = (folder / "index.sqlite").read_bytes()
    with opened(folder) as index:
        index.delete(["late"])
    (folder / "index.sqlite").write_bytes(kept)
    assert "lost its last changes" in check_folder(folder)[0].problem
    with pytest.raises(StorageError, match="lost its last changes"), opened(folder) as index:
        index.search("Who founded the Drava mill?")


def test_the_folders_that_documents_came_from(tmp_path):
    """With other folders than before, documents would get other ids and be there twice."""
    source, folder = tmp_path / "source", tmp_path / "index"
    (source / "part").mkdir(parents=True)
    (source / "part" / "a.txt").write_text("Alma Kovac met Boris Veld in Ceuta.")
    run("index", source, "--to", folder, "-r", "flat")
    noted = folder / "sources.json"
    whole = noted.read_text()
    for damaged in (whole.replace("source", "sauce", 1), whole[:-9], "[]", "{}", "null", "", '{"folders": 1}'):
        noted.write_text(damaged)
        assert [(f.file, f.advice[:8]) for f in check_folder(folder)] == [("sources.json", "Searches")]
        found = run("index", source / "part", "--to", folder, code=1)
        assert "sources.json is damaged" in found.output.replace("\n", " ")
        run("query", folder, "Ceuta")
    noted.write_text(whole)
    run("index", source / "part", "--to", folder)
    assert check_folder(folder) == []
    with Index(folder) as index:
        assert [document.id for document in index.documents()] == ["part/a.txt"]
    with Index(folder) as index:
        assert index.snapshot().document_ids() == ["part/a.txt"]


def test_damaged_answers_are_asked_for_again_and_counted(tmp_path, caplog):
    model = ScriptedModel()
    path = tmp_path / "index"
    with opened(path, msrag(), language_model=model) as index:
        index.build(DOCUMENTS)
        before = index.search("Who founded the Drava mill?", 3)
    asked = len(model.log)
    assert sql(path / "calls.sqlite", "UPDATE records SET body='{' WHERE hash=(SELECT min(hash) FROM records)") == [1]
    (finding,) = check_folder(path)
    assert (finding.file, finding.problem[:6]) == ("calls.sqlite", "1 rows")
    with caplog.at_level(logging.WARNING), opened(path, msrag(), language_model=model) as index:
        index.add([LATE])
        index.delete(["late"])
        assert index.search("Who founded the Drava mill?", 3) == before
    assert "1 damaged rows of 'records'" in caplog.text
    assert check_folder(path) == []
    assert len(model.log) <= asked + 8  # the passage that was lost and the new one, not everything


def test_what_the_embedder_learned_is_made_again_from_the_documents(tmp_path):
    with indexed(DOCUMENTS, tmp_path / "ix", recipe="flat") as index:
        before = [hit.unit.id for hit in index.search("Who founded the Drava mill?", 3)]
    assert sql(tmp_path / "ix" / "calls.sqlite", "UPDATE fitted SET body=x'00'")[0]
    with pytest.raises(StorageError, match="give the documents again"), Index(tmp_path / "ix", recipe="flat") as index:
        index.search("Who founded the Drava mill?", 3)
    with indexed(DOCUMENTS, tmp_path / "ix", recipe="flat") as index:
        assert [hit.unit.id for hit in index.search("Who founded the Drava mill?", 3)] == before
    assert check_folder(tmp_path / "ix") == []


def test_what_was_changed_under_an_open_index_is_not_vouched_for(folder):
    with opened(folder) as index:
        index.add([LATE])
        sql(folder / "index.sqlite", "UPDATE units SET text='x' WHERE id=(SELECT min(id) FROM units)")
        with pytest.raises(StorageError, match=r"index\.sqlite is damaged"):
            index.delete(["late"])
    with pytest.raises(StorageError, match=r"index\.sqlite is damaged"), opened(folder) as index:
        index.add([LATE])


@pytest.mark.parametrize("how", ["saved", "copied"])
def test_a_copy_that_is_damaged_is_not_built_upon(folder, tmp_path, how):
    copy = tmp_path / "copy"
    with opened(folder) as index:
        index.add([LATE])
        index.save(copy)
    if how == "copied":
        shutil.copytree(copy, copy := tmp_path / "of copy")
    sql(copy / "index.sqlite", "UPDATE units SET text='x' WHERE id=(SELECT min(id) FROM units)")
    with pytest.raises(StorageError, match=r"index\.sqlite is damaged"), opened(copy) as index:
        index.delete(["late"])


def test_a_saved_copy_counts_as_verified_and_one_of_others_does_not(folder, tmp_path):
    with opened(folder) as index:
        index.add([LATE])
        index.save(tmp_path / "saved")
    shutil.copytree(tmp_path / "saved", tmp_path / "copied")  # by others: who knows whether all of it
    assert Folder(tmp_path / "saved").verified()[1:] == list(file_stamp(tmp_path / "saved" / "index.sqlite"))
    assert Folder(tmp_path / "copied").verified()[1:] != list(file_stamp(tmp_path / "copied" / "index.sqlite"))


@pytest.mark.parametrize("embedder", [HashEmbedder(512), None], ids=["any", "fitted to the corpus"])
def test_vectors_that_the_index_holds_take_no_space_beside_it(tmp_path, embedder):
    with Index(tmp_path / "ix", recipe="flat", embedder=embedder, chunker=None) as index:
        index.build(Document(f"d{i}", f"Mill {i} stands in Ceuta.") for i in range(1000))
        assert len(index.search("Which mill stands in Ceuta?", 3)) == 3
        if embedder is not None:  # 2 MB of vectors; what a fitted embedder learned stays
            files = [tmp_path / "ix" / f"calls.sqlite{end}" for end in ("", "-wal")]
            assert sum(file.stat().st_size for file in files) < 400_000
    assert sql(tmp_path / "ix" / "calls.sqlite", "DELETE FROM vectors") == [0]
    with closing(sqlite3.connect(tmp_path / "ix" / "calls.sqlite")) as calls:
        assert calls.execute("PRAGMA freelist_count").fetchone()[0] < 10


def test_learned_state_that_a_search_made_room_for_is_missed(tmp_path):
    indexed(DOCUMENTS, tmp_path / "ix", chunker=None).close()
    assert check_folder(tmp_path / "ix") == []
    (tmp_path / "ix" / "calls.sqlite").unlink()
    with Index(tmp_path / "ix") as index, pytest.raises(EmbedderMismatchError, match="has learned"):
        index.search("Who met Boris Veld?")
    assert (tmp_path / "ix" / "calls.sqlite").exists()
    missed = ("calls.sqlite", "what the embedder of this index has learned is not there")
    (finding,) = check_folder(tmp_path / "ix")
    assert (finding.file, finding.problem) == missed
    (tmp_path / "ix" / "manifest.json").unlink()  # it is a copy of what index.sqlite says
    assert missed in [(finding.file, finding.problem) for finding in check_folder(tmp_path / "ix")]
    indexed(DOCUMENTS, tmp_path / "ix", chunker=None).close()
    assert check_folder(tmp_path / "ix") == []
