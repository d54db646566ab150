"""kill -9 of workers and of the process that builds: before or after, nothing left running, and repeated to the end."""

import os
import random
import shutil
import signal
import sys
import time
from contextlib import closing, suppress

import pytest

from sire_core import Index
from sire_core.storage.check import check_folder
from sire_core.storage.index_files import IndexFiles
from sire_core.testing.contracts import read_contents
from support.worker_builds import ScriptBuild, documents

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")]
KILLS = int(os.environ.get("SIRE_KILLS", "25"))


def is_committed(folder):
    with closing(IndexFiles(folder)) as files:
        return files.manifest().generation > 0


def test_kills_leave_before_or_after_and_nothing_running(tmp_path):
    folder, rng = tmp_path / "index", random.Random(7)
    with Index(tmp_path / "whole", recipe="sire", runner="local") as index:
        index.build(documents())
    whole, finished = read_contents(tmp_path / "whole"), 0
    for _ in range(KILLS):
        build = ScriptBuild(folder)
        workers = build.wait_for_workers()
        time.sleep(rng.random() * 1.5)
        for process in rng.choices([*workers, build.process.pid], k=rng.randint(1, 2)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        out, error = build.process.communicate(timeout=600)
        assert build.ends_with_workers(), "a worker outlives the build"
        assert build.process.returncode == -signal.SIGKILL or "built" in out, error
        if is_committed(folder):
            assert check_folder(folder) == []
        if "built" in out:
            assert read_contents(folder) == whole
            shutil.rmtree(folder)
            finished += 1
    assert finished, "every build was killed: it should outlive its workers"
