"""The index folder: recovery, refusals, read-only folders, full disks."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sire_core.errors import (
    ConfigurationError,
    EmbedderMismatchError,
    IndexLockedError,
    IndexMissingError,
    StorageError,
)
from sire_core.index import Index
from sire_core.storage.folder import Folder
from sire_core.testing.contents import read_contents
from sire_core.testing.hash_embedder import HashEmbedder
from sire_core.types import Document

DOCUMENTS = [Document(f"d{i}", f"Alma met Boris in Ceuta. Alma lives in Drava {i}.", f"Title {i}") for i in range(5)]
QUESTION = "Who lives in Drava 3?"


def opened(path, **settings):
    return Index(path, **{"embedder": HashEmbedder(), **settings})


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "index"
    with opened(path, recipe="raptor") as index:
        index.build(DOCUMENTS)
    return path


def ids(path, **settings):
    with opened(path, **settings) as index:
        return [hit.unit.id for hit in index.search(QUESTION, 4)]


def run(script, *arguments, **options):
    """Run Python in a process of its own; warnings are errors there too."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


# --- derived files ------------------------------------------------------------------------------------------------


def derived(path):
    (pool,) = [entry for entry in (path / "derived").iterdir() if entry.is_dir()]
    return pool


def test_derived_files_are_made_again_when_they_are_gone(folder):
    expected = ids(folder)
    shutil.rmtree(folder / "derived")
    assert ids(folder) == expected
    assert derived(folder).name.endswith("-1")


@pytest.mark.parametrize("name", ["matrix.npy", "ids.npy", "offsets.npy", "indptr.npy", "rows.bin", "documents.json"])
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "noise"])
def test_damaged_derived_files_are_made_again(folder, name, damage):
    expected = ids(folder)
    file = derived(folder) / name
    whole = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut": whole[:-3], "noise": b"\x93NUMPY noise"}[damage])
    assert ids(folder) == expected
    with opened(folder) as index:
        assert len(index.search(QUESTION, 4, filter={"nothing": {"ne": 1}})) == 4
    assert file.read_bytes() == whole


def test_a_damaged_bm25_index_is_made_again(folder):
    settings = {"recipe": "flat"}
    with opened(folder, **settings) as index:
        index.build(DOCUMENTS)
    from sire_core.recipes import flat

    expected = ids(folder, recipe=flat(ranker="bm25"))
    (stored,) = folder.glob("derived/*/bm25-*")
    for file in stored.iterdir():
        file.write_bytes(b"noise")
    assert ids(folder, recipe=flat(ranker="bm25")) == expected


def test_files_of_an_index_that_was_deleted_are_not_taken_for_the_new_one(folder):
    (folder / "index.sqlite").unlink()
    for name in ("index.sqlite-wal", "index.sqlite-shm"):
        (folder / name).unlink(missing_ok=True)
    with opened(folder, recipe="raptor") as index:
        index.build([Document("new", "Zelda rules Zadar.")])
        (hit,) = index.search("Zelda", 5)
    assert hit.unit.text == "Zelda rules Zadar."


def test_old_generations_are_tidied_away(folder):
    with opened(folder) as index:
        index.add([Document("more", "Ewa lives in Fiume.")])
        index.search(QUESTION, 1)
    assert derived(folder).name.endswith("-2")


# --- recovery -----------------------------------------------------------------------------------------------------


def test_a_process_that_died_between_commit_and_manifest_is_recovered_from(folder):
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
def test_a_damaged_manifest_file_costs_nothing(folder, content):
    expected = ids(folder)
    (folder / "manifest.json").write_text(content)
    assert ids(folder) == expected


def test_a_missing_manifest_file_costs_nothing(folder):
    expected = ids(folder)
    (folder / "manifest.json").unlink()
    assert ids(folder) == expected


def test_a_build_that_died_before_its_commit_says_so_and_can_be_repeated(tmp_path):
    class Failing(HashEmbedder):
        async def embed(self, texts, kind="document"):
            raise RuntimeError("killed")

    path = tmp_path / "index"
    with pytest.raises(RuntimeError, match="killed"), opened(path, embedder=Failing()) as index:
        index.build(DOCUMENTS)
    with opened(path) as index, pytest.raises(IndexMissingError, match="did not finish"):
        index.search(QUESTION)
    with opened(path) as index:
        index.build(DOCUMENTS)
        assert index.search(QUESTION, 1)


# --- refusals -----------------------------------------------------------------------------------------------------


def test_another_embedder_is_refused_by_both_names(folder):
    with opened(folder, embedder=HashEmbedder(32)) as index:
        for use in (lambda: index.search(QUESTION), lambda: index.add([Document("x", "X.")])):
            with pytest.raises(EmbedderMismatchError, match=r"hash/1:64.*hash/1:32"):
                use()
    with Index(folder, embedder="lexical") as index, pytest.raises(EmbedderMismatchError, match=r"hash/1:64.*lexical"):
        index.search(QUESTION)
    with Index(folder) as index, pytest.raises(EmbedderMismatchError, match=r"hash/1:64.*Index\(path, embedder"):
        index.search(QUESTION)


