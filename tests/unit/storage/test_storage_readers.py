"""Readers beside a writer: each search sees one whole generation, the newest that was published, and never an error."""

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref

import pytest

from sire_core.index import Index
from sire_core.models.embedders import resolve_embedder
from sire_core.storage.index_files import IndexFiles
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document

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


def test_a_reader_that_comes_between_commit_and_publication(folder, opened, monkeypatch):
    """It may show the committed generation at once; it does not fail, and does not write over newer files."""
    seen = []
    publish = IndexFiles.publish

    def late(library):
        if library.folder and library.store.manifest().get("generation") == 2:
            with opened(folder) as reader:
                seen.append({doc for hit in asyncio.run(reader.asearch("Lotte", 3)) for doc in hit.doc_ids})
        publish(library)

    with opened(folder) as patient:
        before = patient.search("Lotte", 3)
        monkeypatch.setattr(IndexFiles, "publish", late)
        with opened(folder) as index:
            index.add([Document("late", "Lotte lives here.")])
        assert "late" in seen[0]
        assert patient.search("Lotte", 3) != before


def test_an_index_that_is_not_closed_leaves_no_open_files(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for place in (tmp_path / "index", None):
            index = Index(place, recipe="flat", embedder=HashEmbedder())
            index.build([Document("d", "Alma lives in Drava.")])
            index.search("Alma")
            library = index._reader.files()
            open_files = [weakref.ref(store) for store in (library.store, library.calls)]
            del index, library
            deadline = time.monotonic() + 10  # a worker thread may still be putting its last task away
            while any(found() for found in open_files) and time.monotonic() < deadline:
                gc.collect()
                time.sleep(0.01)
            assert not any(found() for found in open_files)
    assert [str(warning.message) for warning in caught] == []
    assert not (tmp_path / "index" / "index.sqlite-wal").exists()


def test_close_can_be_repeated_and_the_next_use_opens_again(folder, opened):
    index = opened(folder)
    first = index.search("Drava", 2)
    index.close()
    index.close()
    assert index.search("Drava", 2) == first
    index.close()
