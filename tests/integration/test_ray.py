"""Builds by Ray: a real cluster on this machine, and one of two nodes of which one is lost."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sire_core import Document, Index, UsageLimits
from sire_core.changes.runners import RayRunner, resolve_runner
from sire_core.data import demo_documents
from sire_core.errors import BuildError, ConfigurationError, LimitExceededError
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import ScriptedModel

pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster():
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield RayRunner(part_size=8)
    ray.shutdown()


def built(documents, path, recipe, **options):
    """Everything that an index holds."""
    with Index(path, recipe=recipe, **options) as index:
        index.build(documents)
    return read_contents(path)


@pytest.mark.parametrize(
    "recipe",
    ["sirerag", pytest.param("pagerank", marks=pytest.mark.slow), pytest.param("indexrag", marks=pytest.mark.slow)],
)
def test_ray_builds_the_same(cluster, tmp_path, recipe):
    documents = list(demo_documents())
    here = built(documents, tmp_path / "here", recipe)
    assert here.units
    assert here.vectors
    assert built(documents, tmp_path / "there", recipe, runner=cluster) == here


def test_ray_part_of_a_lost_worker_is_done_again(cluster, tmp_path):
    marker = tmp_path / "lost"

    def work(shared, part):
        if part == 3 and not marker.exists():
            marker.touch()
            os._exit(1)
        return shared + part

    async def everything():
        return {number: result async for number, result in cluster.map(work, 100, list(range(6)))}

    from sire_core.models.sync import run_sync

    assert run_sync(everything()) == {number: 100 + number for number in range(6)}
    assert marker.exists()


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


def test_ray_part_that_kills_every_worker_is_an_error_of_ours(cluster):
    def work(shared, part):
        os._exit(1)

    async def everything():
        return [found async for found in cluster.map(work, 0, [1])]

    from sire_core.models.sync import run_sync

    with pytest.raises(BuildError, match="build again"):
        run_sync(everything())


def build_by_ray(folder):
    with Index(folder, recipe="sirerag", runner=RayRunner(part_size=8)) as index:
        index.build(demo_documents())


@pytest.mark.slow
def test_ray_driver_is_killed_during_a_build(tmp_path):
    """The next build, without Ray, ends as if nothing had happened."""
    expected = built(list(demo_documents()), tmp_path / "here", "sirerag")
    code = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]; import test_ray; test_ray.build_by_ray(sys.argv[1])"
    for number, seconds in enumerate((4, 7, 11)):
        folder = tmp_path / str(number)
        process = subprocess.Popen([sys.executable, "-c", code, folder], stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        process.wait()
        assert built(list(demo_documents()), folder, "sirerag") == expected


def test_ray_errors_are_raised_as_they_are(cluster):
    def work(shared, part):
        raise ConfigurationError(f"{shared} {part}")

    async def everything():
        return [found async for found in cluster.map(work, "wrong", [1])]

    from sire_core.models.sync import run_sync

    with pytest.raises(ConfigurationError, match=r"^wrong 1$"):
        run_sync(everything())


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
    with Index(tmp_path / "index", **options) as index:
        index.build(documents)
    assert len(model.log) == len(documents)


def test_runner_texts():
    assert isinstance(resolve_runner("ray"), RayRunner)
    assert isinstance(resolve_runner("ray://host:10001"), RayRunner)
    with pytest.raises(ConfigurationError, match="ray://HOST:PORT"):
        resolve_runner("spark")


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
