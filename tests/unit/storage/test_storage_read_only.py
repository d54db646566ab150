"""An index on a read-only mount, as a container has it, beside a writer that mounts the same folder to write."""

import shutil
import subprocess
import sys
import textwrap

import pytest

from sire_core.index import Index
from sire_core.types import Document

READER = """
    import sys
    from sire_core import Index
    from sire_core.testing.doubles import HashEmbedder

    index = Index(sys.argv[1], embedder=HashEmbedder())
    for line in sys.stdin:
        try:
            if line.strip():
                index.view()
            hits = [] if line.strip() else index.search("Who lives in Drava 3?", 4)
            print(index.stats()["generation"], len(index.documents()), "x" in {hit.doc_ids[0] for hit in hits})
        except Exception as error:
            print(type(error).__name__, error)
        sys.stdout.flush()
"""
MOUNT = 'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2"'


@pytest.fixture
def read_only(tmp_path):
    """Starts a process that sees a folder through a read-only mount of its own; returns what asks it."""
    started = []
    seen = tmp_path / "mount"
    seen.mkdir()
    in_namespace = ["unshare", "-r", "-m", "sh", "-c"]
    if shutil.which("unshare") is None or (
        subprocess.run(
            [*in_namespace, MOUNT, "sh", str(tmp_path), str(seen)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no read-only mounts here")

    def start(folder):
        process = subprocess.Popen(
            [
                *in_namespace,
                f'{MOUNT} && exec "$3" -c "$4" "$2"',
                "sh",
                folder,
                seen,
                sys.executable,
                textwrap.dedent(READER),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)

        def ask(what=""):
            process.stdin.write(f"{what}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        return ask

    yield start
    for process in started:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def test_a_reader_on_a_read_only_mount_follows_a_writer(folder, opened, read_only):
    assert not list(folder.glob("*-wal"))
    ask = read_only(folder)
    assert ask() == "1 5 False"  # opened as a file that never changes
    with opened(folder) as writer:
        writer.add([Document("x", "Drava 3 is where Xenia lives.")])
        assert ask() == "2 6 True"
        writer.delete(["d0"])
        assert ask() == "3 5 True"
    assert ask() == "3 5 True"
    with opened(folder) as writer:
        writer.delete(["x"])
    assert ask() == "4 4 False"


def test_a_reader_on_a_read_only_mount_follows_writers_that_have_closed_already(folder, opened, read_only):
    ask = read_only(folder)
    assert ask() == "1 5 False"
    for generation in (2, 3, 4):
        with opened(folder) as writer:
            writer.update([Document("x", f"Drava 3 is where Xenia lives, {generation}.")])
        assert ask() == f"{generation} 6 True"


def test_what_a_reader_on_a_read_only_mount_reads_later_may_be_written_anew(folder, opened, read_only, documents):
    with opened(folder, recipe="pagerank") as writer:
        writer.build(documents)
    ask = read_only(folder)
    assert ask("open") == "2 5 False"
    with opened(folder) as writer:
        writer.purge()  # another file, of the same generation
    assert ask() == "2 5 False"


def test_a_copy_whose_log_cannot_be_read_says_what_is_missing(folder, tmp_path, opened, read_only):
    copy = tmp_path / "copied"
    with opened(folder) as writer:
        writer.add([Document("x", "Drava 3 is where Xenia lives.")])
        shutil.copytree(folder, copy)
        writer.save(tmp_path / "backup")
    ask = read_only(copy)
    assert ask() == "2 6 True"  # the log and what belongs to it are there
    for file in copy.glob("*-shm"):
        file.unlink()
    said = read_only(copy)()
    assert "index.sqlite-wal" in said
    assert "index.sqlite-shm, which is missing" in said
    assert "sire backup" in said
    assert read_only(tmp_path / "backup")() == "2 6 True"
    with Index(copy) as index:  # where it can be written, the log is read
        assert len(index.documents()) == 6
