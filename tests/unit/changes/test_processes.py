"""Builds in worker processes: equal to one process, and nothing is left running, however they end."""

import asyncio
import operator
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from sire_core import Index
from sire_core.arrays.lists import arrays_of
from sire_core.changes.processes import ProcessRunner
from sire_core.changes.runners import MIN_LETTERS, LocalRunner, resolve_runner
from sire_core.data import demo_documents
from sire_core.errors import BuildError, ConfigurationError
from sire_core.isolated import usable_cores
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.testing.contracts import read_contents
from support.worker_builds import ScriptBuild, documents

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@pytest.fixture(scope="module")
def runner():
    runner = ProcessRunner(2, part_size=4)
    yield runner
    runner.close()


def results(runner, function, shared, parts):
    async def collect():
        return [result async for result in runner.map(function, shared, parts)]

    return asyncio.run(collect())


def evaluated(expression, **values):
    """Parts whose results are those of an expression in which `n` is the number of the part."""
    return eval, expression, [{"n": number, **values} for number in range(9)]


@pytest.mark.parametrize("recipe", ["sire", "sirerag"])
def test_workers_build_what_one_process_builds(runner, tmp_path, recipe):
    texts = [*demo_documents(), *documents()[:10]]
    for name, works in (("here", "local"), ("there", runner)):
        with Index(tmp_path / name, recipe=recipe, runner=works) as index:
            index.build(texts)
            index.search("Who built the Northern Wren?")
    assert read_contents(tmp_path / "there") == read_contents(tmp_path / "here")
    if recipe == "sire":
        views = [Index(tmp_path / name).snapshot().view for name in ("here", "there")]
        here, there = (arrays_of(EvidenceIndex.of(view)) for view in views)
        assert here.keys() == there.keys()
        assert all(np.array_equal(here[name], there[name]) for name in here)


def test_results_come_in_order_and_errors_as_they_were(runner):
    assert results(runner, operator.mul, 3, range(50)) == [(n, 3 * n) for n in range(50)]
    with pytest.raises(ZeroDivisionError):
        results(runner, operator.truediv, 3, [1, 2, 0, 4])
    assert results(runner, operator.mul, 2, [4]) == [(0, 8)]


def test_objects_of_the_script_are_used_here(runner, caplog):
    assert results(runner, lambda shared, part: shared + part, 1, [1, 2]) == [(0, 2), (1, 3)]
    assert "runs in this process" in caplog.text
    assert results(runner, operator.contains, 5, []) == []
    assert results(runner, operator.is_, None, [None, lambda: None])[0] == (0, True)


def test_part_of_a_lost_worker_is_done_again(runner, tmp_path):
    marker = tmp_path / "lost"
    die = "n if n != 3 or os.path.exists(marker) else (os.mkdir(marker), os._exit(9))"
    work = evaluated(die.replace("os.", "__import__('os')."), marker=str(marker))
    assert results(runner, *work) == [(n, n) for n in range(9)]
    assert marker.exists()


def test_part_that_ends_every_worker_is_an_error(runner):
    with pytest.raises(BuildError, match=r"SIRE_JOBS=1"):
        results(runner, *evaluated("n if n != 3 else __import__('os')._exit(9)"))
    assert results(runner, operator.mul, 2, [4]) == [(0, 8)]


def test_build_stops_with_the_workers_that_cannot_go_on(tmp_path):
    with (
        Index(tmp_path, runner=Dying(2, part_size=4)) as index,
        pytest.raises(BuildError, match="Nothing was changed"),
    ):
        index.build(demo_documents())
    with Index(tmp_path, recipe="sire") as index:
        assert index.build(demo_documents()).added == len(demo_documents())


class Dying(ProcessRunner):
    """A runner whose workers end over every part."""

    def map(self, function, shared, parts):
        del function, shared
        return super().map(eval, "__import__('os')._exit(9)", [{} for _ in range(len(parts))])


@on_linux
def test_script_from_standard_input_runs_once_and_leaves_nothing(tmp_path):
    build = ScriptBuild(tmp_path / "index")
    out, error = build.process.communicate(timeout=300)
    assert out.split("\n")[:2] == ["script runs", "built 48"], error
    assert build.ends_with_workers(10)


@on_linux
@pytest.mark.parametrize("how", ["Ctrl-C", "kill", "worker"])
def test_nothing_is_left_of_a_build_that_is_ended(tmp_path, how):
    folder = tmp_path / "index"
    build = ScriptBuild(folder)
    workers = build.wait_for_workers()
    assert workers
    if how == "Ctrl-C":
        build.interrupt()
    else:
        os.kill(build.process.pid if how == "kill" else workers[0], signal.SIGKILL)
    out, error = build.process.communicate(timeout=300)
    assert build.ends_with_workers()
    assert ("built 48" in out) is (how == "worker"), error
    assert how != "Ctrl-C" or "KeyboardInterrupt" in error
    with Index(folder, recipe="sire", runner="local") as index:
        index.build(documents())
        assert index.search("Who built the Northern Wren?")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_process_builds_with_workers_of_its_own(runner, tmp_path):
    assert results(runner, operator.mul, 2, [4]) == [(0, 8)]  # workers of this process run
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with Index(tmp_path, runner="processes:2") as index:
                code = 0 if index.build(demo_documents()).added else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert results(runner, operator.mul, 2, [4]) == [(0, 8)]


def test_number_of_processes(monkeypatch):
    monkeypatch.delenv("SIRE_JOBS", raising=False)
    assert isinstance(resolve_runner(None), LocalRunner)
    monkeypatch.setenv("SIRE_JOBS", "3")
    assert resolve_runner(None, MIN_LETTERS).jobs == 3
    assert resolve_runner("processes").jobs == 3
    assert resolve_runner("processes:5").jobs == 5
    assert isinstance(resolve_runner("local", MIN_LETTERS), LocalRunner)
    monkeypatch.setenv("SIRE_JOBS", "1")
    assert isinstance(resolve_runner(None, MIN_LETTERS), LocalRunner)
    monkeypatch.setenv("SIRE_JOBS", "many")
    with pytest.raises(ConfigurationError, match="SIRE_JOBS"):
        resolve_runner(None, MIN_LETTERS)
    with pytest.raises(ConfigurationError, match="processes:N"):
        resolve_runner("processes:some")


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/", {"sys/fs/cgroup/cpu.max": "150000 100000"}, 1),
        ("0::/a/b", {"sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "100000 100000"}, 1),
        (
            "4:cpuacct,cpu:/docker/x\n2:memory:/docker/x",
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
            1,
        ),
        ("0::/", {"sys/fs/cgroup/cpu.max": "max 100000"}, None),
        ("", {}, None),
    ],
)
def test_cores_are_those_of_the_container(tmp_path: Path, groups, files, cores):
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    all_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert usable_cores(tmp_path) == (cores or all_cores)
