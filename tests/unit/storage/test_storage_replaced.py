"""Another index takes the place of an open one: a restored backup, or one that was embedded again."""

import json
import shutil
import subprocess
import sys
import threading
import time

import pytest

from sire_core import Document, Index
from sire_core.errors import IndexLockedError, IndexMissingError, StorageError
from sire_core.storage.folder import file_lock
from support.command import run_python

QUESTION = "Who lives in Drava 3?"
NEW = Document("new", "Zora lives in Drava 3 now.")
LATER = Document("later", "Later on, Ivo lives in Drava 3.")


def moved_away(path, copy):
    path.rename(path.with_name("before"))
    shutil.copytree(copy, path)


def removed(path, copy):
    shutil.rmtree(path)
    shutil.copytree(copy, path)


def ids(index):
    return {document.id for document in index.documents()}


def seen_by_others(path):
    script = "import sys; from sire_core import Index; print([d.id for d in Index(sys.argv[1]).documents()])"
    done = run_python(script, path)
    return set(json.loads(done.stdout.replace("'", '"')))


@pytest.mark.parametrize("restore", [moved_away, removed])
def test_open_readers_and_writers_go_on_with_a_restored_backup(folder, tmp_path, opened, documents, restore):
    with opened(folder) as writer, opened(folder) as reader, opened(folder) as idle:
        for index in (writer, reader, idle):
            index.search(QUESTION)
        first = ids(reader)
        writer.save(tmp_path / "copy")
        writer.add([NEW])
        writer.delete(["d0"])
        assert {"new"} < {hit.doc_ids[0] for hit in reader.search(QUESTION)}
        restore(folder, tmp_path / "copy")
        assert "new" not in {hit.doc_ids[0] for hit in reader.search(QUESTION)}
        assert ids(reader) == first
        assert writer.add([LATER]).added == 1
        assert ids(writer) == ids(reader) == ids(idle) == seen_by_others(folder) == {*first, "later"}
        assert "later" in {hit.doc_ids[0] for hit in idle.search("Where does Ivo live later on?")}


def test_open_readers_and_writers_go_on_with_the_index_that_reembed_makes(tmp_path, documents):
    path = tmp_path / "index"
    with Index(path, recipe="raptor") as writer, Index(path) as reader:
        writer.build(documents)
        writer.add([NEW])
        before = reader.stats()["embedder"]
        reader.search(QUESTION)
        command = "import sys; from sire_core.cli import main; main()"
        subprocess.run(
            [sys.executable, "-c", command, "reembed", str(path), "--embedder", "lexical"],
            check=True,
            capture_output=True,
        )
        assert reader.stats()["embedder"] != before  # fitted to another corpus
        assert reader.stats()["generation"] == 1
        assert writer.add([LATER]).generation == 2
        assert "later" in {hit.doc_ids[0] for hit in reader.search("Where does Ivo live later on?")}
        assert ids(reader) == seen_by_others(path) == {*(document.id for document in documents), "new", "later"}


def test_a_change_that_loses_its_index_on_the_way_writes_nothing(folder, tmp_path, opened):
    """The folder is replaced, without the lock, between the plan of a change and its commit."""
    with opened(folder) as index:
        index.save(tmp_path / "copy")
        before = ids(index)

        def replace(stage, done, total):
            if not (tmp_path / "before").exists():
                moved_away(folder, tmp_path / "copy")

        with opened(folder, progress=replace) as writer:
            writer.search(QUESTION)
            with pytest.raises(StorageError, match="Nothing was written"):
                writer.add([NEW])
            assert (tmp_path / "before").exists()
            assert ids(writer) == ids(index) == seen_by_others(folder) == before
            assert writer.add([NEW]).added == 1
        assert seen_by_others(folder) == {*before, "new"}


def test_an_open_index_that_needs_another_embedder_now_says_so_and_writes_nothing(folder, tmp_path, opened):
    other = tmp_path / "other"
    with opened(folder) as index:
        index.search(QUESTION)
        index.reembed(other, "lexical")
        shutil.rmtree(folder)
        other.rename(folder)
        held = (folder / "manifest.json").read_bytes()
        for use in (lambda: index.search(QUESTION), lambda: index.add([NEW])):
            with pytest.raises(StorageError, match=r"lexical.*hash/1:64"):
                use()
        assert (folder / "manifest.json").read_bytes() == held


