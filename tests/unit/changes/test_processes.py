"""Builds in worker processes and by Ray: equal to one process, and nothing is left running, however they end."""

import asyncio
import operator
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sire_core import Document, Index, UsageLimits
from sire_core.arrays.lists import arrays_of
from sire_core.changes.processes import ProcessRunner
from sire_core.changes.runners import MIN_LETTERS, LocalRunner, RayRunner, resolve_runner
from sire_core.data import demo_documents
from sire_core.errors import BuildError, ConfigurationError, LimitExceededError
from sire_core.isolated import usable_cores
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import ScriptedModel
from support.indexes import indexed
from support.worker_builds import ScriptBuild, documents

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@pytest.fixture(scope="module")
def processes():
    runner = ProcessRunner(2, part_size=4)
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield RayRunner(part_size=8)
    ray.shutdown()


RUNNERS = ["processes", "cluster"]


@pytest.fixture(params=RUNNERS)
def runner(request):
    return request.getfixturevalue(request.param)


def results(runner, function, shared, parts):
    async def collect():
        return [result async for result in runner.map(function, shared, parts)]

    return asyncio.run(collect())


def evaluated(expression, **values):
    """Parts whose results are those of an expression in which `n` is the number of the part."""
    return eval, expression, [{"n": number, **values} for number in range(9)]


@pytest.mark.parametrize(
    ("kind", "recipe"),
    [
        *(("processes", "sire"), ("cluster", "sire"), pytest.param("processes", "sirerag", marks=pytest.mark.slow)),
        *(pytest.param("cluster", name, marks=pytest.mark.slow) for name in ("sirerag", "pagerank", "indexrag")),
    ],
)
def test_workers_build_what_one_process_builds(request, tmp_path, kind, recipe):
    texts = [*demo_documents(), *documents()[:10]]
    for name, works in (("here", "local"), ("there", request.getfixturevalue(kind))):
        with indexed(texts, tmp_path / name, recipe=recipe, runner=works) as index:
            index.search("Who built the Northern Wren?")
    assert read_contents(tmp_path / "there") == read_contents(tmp_path / "here")
    if recipe == "sire":
        views = [Index(tmp_path / name).snapshot().view for name in ("here", "there")]
        here, there = (arrays_of(EvidenceIndex.of(view)) for view in views)
        assert here.keys() == there.keys()
        assert all(np.array_equal(here[name], there[name]) for name in here)


def test_errors_are_raised_as_they_are(runner):
    with pytest.raises(ZeroDivisionError):
        results(runner, operator.truediv, 3, [1, 2, 0, 4])
    assert results(runner, operator.mul, 2, [4]) == [(0, 8)]


def test_results_come_in_order_and_objects_of_the_script_are_used_here(processes, caplog):
    runner = processes
    assert results(runner, operator.mul, 3, range(50)) == [(n, 3 * n) for n in range(50)]
    assert results(runner, lambda shared, part: shared + part, 1, [1, 2]) == [(0, 2), (1, 3)]
    assert "runs in this process" in caplog.text
    assert results(runner, operator.contains, 5, []) == []
    assert results(runner, operator.is_, None, [None, lambda: None])[0] == (0, True)


def test_part_of_a_lost_worker_is_done_again(runner, tmp_path):
    marker = tmp_path / "lost"
    die = "n if n != 3 or os.path.exists(marker) else (os.mkdir(marker), os._exit(9))"
    work = evaluated(die.replace("os.", "__import__('os')."), marker=str(marker))
    assert sorted(results(runner, *work)) == [(n, n) for n in range(9)]
    assert marker.exists()


@pytest.mark.quick(runner=["processes"])  # Ray takes seconds for another worker
def test_part_that_ends_every_worker_is_an_error(runner, monkeypatch):
    monkeypatch.setattr("sire_core.changes.runners._TRIES", 0)
    with pytest.raises(BuildError, match=r"SIRE_JOBS=1|build again"):
        results(runner, *evaluated("n if n != 3 else __import__('os')._exit(9)"))
    assert results(runner, operator.mul, 2, [4]) == [(0, 8)]


def test_a_task_that_was_cancelled_is_our_error(cluster):
    with pytest.raises(BuildError, match=r"TaskCancelledError.*build again"):
        results(cluster, *evaluated("exec('raise KeyboardInterrupt')"))


def test_build_stops_with_the_workers_that_cannot_go_on(tmp_path):
    with Index(tmp_path, runner=Dying(2, part_size=4)) as index, pytest.raises(BuildError, match="Nothing was changed"):
        index.build(demo_documents())
    with Index(tmp_path, recipe="sire") as index:
        assert index.build(demo_documents()).added == len(demo_documents())


class Dying(ProcessRunner):
    """A runner whose workers end over every part."""

    def map(self, function, shared, parts):
        del function, shared
        return super().map(eval, "__import__('os')._exit(9)", [{} for _ in range(len(parts))])


