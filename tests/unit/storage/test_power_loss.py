"""Power cuts: what was not put on disk by then is lost, kept or zeroed, block by block; the index is before or after.

The process under test runs with `tests/data/power_loss.c` in front of libc, so that what Python, numpy and SQLite do is
seen alike: every fsync of a file or folder is remembered, and the process ends at a chosen write, rename or fsync. Not
covered: a disk that lies about fsync, blocks that are damaged although they were on disk, and renames that a file system
carries out in part.
"""

import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sire_core import Document, Index
from sire_core.storage.check import check_folder
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from support.command import run_python

SOURCE = Path(__file__).parents[2] / "data" / "power_loss.c"
BLOCK = 512
DOCUMENTS = [Document(f"d{i}", f"Alma Kovac {i} met Boris Veld in Ceuta. Alma founded the mill {i}.") for i in range(6)]
OPERATIONS = {
    "build": "index.build([document('d0'), document('new')])",
    "add": "index.add([document('new')])",
    "update": "index.update([document('d0', 'Cyra Moss left Oslo.')])",
    "delete": "index.delete(['d0', 'd3'])",
    "purge": "index.delete(['d0', 'd3']); index.purge()",
}
SCRIPT = """
import os, sys
from sire_core.index import Index
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document
def document(name, text="Alma Kovac met Cyra Moss in Oslo."):
    return Document(name, text)
index = Index(sys.argv[1], recipe=sys.argv[2], embedder=HashEmbedder(), chunker=None)
{operation}
index.search("Who met Alma?")
print("acknowledged", flush=True)
os._exit(0)
"""

pytestmark = [pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="needs gcc on Linux")]


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    made = tmp_path_factory.mktemp("shim") / "power_loss.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl", "-lpthread"], check=True, timeout=60)
    return made


def opened(path, recipe="pagerank"):
    return Index(path, recipe=recipe, embedder=HashEmbedder(), chunker=None)


def built(path, recipe="pagerank"):
    with opened(path, recipe) as index:
        index.build(DOCUMENTS)
        index.search("Who met Alma?")
    return path


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return built(tmp_path_factory.mktemp("power") / "index")


@dataclass
class Cut:
    """A folder at the moment of a power cut, and what of it was on disk."""

    root: Path
    out: Path
    before: dict[int, bytes]
    listed: dict[int, dict[str, int]]
    acknowledged: bool

    def __post_init__(self):
        places = [self.root, *self.root.rglob("*")]
        self.now = {path.stat().st_ino: path for path in places}

    def durable(self, inode):
        kept = self.out / f"file.{inode}"
        return kept.read_bytes() if kept.exists() else self.before.get(inode)

    def entries(self, inode):
        kept = self.out / f"folder.{inode}"
        if kept.exists():
            lines = kept.read_text().splitlines()
            return {name: int(number) for number, _, name in (line.partition(" ") for line in lines)}
        return self.listed.get(inode, {})

    def image(self, target, rng):
        """A folder as it may be found when the power is back."""
        self._folder(self.root.stat().st_ino, target, rng)
        return target

    def _folder(self, inode, target, rng):
        target.mkdir()
        there = self.now.get(inode)
        now = {path.name: path.stat().st_ino for path in there.iterdir()} if there else {}
        kept = self.entries(inode)
        for name in sorted({*now, *kept}):
            chosen = rng.choice([now.get(name), kept.get(name)])
            if chosen is None:
                continue
            place = self.now.get(chosen)  # a number may be given again: what is there now says what it is
            gone = (self.out / f"folder.{chosen}").exists() or chosen in self.listed
            if place.is_dir() if place is not None else gone:
                self._folder(chosen, target / name, rng)
            else:
                (target / name).write_bytes(self._content(chosen, place, rng))

    def _content(self, inode, place, rng):
        kept = self.durable(inode) or b""
        now = place.read_bytes() if place is not None else kept
        if now == kept:
            return now
        size = rng.choice([len(now), len(kept), rng.randint(min(len(now), len(kept)), max(len(now), len(kept)))])
        share = rng.choice([0.0, 0.5, 1.0, rng.random()])
        found = bytearray()
        for start in range(0, size, BLOCK):
            block = now[start : start + BLOCK] if rng.random() < share else kept[start : start + BLOCK]
            found += block[: size - start].ljust(min(BLOCK, size - start), b"\0")
        return bytes(found)


def cut(shim, template, place, operation, at, recipe="pagerank"):
    """Run an operation until its `at`-th write, rename or fsync; 0 lets it end, and then the power goes."""
    root, out = place / "index", place / "out"
    shutil.copytree(template, root)
    out.mkdir()
    places = [root, *root.rglob("*")]
    before = {path.stat().st_ino: path.read_bytes() for path in places if path.is_file()}
    listed = {p.stat().st_ino: {c.name: c.stat().st_ino for c in p.iterdir()} for p in places if p.is_dir()}
    environment = {**os.environ, "LD_PRELOAD": str(shim), "POWER_ROOT": str(root), "POWER_OUT": str(out)}
    done = run_python(
        SCRIPT.format(operation=OPERATIONS[operation]),
        root,
        recipe,
        env={**environment, "POWER_AT": str(at)},
        timeout=300,
        check=False,
    )
    assert done.returncode in {0, 99}, done.stderr
    return Cut(root, out, before, listed, "acknowledged" in done.stdout)


def operations(found):
    return int.from_bytes((found.out / "operations").read_bytes(), sys.byteorder)


def contents(path, place):
    """What a folder holds; a copy is opened, since opening writes."""
    copy = shutil.copytree(path, place / "copy")
    found = read_contents(copy)
    shutil.rmtree(copy)
    return found.chunks, found.units, found.vectors


def states(found, before, after, images, place, rng):
    """What the images show that a power cut may leave: "before", "after" or "between"; each is searched and changed."""
    seen = []
    for number in range(images):
        image = found.image(place / f"image{number}", rng)
        shown = contents(image, place)
        seen.append("after" if shown == after else "before" if shown == before else "between")
        with opened(image) as index:
            index.search("Who met Alma?")
            index.add([Document("late", "Boris Veld was born in Izola.")])
            assert index.search("Izola", 1)[0].doc_ids == ("late",)
        assert check_folder(image) == []
    return seen


def test_a_power_cut_after_and_in_the_middle_of_a_change(shim, template, tmp_path):
    whole = cut(shim, template, tmp_path / "whole", "add", 0)
    assert whole.acknowledged
    assert operations(whole) > 30
    before, after = contents(template, tmp_path), contents(whole.root, tmp_path)
    assert states(whole, before, after, 3, tmp_path, random.Random(1)) == ["after"] * 3
    middle = cut(shim, template, tmp_path / "middle", "add", int(operations(whole) * 0.6))
    assert not middle.acknowledged
    (tmp_path / "cut").mkdir()
    assert set(states(middle, before, after, 3, tmp_path / "cut", random.Random(2))) <= {"before", "after"}


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_power_cuts_at_every_moment(shim, template, tmp_path, operation):
    rng = random.Random(operation)
    whole = cut(shim, template, tmp_path / "whole", operation, 0)
    before, after = contents(template, tmp_path), contents(whole.root, tmp_path)
    for at in sorted(rng.sample(range(1, operations(whole) + 1), 20)):
        place = tmp_path / str(at)
        place.mkdir()
        found = cut(shim, template, place, operation, at)
        allowed = {"after"} if found.acknowledged else {"before", "after"}
        assert set(states(found, before, after, 5, place, rng)) <= allowed
        shutil.rmtree(place)