def test_another_format_is_refused(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(StorageError, match="format 99"), opened(folder) as index:
        index.search(QUESTION)
    (folder / "manifest.json").unlink()
    with sqlite3.connect(folder / "index.sqlite") as connection:
        connection.execute("UPDATE meta SET value=?", (json.dumps({**manifest, "format": 99}),))
    connection.close()
    with pytest.raises(StorageError, match="format 99"), opened(folder) as index:
        index.build(DOCUMENTS)


def test_foreign_places_are_refused_and_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match=r"notes\.txt"), opened(tmp_path) as index:
        index.build(DOCUMENTS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(StorageError, match="Name another place"), opened(tmp_path / "notes.txt" / "x") as index:
        index.build(DOCUMENTS)
    with pytest.raises(IndexMissingError, match="Build one"), opened(tmp_path / "nowhere") as index:
        index.search(QUESTION)
    assert not (tmp_path / "nowhere").exists()


def test_the_database_of_another_program_is_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = (tmp_path / "index.sqlite").read_bytes()
    for use in (lambda index: index.search(QUESTION), lambda index: index.build(DOCUMENTS)):
        with pytest.raises(StorageError, match="another program"), opened(tmp_path) as index:
            use(index)
    assert (tmp_path / "index.sqlite").read_bytes() == before


@pytest.mark.parametrize("keep", [0, 10, 100, 4096, 9000])
def test_a_truncated_index_is_a_clear_error(folder, keep):
    file = folder / "index.sqlite"
    file.write_bytes(file.read_bytes()[:keep])
    shutil.rmtree(folder / "derived")
    with pytest.raises(StorageError, match=r"index\.sqlite"), opened(folder) as index:
        index.search(QUESTION)
    with pytest.raises(StorageError, match=r"index\.sqlite"), opened(folder) as index:
        index.add([Document("x", "X.")])


def test_recipes_that_were_not_built_are_named(folder):
    from sire_core.recipes import raptor

    with opened(folder, recipe="sirerag") as index, pytest.raises(ConfigurationError, match="holds: raptor"):
        index.search(QUESTION)
    other = opened(folder, recipe=raptor(depth=1))
    with other as index, pytest.raises(ConfigurationError, match="other settings"):
        index.search(QUESTION)


def test_save_wants_a_new_folder_and_something_to_save(folder, tmp_path):
    with opened(folder) as index:
        index.save(tmp_path / "copy")
        for taken in (tmp_path / "copy", folder, tmp_path):
            with pytest.raises(StorageError, match="Name a new folder"):
                index.save(taken)
    assert read_contents(tmp_path / "copy") == read_contents(folder)
    with pytest.raises(IndexMissingError):
        Index(embedder=HashEmbedder()).save(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


# --- writers ------------------------------------------------------------------------------------------------------


def test_a_second_writer_gets_a_clear_error_and_readers_go_on(folder):
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from sire_core.storage.folder import Folder as F\nwith F(sys.argv[1]).writing():\n"
            + "    print('held', flush=True); sys.stdin.read()",
            str(folder),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        with opened(folder) as index:
            with pytest.raises(IndexLockedError, match="Another process"):
                index.add([Document("x", "X.")])
            assert index.search(QUESTION, 1)
        holder.stdin.close()
        holder.wait(30)
    with opened(folder) as index:
        assert index.add([Document("x", "X.")]).added == 1


def test_two_writers_in_one_process(folder):
    with Folder(folder).writing(), opened(folder) as index, pytest.raises(IndexLockedError):
        index.add([Document("x", "X.")])


def test_the_lock_of_a_killed_writer_is_free(folder):
    killed = run(
        """
        import os, sys
        from sire_core.storage.folder import Folder
        Folder(sys.argv[1]).writing().__enter__()
        os.kill(os.getpid(), 9)
        """,
        folder,
    )
    assert killed.returncode == -9
    with opened(folder) as index:
        assert index.add([Document("x", "X.")]).added == 1


# --- read-only folders --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("embedder", ["lexical", "hash"])
def test_a_read_only_folder_can_be_searched_but_not_changed(tmp_path, embedder):
    path = tmp_path / "index"
    script = """
        import os, sys
        from sire_core import Document, Index
        from sire_core.errors import StorageError
        from sire_core.testing.hash_embedder import HashEmbedder

        def opened():
            return Index(sys.argv[1], recipe="raptor", embedder=HashEmbedder() if sys.argv[2] == "hash" else None)

        def show():
            with opened() as index:
                hits = index.search("Who lives in Drava 3?", 4)
                print([hit.unit.id for hit in hits], index.stats()["units"], len(index.explain("Drava")) > 100)

        with opened() as index:
            index.build([Document(f"d{i}", f"Alma lives in Drava {i}.") for i in range(5)])
        show()
        for name in os.listdir(sys.argv[1]):
            os.chmod(os.path.join(sys.argv[1], name), 0o444 if "." in name else 0o555)
        os.chmod(sys.argv[1], 0o555)
        if os.getuid() == 0:  # permissions do not bind root
            os.setuid(65534)
        show()
        try:
            with opened() as index:
                index.add([Document("x", "X.")])
        except StorageError as error:
            print(type(error).__name__, error)
    """
    os.chmod(tmp_path, 0o755)  # noqa: PTH101 - beside the calls of the script
    for parent in [tmp_path, *tmp_path.parents][:3]:
        parent.chmod(0o755)
    done = run(script, path, embedder)
    path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    before, after, refusal = done.stdout.splitlines()
    assert before == after
    assert refusal.startswith("StorageError")
    assert "writable" in refusal


# --- full disks ---------------------------------------------------------------------------------------------------


def test_a_full_disk_is_a_clear_error_and_loses_nothing(folder):
    before = read_contents(folder)
    script = """
        import resource, sys
        from sire_core import Document, Index
        from sire_core.errors import StorageError
        from sire_core.testing.hash_embedder import HashEmbedder

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


def test_a_database_that_is_full_rolls_back(folder):
    before = read_contents(folder)
    with opened(folder) as index:
        index.search(QUESTION)
        connection = index._session.library().store._db._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(StorageError, match="no space left"):
            index.add([Document(f"more{i}", "word " * 900 + str(i)) for i in range(40)])
        assert index.search(QUESTION, 1)
    assert read_contents(folder) == before


def test_derived_files_that_cannot_be_written_only_cost_time(folder, monkeypatch):
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
