"""Derived files and stored arrays that were forged, with right checksums: an error of ours or nothing, never another one.

`SIRE_FORGED=1000` sets the number of derived files.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import tracemalloc
import zlib
from collections import Counter
from contextlib import closing

import pytest

from sire_core import Document, Index
from sire_core.errors import SireError
from sire_core.extraction.record import read_records
from sire_core.recipes import REGISTRY
from sire_core.storage.array_file import ARRAYS_FILE, pack_arrays, unpack_arrays
from sire_core.storage.call_cache import CallStore
from sire_core.storage.checksums import row_checksum
from sire_core.testing.doubles import HashEmbedder

pytestmark = pytest.mark.slow
FORGED = int(os.environ.get("SIRE_FORGED", "1000"))
WAYS = ("bits", "zeros", "cut", "longer", "header", "values")


def forge(file, rng: random.Random) -> None:
    """Change a file, and its checksum so that it fits."""
    content, way = bytearray(file.read_bytes()), rng.choice(WAYS)
    if way == "values" and file.name == ARRAYS_FILE:
        arrays = unpack_arrays(bytes(content))
        flat = arrays[rng.choice(sorted(arrays))].reshape(-1)
        for _ in range(3 if flat.size and flat.dtype.kind in "iuf" else 0):
            flat[rng.randrange(flat.size)] = rng.choice((0, 7, 255 if flat.dtype.kind == "u" else -1))
        content = bytearray(pack_arrays(arrays))
    elif way == "cut":
        content = content[: rng.randrange(len(content))]
    elif way == "longer":
        content += bytes(rng.randrange(1, 500))
    elif way == "zeros":
        start = rng.randrange(len(content))
        content[start : start + 64] = bytes(len(content[start : start + 64]))
    else:
        for _ in range(4):
            place = rng.randrange(min(128, len(content)) if way == "header" else len(content))
            content[place] ^= 1 << rng.randrange(8)
    file.write_bytes(bytes(content))
    known = file.with_name("checksums.json")
    noted = json.loads(known.read_text())
    noted["files"][file.name] = [len(content), zlib.crc32(bytes(content))]
    known.write_text(json.dumps(noted))


def actions(index: Index):
    yield lambda: index.search("Who founded the mill in Drava 3?", 10)
    yield lambda: index.search("Kovac", 5, filter="tenant=a")
    yield lambda: index.search("Kovac", 5, filter="title=Title 3", returns="units")
    yield index.stats
    yield lambda: index.explain("Who founded the mill?", 3)
    yield lambda: index.snapshot(filter="tenant=a").metadata()
    yield lambda: index.add([Document("new", "Zora lives in Drava 3.")])
    yield lambda: index.search("Zora", 3)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("built")
    for recipe in sorted(REGISTRY):
        size = 150 if recipe == "sire" else 24  # large enough for the files that only large indexes have
        documents = [
            Document(
                f"{'ab'[n % 2]}{n}",
                f"Bela Kovac {n} was born in Drava {n}. She founded the mill of Lindle {n % 3} in 19{n:02d}.",
                f"Title {n}",
                {"tenant": "ab"[n % 2]},
            )
            for n in range(size)
        ]
        with Index(place / recipe, recipe=recipe, embedder=HashEmbedder()) as index:
            index.build(documents[:-4])
            index.add(documents[-4:])
            index.search("Who founded the mill in Drava 3?", 10)
            index.search("Kovac", 5, filter="tenant=a")
    return place


def test_forged_derived_files_raise_nothing_foreign(built, tmp_path):
    logging.getLogger("sire_core").setLevel(logging.ERROR)
    rng, foreign, ours = random.Random(11), Counter(), 0
    recipes = sorted(REGISTRY)
    for case in range(FORGED):
        recipe, copy = recipes[case % len(recipes)], tmp_path / "copy"
        shutil.copytree(built / recipe, copy)
        files = [f for f in sorted(copy.glob("derived/**/*")) if f.is_file() and f.name != "checksums.json"]
        victim = rng.choice(files)
        forge(victim, rng)
        with Index(copy, recipe=recipe, embedder=HashEmbedder()) as index:
            for action in actions(index):
                try:
                    action()
                except SireError:  # noqa: PERF203 - each action by itself
                    ours += 1
                except Exception as error:  # noqa: BLE001 - which one is what is counted
                    foreign[recipe, victim.name, type(error).__name__] += 1
        shutil.rmtree(copy)
    print(f"{FORGED} forged files, {ours} errors of ours, {sum(foreign.values())} others: {dict(foreign)}")  # noqa: T201
    assert not foreign


def test_what_is_stored_unpacks_within_bounds(tmp_path):
    with closing(CallStore(tmp_path / "calls.sqlite")) as calls:
        rows = {"fitted": ("embedder:x", b"no arrays"), "records": ("m", "h", "ok", zlib.compress(bytes(600 << 20)))}
        for table, row in rows.items():
            with calls.transaction() as connection:
                marks = ",".join("?" * (len(row) + 1))
                connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*row, row_checksum(row)))
        tracemalloc.start()
        assert calls.fitted("embedder:x") is None
        with pytest.raises(SireError, match=r"move it away and keep it"):
            read_records(calls.bodies("m", ["h"]))
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
        tracemalloc.stop()
