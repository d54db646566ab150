"""Writers, and folders that cannot be written."""

import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from sire_core import Document
from sire_core.errors import ConfigurationError, IndexLockedError, StorageError
from sire_core.storage.folder import Folder

QUESTION = "Who lives in Drava 3?"


def test_a_second_writer_gets_a_clear_error_and_readers_go_on(folder, opened):
    script = """
import sys
from sire_core.storage.folder import Folder

with Folder(sys.argv[1]).writing():
    print("held", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", script, str(folder)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "held\n"
        with opened(folder, lock_timeout=0) as index:
            with pytest.raises(IndexLockedError, match="Another process"):
                index.add([Document("x", "X.")])
            assert index.search(QUESTION, 1)
        holder.stdin.close()
        holder.wait(30)
    with opened(folder) as index:
        assert index.add([Document("x", "X.")]).added == 1


def test_a_writer_waits_for_the_other_one(folder, opened):
    held, free = threading.Event(), threading.Event()

    def hold():
        with Folder(folder).writing():
            held.set()
            free.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(30)
    threading.Timer(0.3, free.set).start()
    with opened(folder) as index:
        assert index.add([Document("x", "X.")]).added == 1
        assert free.is_set()
    other.join()


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_wait_has_a_length(folder, opened, seconds):
    with pytest.raises(ConfigurationError, match="lock_timeout"):
        opened(folder, lock_timeout=seconds)


def test_the_lock_of_a_killed_writer_is_free(folder, opened, run):
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


@pytest.fixture
def world_readable():
    """A folder that every user of the machine can reach; pytest's own are private."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.mark.quick(embedder=["lexical"])
@pytest.mark.parametrize("embedder", ["lexical", "hash"])
def test_a_read_only_folder_can_be_searched_but_not_changed(world_readable, embedder, run):
    path = world_readable / "index"
    script = """
        import os, sys
        from sire_core import Document, Index
        from sire_core.errors import StorageError
        from sire_core.testing.doubles import HashEmbedder

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
    done = run(script, path, embedder)
    for place in [path, *(entry for entry in path.rglob("*") if entry.is_dir())]:
        place.chmod(0o755)
    assert done.returncode == 0, done.stderr
    before, after, refusal = done.stdout.splitlines()
    assert before == after
    assert refusal.startswith("StorageError")
    assert "writable" in refusal


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("derived", ["there", "gone"])
def test_a_full_disk_can_be_searched_by_a_new_process(folder, run, ids, derived):
    expected = ids(folder)
    if derived == "gone":
        shutil.rmtree(folder / "derived")
    script = """
        import resource, signal, sys
        from sire_core import Document, Index
        from sire_core.errors import StorageError
        from sire_core.testing.doubles import HashEmbedder

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        with Index(sys.argv[1], embedder=HashEmbedder()) as index:
            print(*[hit.unit.id for hit in index.search("Who lives in Drava 3?", 4)])
            print(index.stats()["documents"])
            try:
                index.add([Document("x", "X. " * 1000)])
            except StorageError as error:
                print(error)
    """
    done = run(script, folder)
    assert done.returncode == 0, done.stderr
    hits, documents, refusal = done.stdout.splitlines()
    assert hits.split() == expected
    assert documents == "5"
    assert "free some space" in refusal or "make room" in refusal


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_search_on_a_full_disk_leaves_out_changes_that_cannot_be_indexed(folder, run, opened):
    with opened(folder) as index:
        index.defer([Document("new", "Zora lives in Drava 9."), Document("d1", "Zora moved.")], delete=["d3"])
    script = """
        import resource, signal, sys
        from sire_core import Index
        from sire_core.testing.doubles import HashEmbedder

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        with Index(sys.argv[1], embedder=HashEmbedder()) as index:
            print(*sorted({name for hit in index.search("Who lives in Drava 3?", 9) for name in hit.doc_ids}))
            print(index.snapshot().size)
    """
    done = run(script, folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "d0 d2 d4"
    assert "Searches leave out 3 documents of which changes wait" in done.stderr
    with opened(folder) as index:  # with room they are indexed
        assert sorted({name for hit in index.search("Who lives?", 9) for name in hit.doc_ids}) == [
            "d0",
            "d1",
            "d2",
            "d4",
            "new",
        ]


def test_threads_that_search_while_another_one_closes(folder, opened, monkeypatch):
    """Each search answers, or raises one error of ours; never SQLite's own."""
    index, ended, answers, wrong = opened(folder), threading.Event(), set(), []
    monkeypatch.setattr(threading, "excepthook", lambda raised: wrong.append(repr(raised.exc_value)))

    def search():
        while not ended.is_set():
            with suppress(StorageError):
                found = len(index.search(QUESTION, 4)), index.stats()["documents"], len(index.documents())
                answers.add(found)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    while not (answers or wrong):  # on a crowded machine this takes a while
        ended.wait(0.05)
    for _ in range(60):
        index.close()
        ended.wait(0.005)
    ended.set()
    for thread in threads:
        thread.join()
    index.close()
    assert wrong == []
    assert answers == {(4, 5, 5)}
