"""A pool that follows commits is the pool that the store would give."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sire_core.index import Index
from sire_core.recipes import raptor, sirerag
from sire_core.storage import derived
from sire_core.storage import pool as pools
from sire_core.storage.pool import _ARRAYS, Pool, updated
from sire_core.testing.doubles import HashEmbedder, PlainExtractor
from sire_core.types import Document

NAMES = ["Alma", "Boris", "Ceuta", "Drava"]
DOCUMENTS = st.builds(
    Document,
    id=st.sampled_from([f"d{i}" for i in range(9)]),
    text=st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 3)).map(
        "{0[0]} met {0[1]} {0[2]}.".format
    ),
    title=st.sampled_from(["", "Alma"]),
    metadata=st.sampled_from([{}, {"tenant": "red"}]),
)
CORPORA = st.lists(DOCUMENTS, max_size=9, unique_by=lambda document: document.id)


def content(pool):
    arrays = {name: (getattr(pool, name).shape, getattr(pool, name).tolist()) for name in ("matrix", *_ARRAYS)}
    return arrays, pool.matrix.dtype, bytes(pool.rows), pool.documents, pool.titles, json.loads(pool.metadata)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(["build", "update"]), CORPORA), min_size=2, max_size=4))
def test_following_equals_deriving(steps):
    followed = []

    def checked(pool, change, owners):
        found = updated(pool, change, owners)
        if found is not None:
            followed.append(found.in_memory())
        return found

    before, pools.updated = pools.updated, checked
    try:
        with Index(recipe=sirerag(variant="B"), embedder=HashEmbedder(), extractor=PlainExtractor()) as index:
            for action, documents in steps:
                getattr(index, action)(documents)
                index.search("Who met Alma?", 3)
                files = index._reader.files()
                generation = files.manifest().generation
                if followed and followed[-1].generation == generation:
                    made = Pool.make(files.store, files.manifest().find(None).owners, generation)
                    assert content(followed[-1]) == content(made)
    finally:
        pools.updated = before


@pytest.mark.parametrize("damaged", ["", "matrix.npy", "rows.bin", "ids.npy"])
def test_checksums_of_what_is_copied_are_those_of_what_was_written(tmp_path, monkeypatch, damaged):
    for module in (derived, pools):
        monkeypatch.setattr(module, "BLOCK", 256)
    documents = [Document(f"d{i}", f"{NAMES[i % 4]} met {NAMES[i % 3]} {i}.") for i in range(60)]
    with Index(tmp_path / "a", recipe="flat", embedder=HashEmbedder()) as index:
        index.build(documents[:50])
        index.search("Who met Alma?")
        if damaged:  # by a disk: nobody wrote to it
            (file,) = (tmp_path / "a" / "derived").glob(f"*-1/{damaged}")
            status, body = file.stat(), bytearray(file.read_bytes())
            body[700] ^= 1
            with file.open("r+b") as target:
                target.write(body)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        index.add(documents[50:])
    with Index(tmp_path / "a", recipe="flat", embedder=HashEmbedder()) as index:  # another process
        index.search("Who met Alma?")
        files = index._reader.files()
        built = files.manifest().find(None)
        pool = files.pools.get(files.store, built, 2)
        assert pool.files is not None
        assert content(pool) == content(Pool.make(files.store, built.owners, 2))


def test_new_vectors_of_what_stays_are_read_from_the_store():
    with Index(recipe=raptor()) as index:
        index.build([Document(f"d{i}", f"The number {i} stands in town {i}.") for i in range(6)])
        index.search("town", 3)
        index.add([Document(f"e{i}", f"The river {i} runs by hill {i}.") for i in range(6)])  # fits the embedder again
        hits = index.search("The river 3 runs by hill 3.", 1)
        assert hits[0].unit.text == "The river 3 runs by hill 3."
        assert hits[0].score > 0.99
