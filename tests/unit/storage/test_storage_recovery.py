"""Recovery, derived files and refusals."""

import json
import resource
import shutil
import sqlite3

import pytest

from sire_core import Document, Index
from sire_core.errors import IndexMissingError, StorageError
from sire_core.storage.check import check_folder
from sire_core.storage.checksums import row_checksum
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder

QUESTION = "Who lives in Drava 3?"


def test_a_process_that_died_between_commit_and_manifest_is_recovered_from(folder, opened):
    before = (folder / "manifest.json").read_text()
    with opened(folder) as index:
        index.add([Document("late", "Lotte lives in Drava 3 too.")])
    (folder / "manifest.json").write_text(before)
    shutil.rmtree(folder / "derived")
    with opened(folder) as index:
        assert index.stats()["generation"] == 2
        assert "late" in {doc for hit in index.search("Lotte", 3) for doc in hit.doc_ids}
    assert json.loads((folder / "manifest.json").read_text())["generation"] == 1
    with opened(folder) as index:  # the next writer repairs the file, whatever it writes
        index.add([Document("late", "Lotte lives in Drava 3 too.")])
    assert json.loads((folder / "manifest.json").read_text())["generation"] == 2


@pytest.mark.parametrize("content", [None, "", "{", "null", '"text"'])
def test_a_manifest_file_that_is_damaged_or_missing_costs_nothing(folder, content, ids):
    expected = ids(folder)
    (folder / "manifest.json").unlink()
    if content is not None:
        (folder / "manifest.json").write_text(content)
    assert ids(folder) == expected


def test_a_build_that_died_before_its_commit_says_so_and_the_next_one_keeps_its_vectors(tmp_path, opened):
    class Dying(HashEmbedder):
        def __init__(self, lifetime):
            super().__init__()
            self.lifetime, self.texts = lifetime, 0

        async def embed(self, texts, kind="document"):
            if self.texts + len(texts) > self.lifetime:
                raise KeyboardInterrupt("killed")
            self.texts += len(texts)
            return await super().embed(texts, kind)

    path, embedders = tmp_path / "index", [Dying(600), Dying(10_000)]
    documents = [Document(f"d{number}", f"Alma lives in Drava {number}.") for number in range(900)]
    with pytest.raises(KeyboardInterrupt), opened(path, embedder=embedders[0], recipe="flat") as index:
        index.build(documents)
    with opened(path) as index, pytest.raises(IndexMissingError, match="did not finish"):
        index.search(QUESTION)
    (finding,) = check_folder(path)
    assert finding.advice.startswith("Run the same build again")
    with opened(path, embedder=embedders[1], recipe="flat") as index:
        index.build(documents)
        assert index.search(QUESTION, 1)
    assert embedders[1].texts < len(documents) - 400  # and some for checks and questions
    assert check_folder(path) == []


def test_a_full_disk_is_a_clear_error_and_loses_nothing(folder, opened, run):
    before = read_contents(folder)
    script = """
        import resource, sys
        from sire_core import Document, Index
        from sire_core.errors import StorageError
        from sire_core.testing.doubles import HashEmbedder

        more = [Document(f"more{i}", f"Passage {i} says: " + "word " * 400) for i in range(300)]
        with Index(sys.argv[1], embedder=HashEmbedder()) as index:
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
            try:
                index.add(more)
            except StorageError as error:
                print(error)
    """
    done = run(script, folder)
    assert done.returncode == 0, done.stderr
    assert "make room" in done.stdout or "free some space" in done.stdout
    assert read_contents(folder) == before
    with opened(folder) as index:
        assert index.search(QUESTION, 1)
        assert index.add([Document("x", "X.")]).added == 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def derived(path):
    (pool,) = [entry for entry in (path / "derived").iterdir() if entry.is_dir()]
    return pool


def test_files_of_an_index_that_was_deleted_are_not_taken_for_the_new_one(folder, opened):
    (folder / "index.sqlite").unlink()
    for name in ("index.sqlite-wal", "index.sqlite-shm"):
        (folder / name).unlink(missing_ok=True)
    with opened(folder, recipe="raptor") as index:
        index.build([Document("new", "Zelda rules Zadar.")])
        (hit,) = index.search("Zelda", 5)
    assert hit.unit.text == "Zelda rules Zadar."


def test_another_format_is_refused(folder, opened, documents):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(StorageError, match="format 99"), opened(folder) as index:
        index.search(QUESTION)
    (folder / "manifest.json").unlink()
    with sqlite3.connect(folder / "index.sqlite") as connection:
        row = ("manifest", json.dumps({**manifest, "format": 99}))
        connection.execute("UPDATE meta SET value=?, checksum=? WHERE key=?", (row[1], row_checksum(row), row[0]))
    connection.close()
    with pytest.raises(StorageError, match="format 99"), opened(folder) as index:
        index.build(documents)


def test_foreign_places_are_refused_and_left_alone(tmp_path, opened, documents):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match=r"notes\.txt"), opened(tmp_path) as index:
        index.build(documents)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(StorageError, match="Name another place"), opened(tmp_path / "notes.txt" / "x") as index:
        index.build(documents)
    with pytest.raises(IndexMissingError, match="Build one"), opened(tmp_path / "nowhere") as index:
        index.search(QUESTION)
    assert not (tmp_path / "nowhere").exists()


def test_the_database_of_another_program_is_left_alone(tmp_path, opened, documents):
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = (tmp_path / "index.sqlite").read_bytes()
    for use in (lambda index: index.search(QUESTION), lambda index: index.build(documents)):
        with pytest.raises(StorageError, match="another program"), opened(tmp_path) as index:
            use(index)
    assert (tmp_path / "index.sqlite").read_bytes() == before


def test_save_wants_a_new_folder_and_something_to_save(folder, tmp_path, opened):
    with opened(folder) as index:
        index.save(tmp_path / "copy")
        for taken in (tmp_path / "copy", folder, tmp_path):
            with pytest.raises(StorageError, match="Name a new folder"):
                index.save(taken)
    assert read_contents(tmp_path / "copy") == read_contents(folder)
    with pytest.raises(IndexMissingError):
        Index(embedder=HashEmbedder()).save(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
