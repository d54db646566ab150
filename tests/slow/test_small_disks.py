"""First builds on disks that are too small: the error names the disk, nothing is called damaged, and more room is enough.

`SIRE_SMALL_DISKS=60` sets their number. Half of them are small tmpfs (which needs the right to mount), half a limit on
the size of files.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BUILD = """
import resource, signal, sys
from pathlib import Path
from sire_core import Document, Index
from sire_core.errors import SireError
from sire_core.testing.doubles import HashEmbedder, ScriptedModel

folder, limit, log = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])

class Counted(ScriptedModel):
    async def answer(self, request):
        with log.open("a") as lines:
            lines.write("call\\n")
        return await super().answer(request)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
documents = [Document(f"d{n}", f"Alma {n} met Boris {n} in Ceuta. " * 12, f"Title {n}") for n in range(30)]
model = Counted()
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with Index(folder, recipe="raptor", language_model=model, embedder=HashEmbedder()) as index:
        index.build(documents)
        assert len(index.documents()) == 30
        print("built", len(index.search("Whom did Alma 7 meet?", 3)))
except SireError as error:
    print("error", type(error).__name__, error)
"""
NAMES_DISK = re.compile(r"space|disk|room|File too large", re.IGNORECASE)
CALLS_DAMAGE = re.compile(r"damaged|delete|not what was written|no such table", re.IGNORECASE)


def build(folder: Path, limit: int, log: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUILD, folder, str(limit), log],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


@contextmanager
def tmpfs(place: Path, size: int):
    """A small file system, which `grow` makes large."""
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o"]
    mounted = subprocess.run([*options, f"size={size}", "sire", place], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield lambda: subprocess.run([*options, "remount,size=64m", "sire", place], check=True)
    finally:
        subprocess.run(["umount", place], check=True)


def check(folder: Path, limit: int, log: Path) -> str:
    said = build(folder, limit, log)
    if said.startswith("error"):
        assert NAMES_DISK.search(said), said
        assert not CALLS_DAMAGE.search(said), said
    return said


def finish(folder: Path, log: Path) -> None:
    """With room, the same build goes on: everything is built."""
    assert build(folder, 0, log) == "built 3"


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_first_builds_on_small_disks_name_the_disk(tmp_path):
    number, rng, failed = int(os.environ.get("SIRE_SMALL_DISKS", "60")), random.Random(7), 0
    for case in range(number):
        size = round(2 ** rng.uniform(12, 20.5))
        log = tmp_path / f"log{case}"
        if case % 2:
            folder = tmp_path / f"limit{case}"
            said = check(folder, size, log)
            finish(folder, log)
        else:
            with tmpfs(tmp_path / f"disk{case}", size) as grow:
                folder = tmp_path / f"disk{case}" / "ix"
                said = check(folder, 0, log)
                grow()
                finish(folder, log)
        failed += said.startswith("error")
        shutil.rmtree(folder, ignore_errors=True)
        print(case, "limit" if case % 2 else "tmpfs", size, said[:160])  # noqa: T201
    print(f"{failed} of {number} first builds met a full disk; all were said as such")  # noqa: T201
    assert failed > number // 3
