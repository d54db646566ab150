"""Writers, and folders that cannot be written."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sire_core.errors import (
    IndexLockedError,
)
from sire_core.storage.folder import Folder
from sire_core.types import Document

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
        with opened(folder) as index:
            with pytest.raises(IndexLockedError, match="Another process"):
                index.add([Document("x", "X.")])
            assert index.search(QUESTION, 1)
        holder.stdin.close()
        holder.wait(30)
    with opened(folder) as index:
        assert index.add([Document("x", "X.")]).added == 1


def test_two_writers_in_one_process(folder, opened):
    with Folder(folder).writing(), opened(folder) as index, pytest.raises(IndexLockedError):
        index.add([Document("x", "X.")])


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


@pytest.mark.parametrize("embedder", ["lexical", "hash"])
def test_a_read_only_folder_can_be_searched_but_not_changed(world_readable, embedder, run):
    path = world_readable / "index"
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
    done = run(script, path, embedder)
    for place in [path, *(entry for entry in path.rglob("*") if entry.is_dir())]:
        place.chmod(0o755)
    assert done.returncode == 0, done.stderr
    before, after, refusal = done.stdout.splitlines()
    assert before == after
    assert refusal.startswith("StorageError")
    assert "writable" in refusal