def test_an_open_index_whose_folder_is_gone_is_a_clear_error(folder, opened):
    with opened(folder) as index:
        index.search(QUESTION)
        shutil.rmtree(folder)
        for use in (lambda: index.search(QUESTION), lambda: index.add([NEW]), index.stats):
            with pytest.raises(StorageError, match=str(folder)):
                use()
        assert not folder.exists()


def leave_nothing(folder):
    shutil.rmtree(folder)


def leave_an_empty_folder(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def leave_something_else(folder):
    shutil.rmtree(folder)
    folder.write_text("mine")


def leave_all_but_the_database(folder):
    (folder / "index.sqlite").unlink()


LEAVE = (leave_nothing, leave_an_empty_folder, leave_something_else, leave_all_but_the_database)
WAITING = {
    "add": lambda index: index.add([NEW]),
    "build": lambda index: index.build([NEW]),
    "delete": lambda index: index.delete(["new"], missing_ok=True),
    "reextract": lambda index: index.reextract([index.documents()[0].id]),
    "purge": lambda index: index.purge(),
    "flush": lambda index: index.flush(),
}


@pytest.mark.parametrize(("action", "leave"), list(zip(WAITING, LEAVE + LEAVE, strict=False)))
def test_a_folder_that_is_deleted_under_a_waiting_change(folder, opened, action, leave):
    """One clear error; the change begins no new index in that place, and leaves nothing there."""
    failures = []

    def change(index):
        try:
            WAITING[action](index)
        except Exception as error:  # noqa: BLE001 - looked at below
            failures.append(error)

    with opened(folder) as index:
        index.defer([NEW])
        waiting = threading.Thread(target=change, args=(index,))
        with file_lock(folder, "writer.lock"):
            waiting.start()
            time.sleep(0.2)
            leave(folder)
            left = {path.name for path in folder.parent.rglob("*")}
        waiting.join(30)
        assert [type(error) for error in failures] == [IndexMissingError]
        assert "any more" in str(failures[0])
        assert {path.name for path in folder.parent.rglob("*")} <= left


@pytest.mark.parametrize("is_built", [True, False])
def test_a_folder_that_is_deleted_during_a_change(folder, opened, is_built):
    """At each step of it: one clear error, and nothing of it is in that place."""
    step = total = 0
    while step <= total:
        if is_built:
            with opened(folder) as index:
                index.build([LATER])
        else:
            leave_nothing(folder)
        count = 0

        def delete(*_):
            nonlocal count
            count += 1
            if count == step:  # noqa: B023 - called at once
                leave_nothing(folder)

        with opened(folder, progress=delete) as index:
            if step:
                with pytest.raises(StorageError, match=r"removed or replaced|any more"):
                    index.add([NEW])
                assert list(folder.parent.iterdir()) == []
                folder.mkdir()
            else:
                index.add([NEW])
                total = count
        step += 1
    assert total > 5


def test_files_copied_over_an_open_index_are_noticed(folder, tmp_path, opened):
    with opened(folder) as writer, opened(folder) as reader:
        writer.save(tmp_path / "copy")
        writer.add([NEW])
        reader.search(QUESTION)
        for file in (tmp_path / "copy").iterdir():
            shutil.copyfile(file, folder / file.name)  # into the same inode
        held = (folder / "manifest.json").read_bytes()
        for use in (lambda: writer.add([LATER]), reader.stats, reader.documents):
            with pytest.raises(StorageError, match="copied over"):
                use()
        assert (folder / "manifest.json").read_bytes() == held


def test_a_lock_is_that_of_the_folder_that_is_there_now(tmp_path):
    place, held, done = tmp_path / "place", threading.Event(), threading.Event()
    place.mkdir()

    def wait_for_it():
        with file_lock(place, "writer.lock", 30):
            held.set()
            done.wait(30)

    waiting = threading.Thread(target=wait_for_it)
    with file_lock(place, "writer.lock"):  # as `sire reembed` holds it
        waiting.start()
        time.sleep(0.5)  # for it to have opened the file that goes now
        place.rename(tmp_path / "before")
        place.mkdir()
    assert held.wait(30)
    with pytest.raises(IndexLockedError), file_lock(place, "writer.lock"):
        pass
    done.set()
    waiting.join()
