"""`sire check` beside processes that change the index: no alarm. And damage is still one, also beside a writer."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from sire_core import Document, Index
from sire_core.storage.check import check_folder

pytestmark = pytest.mark.slow
CHECKS = int(os.environ.get("SIRE_CHECKS", "300"))
WRITER = """
import sys
from sire_core import Document, Index
from sire_core.errors import IndexLockedError

number, recipe = int(sys.argv[2]), sys.argv[3]
with Index(sys.argv[1], recipe=recipe, lock_timeout=60) as index:
    for turn in range(1_000_000):
        name = f"w{number}-{turn % 5}"
        index.update([Document(name, f"Alma {turn} met Boris {number} in Ceuta.", f"Title {turn}")])
        index.search("Who met Boris?", 3)
        print("ready" if turn == 0 else "", end="\\n" if turn == 0 else "", flush=True)
        if turn % 4 == 3:
            index.delete([name])
        if turn % 16 == 15:
            index.purge()
"""


@contextmanager
def writers(folder, recipe, number):
    command = [sys.executable, "-W", "ignore", "-c", WRITER, str(folder)]
    running = [
        subprocess.Popen([*command, str(one), recipe], stdout=subprocess.PIPE, text=True) for one in range(number)
    ]
    try:
        for one in running:
            assert one.stdout.readline() == "ready\n"
        yield running
        assert [one.poll() for one in running] == [None] * number, "a writer failed"
    finally:
        for one in running:
            one.kill()
            one.communicate()


@pytest.mark.parametrize(("recipe", "number"), [("flat", 2), ("sire", 1), ("raptor", 1)])
def test_a_check_beside_writers_finds_nothing(tmp_path, recipe, number):
    folder = tmp_path / "ix"
    with Index(folder, recipe=recipe) as index:
        index.build([Document(f"d{n}", f"Alma {n} met Boris {n} in Drava.", f"Title {n}") for n in range(40)])
    alarms, generations = [], set()
    with writers(folder, recipe, number):
        for turn in range(CHECKS // 3):
            alarms += [(turn, finding) for finding in check_folder(folder)]
            with Index(folder) as index:
                generations.add(index.stats()["generation"])
    assert alarms == []
    assert len(generations) > 1, "the writers stood still"


def test_damage_is_found_beside_a_writer(tmp_path):
    folder = tmp_path / "ix"
    with Index(folder, recipe="flat") as index:
        index.build([Document(f"d{n}", f"Alma {n} met Boris {n} in Drava.", f"Title {n}") for n in range(40)])
    (folder / "langchain.json").write_text('{"content": {"k": 3}, "checksum": 1}')
    with writers(folder, "flat", 1):
        for _ in range(5):
            assert [finding.file for finding in check_folder(folder)] == ["langchain.json"]
