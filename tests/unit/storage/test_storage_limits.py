"""Limits of a process, a user, a disk and a file system are named; what indexes take of disk, memory and descriptors; forks."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import time
import tracemalloc
from contextlib import closing

import pytest

from sire_core import Document
from sire_core.models.lexical_embedder import LexicalEmbedder
from support.indexes import indexed

EVERY_LIMIT = """
    import os, resource, sys
    from pathlib import Path
    from sire_core import Document
    from sire_core.errors import StorageError
    from sire_core.index import Index
    from sire_core.storage.check import check_folder
    from sire_core.testing.doubles import HashEmbedder
    folder, hard = Path(sys.argv[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    opened = lambda: Index(folder, recipe="raptor", embedder=HashEmbedder())
    actions = {
        "search": lambda index, n: index.search("Who lives in Drava 3?"),
        "documents": lambda index, n: index.documents(),
        "update": lambda index, n: index.update([Document("d1", f"Alma met Zora {n}.")]),
        "save": lambda index, n: index.save(folder.with_name(f"copy{n}")),
        "snapshot": lambda index, n: index.snapshot().search("Who lives in Drava 3?"),
        "check": lambda index, n: check_folder(folder),
    }
    for name, act in actions.items():
        with opened() as index:
            act(index, name)  # so that all modules are there
    for limit in range(len(os.listdir("/proc/self/fd")), 64):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        for name, act in actions.items():
            try:
                with opened() as index:
                    act(index, limit)
                print("done", name)
            except StorageError as error:
                print("too many open files" in str(error), name, error)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(check_folder(folder), len(opened().documents()))
"""


def test_at_every_limit_up_to_64_descriptors_it_works_or_says_why(folder, run):
    found = run(EVERY_LIMIT, folder)
    assert found.returncode == 0, found.stderr
    *said, last = found.stdout.splitlines()
    assert last == "[] 5"
    assert [line for line in said if line.startswith("False")] == []
    refusals = [line for line in said if line.startswith("True")]
    assert refusals
    assert all("ulimit -n" in line for line in refusals)
    assert {"done save", "done update", "done snapshot"} <= set(said[-6:])


ROUNDS = """
    import gc, os, sys, time
    from sire_core import Document
    from sire_core.index import Index
    from sire_core.testing.doubles import HashEmbedder
    descriptors = lambda: len(os.listdir("/proc/self/fd"))
    def settled(most):  # on a busy machine a thread may not have let go yet of what it has answered
        for _ in range(100):
            if descriptors() <= most:
                break
            time.sleep(0.02)
        return descriptors()
    def opened():
        return Index(sys.argv[1], recipe=sys.argv[2], embedder=HashEmbedder())
    reader = opened()
    with opened() as index:
        index.build([Document(f"d{n}", f"Alma {n} met Boris {n} in Ceuta. Alma {n} lives in Drava.") for n in range(9)])
    reader.search("Who met Boris?")
    gc.collect()
    gc.disable()  # nothing waits for the collector of cycles
    found = []
    for number in range(int(sys.argv[3])):
        with opened() as index:
            index.update([Document("d1", f"Alma 1 met Boris {number} in Ceuta.")])
            index.search("Who met Boris?")
        opened().search("Who met Boris?")
        reader.search("Who met Boris?")
        reader.snapshot().search("Who met Boris?")
        found.append(settled(found[4] + 4) if number > 4 else descriptors())
    print(found[4], max(found[5:]))
"""


@pytest.mark.parametrize("recipe", ["raptor", "sire", "smart", "iier", "pagerank"])
@pytest.mark.quick(recipe=["raptor", "iier"])
def test_descriptors_are_closed_at_once(tmp_path, run, recipe):
    """Of indexes that were closed, that nobody holds any more, and of snapshots, round after round."""
    found = run(ROUNDS, tmp_path / "ix", recipe, 15)
    assert found.returncode == 0, found.stderr
    first, most = map(int, found.stdout.split())
    assert most <= first + 4


AS_ANOTHER_USER = """
    import sys
    from pathlib import Path
    from sire_core import Document
    from sire_core.errors import SireError
    from sire_core.index import Index
    from sire_core.storage.check import check_folder
    from sire_core.testing.doubles import HashEmbedder
    folder = Path(sys.argv[1])
    for act in (
        lambda index: len(index.search("Who lives in Drava 3?", 2)),
        lambda index: index.update([Document("d1", "Alma met Zora.")]).updated,
        lambda index: [(finding.file, finding.problem) for finding in check_folder(folder)],
    ):
        try:
            print(act(Index(folder, recipe="raptor", embedder=HashEmbedder(), lock_timeout=0)))
        except SireError as error:
            print("error:", error)
"""


@pytest.mark.parametrize(
    ("closed", "mode", "answers"),
    [
        (".", 0o500, ("2", "Make the folder writable", "[]")),
        (".", 0o000, ("Check its permissions", "Check its permissions", "('.', 'it may not be read')")),
        (
            "index.sqlite",
            0o000,
            ("may read and write in it", "may read and write in it", "('index.sqlite', 'it may not"),
        ),
        (
            "calls.sqlite",
            0o000,
            ("may read and write in it", "may read and write in it", "('calls.sqlite', 'it may not be read')"),
        ),
        ("derived", 0o000, ("2", "Check the permissions of", "('derived', 'it may not be read')")),
    ],
)
def test_what_another_user_may_not_do_is_said(folder, run, closed, mode, answers):
    """As root without its right to pass over permissions; a user who is not root has none."""
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if prefix and shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    (folder / closed).chmod(mode)
    try:
        found = run(AS_ANOTHER_USER, folder, prefix=prefix)
    finally:
        (folder / closed).chmod(0o700)
    assert found.returncode == 0, found.stderr
    for line, answer in zip(found.stdout.splitlines(), answers, strict=True):
        assert answer in line


NO_LOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
static int refused(int command) { return command == F_SETLK || command == F_SETLKW || command == 37; }
#define WRAP(NAME) int NAME(int file, int command, ...) { \
    va_list list; va_start(list, command); void *value = va_arg(list, void *); va_end(list); \
    if (refused(command)) { errno = ENOLCK; return -1; } \
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #NAME); return real(file, command, value); }
WRAP(fcntl)
WRAP(fcntl64)
"""


@pytest.mark.slow  # SQLite waits half a minute, since it takes this for a lock of somebody else
def test_a_file_system_without_locks_is_told_so(folder, run, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "locks.c").write_text(NO_LOCKS)
    made = [compiler, "-shared", "-fPIC", "-O1", "-o", tmp_path / "locks.so", tmp_path / "locks.c", "-ldl"]
    if subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("the compiler makes no shared library")
    script = """
        import sys
        from sire_core.errors import StorageError
        from sire_core.index import Index
        from sire_core.testing.doubles import HashEmbedder
        for act in (lambda index: index.delete(["d3"]), lambda index: index.documents()):
            try:
                act(Index(sys.argv[1], recipe="raptor", embedder=HashEmbedder()))
            except StorageError as error:
                print(error)
    """
    import os

    found = run(script, folder, env={**os.environ, "LD_PRELOAD": str(tmp_path / "locks.so")})
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert len(lines) == 2
    assert all("file system" in line and "locks" in line for line in lines)


WORDS = "river mill bridge harbour tower market castle garden railway museum".split()


def passage(number: int) -> Document:
    sentences = [
        f"{WORDS[(number + place) % 10].title()} {number + place} was built near the {WORDS[place]} of Town {place} "
        f"and belonged to Person {number % 40} for {place + 3} years."
        for place in range(6)
    ]
    return Document(f"d{number}", " ".join(sentences), title=f"Place {number}")


def size_of(folder) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_passage_of_a_hundred_words_takes_at_most_fifteen_kilobytes_while_the_index_is_open_and_after(tmp_path):
    with indexed([passage(number) for number in range(400)], tmp_path / "index", recipe="sire"):
        sizes = [size_of(tmp_path / "index")]
    sizes.append(size_of(tmp_path / "index"))
    assert max(sizes) / 400 < 15 * 1024


def test_a_reader_delays_no_build_and_sees_its_state_until_it_lets_go_of_it(tmp_path):
    folder = tmp_path / "index"
    log = folder / "index.sqlite-wal"
    with indexed([passage(number) for number in range(20)], folder, recipe="sire") as index:
        with closing(sqlite3.connect(folder / "index.sqlite", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            before = reader.execute("SELECT count(*) FROM documents").fetchone()
            start = time.monotonic()
            index.add([passage(number) for number in range(20, 220)])
            assert time.monotonic() - start < 20  # SQLite would wait for 30 seconds
            assert reader.execute("SELECT count(*) FROM documents").fetchone() == before
        assert log.stat().st_size > 1 << 18
        assert index.search("Who owned Place 211?", 3)
        index.add([passage(220)])
        assert log.stat().st_size == 0
        assert index.stats()["documents"] == 221


def test_embedding_a_batch_takes_little_memory():
    texts = [passage(number).text.replace("built", f"built{number % 997}x{number}") for number in range(1500)]
    embedder = LexicalEmbedder().fit(texts[:200])
    tracemalloc.start()
    vectors = asyncio.run(embedder.embed(texts))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert vectors.shape == (1500, embedder.dimension)
    assert peak < 60e6


SCRIPT = """
import os, sys, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
from sire_core.index import Index
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document
index = Index(sys.argv[1], embedder=HashEmbedder())
def ids():
    return [hit.unit.id for hit in index.search("Who lives in Drava 3?", 4)]
expected = ids()
held = index.snapshot()
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert ids() == expected
            assert [hit.unit.id for hit in held.search("Who lives in Drava 3?", 4)] == expected
            if number == 2:
                index.add([Document("late", "Zelda rules Zadar.")])
                assert index.search("Zelda", 1)[0].doc_ids == ("late",)
            code = 0
        finally:
            os._exit(code)
    children.append(child)
    assert ids() == expected if number < 2 else True
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(codes, index.search("Zelda", 1)[0].doc_ids)
index.delete(["late"])
assert ids() == expected
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_index_that_is_open_before_a_fork_works_in_parent_and_children(folder, run):
    done = run(SCRIPT, folder)
    assert done.stdout.strip() == "[0, 0, 0] ('late',)", done.stderr
    assert done.stderr == ""
