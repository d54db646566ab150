"""kill -9 while a user's vector store is written to, with hostile metadata: afterwards it finds what the scan finds."""

import os
import random
import subprocess
import sys
import time

import pytest

from sire_core import Document, Index
from sire_core.testing.doubles import HashEmbedder

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("SIRE_KILLS", "12"))
HOSTILE = {
    "it's": "'; DROP TABLE units; --",
    'a "quoted" key': '" OR 1=1 --',
    "a.b[0].$c": {"x": [1, {"y": None}], "": "\\u2028"},
    "\u0000": "\ud83d\ude00\u0000\u202e",
    "": [True, 1, 1.0, "1", None, []],
    "%s {x} \\": "%(id)s ${jndi} \\' \\\\",
    "long": "x" * 70_000,
    "big": 2**70,
    "id": "another",
    "vector": [0.0] * 9,
}
QUESTIONS = ("Who met Boris 7 in Ceuta?", "Where does Alma 3 live?", "mill")
FILTERS = (None, {"tenant": "a"}, {"it's": HOSTILE["it's"]}, {"big": HOSTILE["big"]}, {'a "quoted" key': '" OR 1=1 --'})


def documents(first, last):
    return [
        Document(
            f"d{n}'\";--\u00e9",
            f"Alma {n} met Boris {n} in Ceuta. Alma {n} lives in Drava.",
            f"Alma {n}",
            {"tenant": "ab"[n % 2], **(HOSTILE if n % 3 == 0 else {})},
        )
        for n in range(first, last)
    ]


def store_of(kind, place):
    from sire_core.stores import LanceStore, PostgresStore, QdrantStore

    if kind == "lance":
        return LanceStore(place, "units")
    if kind == "qdrant":
        from qdrant_client import QdrantClient

        return QdrantStore(QdrantClient(path=place), "units")
    return PostgresStore(place, "units_of_a_test")


def opened(folder, kind, place, **settings):
    return Index(
        folder, recipe="raptor", embedder=HashEmbedder(), chunker=None, store=store_of(kind, place) if place else None
    )


def change(folder, kind, place):
    """What is killed: additions, an update and a deletion, each followed by the store."""
    with opened(folder, kind, place) as index:
        for n in range(20, 60, 10):
            index.update(documents(n, n + 10))
        index.update([Document(document.id, f"{document.text} Again.") for document in documents(3, 6)])
        index.delete([document.id for document in documents(10, 15)], missing_ok=True)


def check(folder, kind, place):
    """Hits of the store and of the scan, for every filter, after the store got what it missed."""
    with opened(folder, kind, place) as index, opened(folder, kind, "") as alone:
        index.push()
        for question in QUESTIONS:
            for where in FILTERS:
                one, other = (
                    sorted(hit.unit.id for hit in i.search(question, 100, filter=where)) for i in (index, alone)
                )
                assert one == other, (question, where)


def spawn(act, *arguments):
    code = f"import sys; sys.path[:0] = [{os.path.dirname(__file__)!r}]; import {__name__.split('.')[-1]} as t; t.{act}(*sys.argv[1:])"  # noqa: PTH120
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stderr=subprocess.PIPE)


def finish(process):
    error = process.communicate(timeout=300)[1]
    assert process.returncode == 0, error.decode()[-3000:]


@pytest.mark.parametrize("kind", ["lance", "qdrant", "postgres"])
def test_a_killed_writer_leaves_a_store_that_catches_up(tmp_path, request, kind):
    pytest.importorskip({"lance": "lancedb", "qdrant": "qdrant_client", "postgres": "psycopg"}[kind])
    place = request.getfixturevalue("postgres") if kind == "postgres" else tmp_path / kind
    folder, rng = tmp_path / "ix", random.Random(kind)
    with opened(folder, kind, str(place)) as index:
        index.build(documents(0, 20))
        close = getattr(index._configuration.store, "close", None)
        getattr(getattr(index._configuration.store, "_client", None), "close", close or (lambda: None))()
    began = time.monotonic()
    finish(spawn("change", folder, kind, place))
    took, killed = time.monotonic() - began, 0
    finish(spawn("check", folder, kind, place))
    for _ in range(KILLS):
        with opened(folder, kind, "") as index:  # the store misses this, too
            index.build(documents(0, 20))
        process = spawn("change", folder, kind, place)
        time.sleep(rng.uniform(0.3, 1.0) * took)
        killed += process.poll() is None
        process.kill()
        process.communicate()
        finish(spawn("check", folder, kind, place))
    assert killed >= KILLS // 3
