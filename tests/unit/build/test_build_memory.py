"""How often the interpreter looks for cycles while an index is built, and how its arrays are allocated."""

import ctypes
import gc
import json
import subprocess
import sys

import pytest

from sire_core import Document, Index
from sire_core.testing.doubles import HashEmbedder


class Watching(HashEmbedder):
    """Notes the thresholds of the collector while it embeds."""

    seen = ()

    async def embed(self, texts, kind="document"):
        if kind == "document":
            self.seen = gc.get_threshold()
        return await super().embed(texts, kind)


@pytest.mark.parametrize("thresholds", [(700, 10, 10), (0, 10, 10), (50_000, 5, 5)])
def test_a_build_has_cycles_looked_for_rarely_and_puts_back_what_was_there(thresholds):
    embedder, before = Watching(), gc.get_threshold()
    gc.set_threshold(*thresholds)
    try:
        Index(embedder=embedder).build([Document("d", "The mill stands on the Marl.")])
        assert gc.get_threshold() == thresholds
    finally:
        gc.set_threshold(*before)
    rare = 0 < thresholds[0] < 20_000
    assert (embedder.seen == thresholds) != rare
    assert embedder.seen[0] == (20_000 if rare else thresholds[0])


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="asks glibc")
def test_large_arrays_of_a_large_build_are_given_back_one_by_one() -> None:
    # In a process of its own: in one that has freed large arrays before, others may come to lie in their place.
    said = subprocess.run([sys.executable, "-c", _ALLOCATING], check=True, timeout=60, capture_output=True, text=True)
    mapped, after = json.loads(said.stdout)["large"]
    assert (mapped >= 1 << 23, after) == (True, 0)
    mapped, after = json.loads(said.stdout)["small"]
    assert (mapped, after) == (0, 0)


_ALLOCATING = """
import ctypes, json
import numpy as np
from sire_core.build.builder import mapped_arrays

class Allocated(ctypes.Structure):
    # What glibc's `mallinfo2` answers; `mapped` are bytes of arrays that are mapped by themselves.
    _fields_ = [(name, ctypes.c_size_t) for name in ("a", "b", "c", "pieces", "mapped", "d", "e", "f", "g", "h")]

allocated = ctypes.CDLL(None).mallinfo2
allocated.restype = Allocated
found = {}
for build in ("large", "small"):
    np.ones(1 << 25, dtype=np.uint8)  # glibc maps only larger ones by themselves from now on
    with mapped_arrays(large=build == "large"):
        before = allocated().mapped
        array = np.ones(1 << 23, dtype=np.uint8)
        mapped = allocated().mapped - before
        del array
        found[build] = (mapped, allocated().mapped - before)
print(json.dumps(found))
"""
