"""Recovery after a process died, and full disks."""

import json
import resource
import shutil
import sys
from pathlib import Path

import pytest

from sire_core.errors import (
    IndexMissingError,
    StorageError,
)
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document

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


@pytest.mark.parametrize("content", ["", "{", "null", '"text"'])
def test_a_damaged_manifest_file_costs_nothing(folder, content, ids):
    expected = ids(folder)
    (folder / "manifest.json").write_text(content)
    assert ids(folder) == expected


def test_a_missing_manifest_file_costs_nothing(folder, ids):
    expected = ids(folder)
    (folder / "manifest.json").unlink()
    assert ids(folder) == expected


def test_a_build_that_died_before_its_commit_says_so_and_can_be_repeated(tmp_path, opened, documents):
    class Failing(HashEmbedder):
        async def embed(self, texts, kind="document"):
            raise RuntimeError("killed")

    path = tmp_path / "index"
    with pytest.raises(RuntimeError, match="killed"), opened(path, embedder=Failing()) as index:
        index.build(documents)
    with opened(path) as index, pytest.raises(IndexMissingError, match="did not finish"):
        index.search(QUESTION)
    with opened(path) as index:
        index.build(documents)
        assert index.search(QUESTION, 1)


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


def test_a_database_that_is_full_rolls_back(folder, opened):
    before = read_contents(folder)
    with opened(folder) as index:
        index.search(QUESTION)
        connection = index._reader.files().store._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(StorageError, match="no space left"):
            index.add([Document(f"more{i}", "word " * 900 + str(i)) for i in range(40)])
        assert index.search(QUESTION, 1)
    assert read_contents(folder) == before


def test_derived_files_that_cannot_be_written_only_cost_time(folder, monkeypatch, ids):
    expected = ids(folder)
    shutil.rmtree(folder / "derived")

    def full(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    assert ids(folder) == expected
    assert not (folder / "derived").exists()


def test_nothing_is_pickled():
    source = Path(sys.modules["sire_core"].__file__).parent
    for file in source.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert "import pickle" not in text, file
        assert "allow_pickle=True" not in text, file
        assert "joblib" not in text, file
        assert " eval(" not in text, file
