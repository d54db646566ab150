"""Readers: beside a writer, on read-only mounts, of one generation."""

import asyncio
import gc
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress

import pytest

from sire_core import Document, Index
from sire_core.errors import IndexLockedError, SnapshotExpiredError
from sire_core.models.embedders import resolve_embedder
from sire_core.recipes import REGISTRY
from sire_core.testing.doubles import HashEmbedder
from support.indexes import indexed

WRITER = """
    import sys
    from sire_core import Document, Index
    from sire_core.testing.doubles import HashEmbedder

    path, embedder, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with Index(path, recipe="raptor", embedder=HashEmbedder() if embedder == "hash" else None) as index:
        for number in range(rounds):
            count = 4 * 2 ** number
            index.build([Document(f"r{number}-{i}", f"Round {number} tells of Drava {i}.") for i in range(count)])
            print(number, flush=True)
"""


def start_writer(path, embedder, rounds):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(WRITER), str(path), embedder, str(rounds)],
        stdout=subprocess.PIPE,
        text=True,
    )


def check_one_generation(hits):
    rounds = {doc.split("-")[0] for hit in hits for doc in hit.doc_ids}
    assert len(rounds) == 1
    return int(rounds.pop()[1:])


@pytest.mark.quick(embedder=["lexical"])
@pytest.mark.parametrize("embedder", ["hash", "lexical"])
def test_an_open_reader_follows_a_writer_in_another_process(tmp_path, embedder):
    path, rounds = tmp_path / "index", 5
    with start_writer(path, embedder, rounds) as writer:
        assert writer.stdout.readline() == "0\n"
        published = 0

        def follow():
            nonlocal published
            for line in writer.stdout:
                published = int(line)

        follower = threading.Thread(target=follow)
        follower.start()
        seen = []
        made = HashEmbedder() if embedder == "hash" else resolve_embedder("lexical")
        with Index(path, recipe="raptor", embedder=made) as reader:
            while writer.poll() is None or not seen or seen[-1] < rounds - 1:
                least = published
                seen.append(check_one_generation(reader.search("Drava", 9, filter={"x": {"ne": 1}})))
                assert seen[-1] >= least
                with Index(path, recipe="raptor", embedder=made) as fresh:
                    assert check_one_generation(fresh.search("Drava 2", 9)) >= least
        follower.join()
    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert seen[-1] == rounds - 1


@pytest.mark.quick(embedder=["lexical"])
@pytest.mark.parametrize("where", ["folder", "memory"])
@pytest.mark.parametrize("embedder", ["hash", "lexical"])
def test_threads_search_while_the_same_index_changes(tmp_path, where, embedder):
    index = Index(
        tmp_path / "index" if where == "folder" else None,
        recipe="raptor",
        embedder=HashEmbedder() if embedder == "hash" else None,
    )
    index.build([Document(f"r0-{i}", f"Round 0 tells of Drava {i}.") for i in range(3)])
    stop, errors, seen = threading.Event(), [], []

    def search():
        try:
            while not stop.is_set():
                seen.append(check_one_generation(asyncio.run(index.asearch("Drava", 7))))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 7):
        index.build([Document(f"r{number}-{i}", f"Round {number} tells of Drava {i}.") for i in range(3 + 9 * number)])
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert check_one_generation(index.search("Drava", 7)) == 6
    assert seen
    index.close()


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


QUESTIONS = ["Where was the founder of the Amber mill born?", "Who met Bela Kovac 3?", "Ceuta"]
DOCUMENTS = [
    Document(
        f"d{i}",
        f"Bela Kovac {i} was born in Drava {i % 4}. Bela Kovac {i} met Bela Kovac {(i + 1) % 12} in Ceuta in 19{i:02}. "
        f"Bela Kovac {i} founded the Amber mill {i % 3}.",
        title=f"Bela Kovac {i}",
    )
    for i in range(12)
]


def answers(source):
    return [[(hit.unit.id, round(hit.score, 5), hit.path) for hit in source.search(q, 10)] for q in QUESTIONS]


def change(index):
    index.delete([f"d{i}" for i in range(0, 12, 2)])
    index.add(
        [Document("new", "Bela Kovac 3 met Cili Toth in Drava 9. Cili Toth founded the Amber mill 7.", "Cili Toth")]
    )


def purged(writer, seconds=10.0):
    """Purge; a worker thread may let go of the snapshot a moment later than this one."""
    for _ in range(int(seconds / 0.05)):
        with suppress(IndexLockedError):
            return writer.purge()
        time.sleep(0.05)
        gc.collect()
    return writer.purge()


@pytest.mark.quick(recipe=["iier", "sire", "smart"])
@pytest.mark.parametrize("recipe", sorted(REGISTRY))
def test_a_snapshot_searched_after_a_change(tmp_path, recipe):
    settings = {"recipe": recipe, "embedder": HashEmbedder()}
    with indexed(DOCUMENTS, tmp_path / "index", **settings) as index:
        expected = answers(index)
    with Index(tmp_path / "index", **settings) as index, Index(tmp_path / "index", **settings) as writer:
        snapshot = index.snapshot()  # nothing of it is read yet
        change(writer)
        assert answers(snapshot) == expected
        assert answers(index) == answers(writer)
        assert answers(snapshot) == expected
        del snapshot
        gc.collect()
        purged(writer)  # nobody holds what was deleted any more


@pytest.mark.parametrize("recipe", ["pagerank", "iier", "raptor"])
def test_a_snapshot_in_memory_is_right_or_says_that_it_expired(recipe):
    with indexed(DOCUMENTS, recipe=recipe, embedder=HashEmbedder()) as index:
        before, snapshot = answers(index.snapshot()), index.snapshot()
        change(index)
        try:
            assert answers(snapshot) == before
        except SnapshotExpiredError as expired:
            pytest.fail(f"what was read before is kept: {expired}")
        late = index.snapshot()
        index.add([Document("later", "Dora Nagy met Bela Kovac 5.")])
        if recipe == "raptor":
            assert answers(late)
        else:
            with pytest.raises(SnapshotExpiredError, match="Take a new one"):
                answers(late)
