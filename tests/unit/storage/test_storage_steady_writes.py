"""Searches while somebody writes: no search fails, waits for what another one prepares, or waits for the disk."""

import asyncio
import os
import shutil
import threading

import pytest

from sire_core.index import Index
from sire_core.reader import Reader
from sire_core.storage.pool import Pools
from sire_core.storage.store import Store
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document

ADD = """
import sys
from sire_core import Document, Index
from sire_core.testing.doubles import HashEmbedder
with Index(sys.argv[1], embedder=HashEmbedder()) as index:
    index.add([Document(name, f"Lotte rules Zadar, {name}.") for name in sys.argv[2:]])
"""


def found(index, question="Who is Lotte, who rules Zadar?"):
    return {doc for hit in index.search(question, 3) for doc in hit.doc_ids}


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_a_commit_after_every_look_at_the_index_makes_no_search_fail(where, tmp_path, monkeypatch):
    settings = {"recipe": "pagerank", "embedder": HashEmbedder()}
    index = Index(tmp_path / "index" if where == "folder" else None, **settings)
    index.build([Document(f"d{i}", f"Bela Kovac {i} met Bela Kovac {i + 1} in Ceuta.") for i in range(6)])
    writer = Index(tmp_path / "index", **settings) if where == "folder" else index
    numbers = iter(range(1000))

    async def change():
        await writer.aupdate([Document("d0", f"Bela Kovac 0 met Cili Toth {next(numbers)} in Ceuta.")])

    def followed_by_a_change(read):
        async def changed(reader, where):
            given = await read(reader, where)
            await change()
            return given

        return changed

    monkeypatch.setattr(Reader, "current", followed_by_a_change(Reader.current))
    monkeypatch.setattr(Reader, "snapshot", followed_by_a_change(Reader.snapshot))
    hold = Store.hold

    def late(store):
        asyncio.run(change())
        commit = hold(store)
        asyncio.run(change())
        return commit

    monkeypatch.setattr(Store, "hold", late)
    for ask in (
        lambda: index.search("Whom did Bela Kovac 3 meet?", 3),
        lambda: index.search_many(["Whom did Bela Kovac 3 meet?"], 3)[0],
        lambda: index.explain("Whom did Bela Kovac 3 meet?", 3),
        lambda: index.show("Whom did Bela Kovac 3 meet?", 3).hits,
    ):
        assert len(ask()) >= 3
        assert next(numbers) > 0
    index.close()
    writer.close()


@pytest.fixture
def preparing(folder, opened, run, monkeypatch):
    """A reader, one of whose threads is held up while it reads what another process has committed."""
    begun, go_on, seen = threading.Event(), threading.Event(), []
    index = opened(folder)
    before = found(index)
    assert run(ADD, folder, "late").returncode == 0
    get = Pools.get

    def slow(*given, **named):
        if not begun.is_set():
            begun.set()
            assert go_on.wait(30)
        return get(*given, **named)

    monkeypatch.setattr(Pools, "get", slow)
    first = threading.Thread(target=lambda: seen.append(found(index)))
    first.start()
    assert begun.wait(30)
    yield index, before, go_on, first, seen
    go_on.set()
    first.join()
    index.close()


def in_time(work, seconds):
    done = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    return done


def test_searches_go_on_with_the_state_before_while_one_reads_the_next(preparing):
    index, before, go_on, first, seen = preparing
    for _ in range(3):
        assert in_time(lambda: found(index), 20) == [before]
    go_on.set()
    first.join()
    assert "late" in seen[0]
    assert "late" in found(index)


@pytest.mark.parametrize("name", ["index", "link"])
def test_a_change_of_this_process_is_never_missed(preparing, folder, opened, name):
    index, _, go_on, _, _ = preparing
    folder.with_name("link").symlink_to(folder)
    with opened(folder.with_name(name)) as writer:
        writer.add([Document("own", "Lotte rules Zadar, too.")])
    assert in_time(lambda: found(index), 0.5) == []  # it waits
    go_on.set()
    assert {"late", "own"} <= found(index)


def test_another_folder_that_this_process_puts_there_is_never_missed(preparing, folder, run):
    index, _, go_on, first, _ = preparing
    shutil.copytree(folder, folder.with_name("copy"))
    assert run(ADD, folder.with_name("copy"), "other").returncode == 0
    folder.rename(folder.with_name("before"))
    folder.with_name("copy").rename(folder)
    searches = [threading.Thread(target=found, args=(index,)) for _ in range(2)]
    for search in searches:
        search.start()
        search.join(0.5)
        assert search.is_alive()  # it waits
    go_on.set()
    for search in (first, *searches):
        search.join()
    assert "other" in found(index)


def test_a_snapshot_of_a_folder_that_is_replaced_by_one_of_the_same_generation(tmp_path, opened, monkeypatch):
    for name in ("index", "other"):
        with opened(tmp_path / name, recipe="pagerank") as index:
            index.build([Document(f"d{i}", f"{name} {i} met Bela Kovac {i + 1} in Ceuta.") for i in range(6)])
    open_store = Store.__init__
    with opened(tmp_path / "index") as index:
        index.search("Ceuta", 1)

        def replaced(store, path=None):
            if (tmp_path / "other").exists():
                (tmp_path / "index").rename(tmp_path / "before")
                (tmp_path / "other").rename(tmp_path / "index")
            open_store(store, path)

        monkeypatch.setattr(Store, "__init__", replaced)
        hits = index.snapshot().search("Whom did Bela Kovac 3 meet in Ceuta?", 3)
    assert {hit.unit.text.split()[0] for hit in hits} == {"other"}


FORK = """
import os, sys, threading, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
from sire_core import Document, Index
from sire_core.storage.pool import Pools
from sire_core.testing.doubles import HashEmbedder
index, parent = Index(sys.argv[1], embedder=HashEmbedder()), os.getpid()
index.search("Who rules Zadar?", 1)
if os.fork() == 0:
    index.add([Document("late", "Lotte rules Zadar.")])
    os._exit(0)
os.wait()
begun, go_on, get = threading.Event(), threading.Event(), Pools.get
def slow(*given, **named):
    if os.getpid() == parent:
        begun.set()
        assert go_on.wait(60)
    return get(*given, **named)
Pools.get = slow
thread = threading.Thread(target=lambda: index.search("Who rules Zadar?", 1))
thread.start()
assert begun.wait(60)
child = os.fork()
if child == 0:
    for _ in range(3):  # else the thread that searches may pass for the one that is gone
        threading.Thread(target=go_on.wait, daemon=True).start()
    os._exit(0 if index.search("Who rules Zadar?", 1)[0].doc_ids == ("late",) else 3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go_on.set()
thread.join()
print(code)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_a_thread_reads_the_next_state(folder, run):
    done = run(FORK, folder)
    assert done.stdout.strip() == "0", done.stderr