@on_linux
@pytest.mark.parametrize("how", ["Ctrl-C", "kill", "worker"])
def test_nothing_is_left_of_a_build_that_is_ended_or_loses_a_worker(tmp_path, how):
    """A script from standard input, which runs once; it goes on without the worker that was lost."""
    folder = tmp_path / "index"
    build = ScriptBuild(folder)
    workers = build.wait_for_workers()
    assert workers
    if how == "Ctrl-C":
        build.interrupt()
    else:
        os.kill(build.process.pid if how == "kill" else workers[0], signal.SIGKILL)
    out, error = build.process.communicate(timeout=300)
    assert build.ends_with_workers(10)
    assert out.split("\n")[:2] == ["script runs", "built 48" if how == "worker" else ""], error
    assert how != "Ctrl-C" or "KeyboardInterrupt" in error
    with indexed(documents(), folder, recipe="sire", runner="local") as index:
        assert index.search("Who built the Northern Wren?")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_process_builds_with_workers_of_its_own(processes, tmp_path):
    runner = processes
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
    assert isinstance(resolve_runner("ray"), RayRunner)
    assert isinstance(resolve_runner("ray://host:10001"), RayRunner)
    for name, advice in (("processes:some", "processes:N"), ("spark", "ray://HOST:PORT")):
        with pytest.raises(ConfigurationError, match=advice):
            resolve_runner(name)


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


def built(documents, path, recipe, **options):
    """Everything that an index holds."""
    indexed(documents, path, recipe=recipe, **options).close()
    return read_contents(path)


def kill_some(stop, killed):
    """Kill workers of this process's cluster, one after the other, until told to stop."""
    import psutil

    while not stop.wait(0.2):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if child.name().startswith("ray::_work"):
                    child.kill()
                    killed.append(child.pid)
                    break


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["sirerag", "sire", "smart"])
def test_ray_workers_are_killed_during_a_build(cluster, tmp_path, recipe):
    pytest.importorskip("psutil")
    documents = [replace(d, id=f"{d.id}-{copy}") for copy in range(6) for d in demo_documents()]
    here = built(documents, tmp_path / "here", recipe)
    stop, killed = threading.Event(), []
    killer = threading.Thread(target=kill_some, args=(stop, killed))
    killer.start()
    try:
        with suppress(BuildError):
            built(documents, tmp_path / "there", recipe, runner=cluster)
    finally:
        stop.set()
        killer.join()
    assert killed
    assert built(documents, tmp_path / "there", recipe, runner=cluster) == here


def build_by_ray(folder):
    indexed(demo_documents(), folder, recipe="sirerag", runner=RayRunner(part_size=8)).close()


@pytest.mark.slow
def test_ray_driver_is_killed_during_a_build(tmp_path):
    """The next build, without Ray, ends as if nothing had happened."""
    expected = built(list(demo_documents()), tmp_path / "here", "sirerag")
    code = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]; import test_processes; test_processes.build_by_ray(sys.argv[1])"
    for number, seconds in enumerate((4, 7, 11)):
        folder = tmp_path / str(number)
        process = subprocess.Popen([sys.executable, "-c", code, folder], stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        process.wait()
        assert built(list(demo_documents()), folder, "sirerag") == expected


@pytest.mark.slow
def test_ray_limits_hold_and_nothing_is_paid_twice(cluster, tmp_path):
    documents = list(demo_documents())[:20]
    model = ScriptedModel()
    options = {"recipe": "pagerank", "language_model": model, "runner": cluster, "chunker": None}
    with (
        Index(tmp_path / "index", limits=UsageLimits(max_calls=7), **options) as index,
        pytest.raises(LimitExceededError),
    ):
        index.build(documents)
    assert len(model.log) == 7
    indexed(documents, tmp_path / "index", **options).close()
    assert len(model.log) == len(documents)


@pytest.mark.slow
def test_ray_two_nodes_of_which_one_is_lost(tmp_path):
    import ray
    from ray.cluster_utils import Cluster

    documents = [
        replace(document, id=f"{document.id}-{copy}", title=f"{document.title} {copy}")
        for copy in range(12)
        for document in demo_documents()
    ]
    assert isinstance(documents[0], Document)
    ray.shutdown()  # the cluster of the tests before
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    lost = nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
    seen = []

    def progress(stage, done, total):
        seen.append((stage, done, total))
        if stage == "extraction" and 0 < done < total and len(nodes.worker_nodes):
            nodes.remove_node(lost, allow_graceful=False)

    try:
        assert len([node for node in ray.nodes() if node["Alive"]]) == 2
        runner = RayRunner(part_size=32)
        found = built(documents, tmp_path / "there", "sirerag", runner=runner, progress=progress)
        assert not nodes.worker_nodes
    finally:
        ray.shutdown()
        nodes.shutdown()
    assert len(seen) > 3
    assert found == built(documents, tmp_path / "here", "sirerag")


def test_ray_where_nobody_listens_is_said_at_once(tmp_path, monkeypatch):
    import ray

    ray.shutdown()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", place)
    for runner in ("ray", f"ray://{place}"):
        with (
            Index(tmp_path / "index", recipe="flat", runner=runner) as index,
            pytest.raises(ConfigurationError, match=rf"does not connect to the cluster at .*{place}.*RAY_AUTH_TOKEN"),
        ):
            index.build(list(demo_documents())[:3])
