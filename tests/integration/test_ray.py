"""Builds by Ray: a real cluster on this machine, and one of two nodes of which one is lost."""

import os
import socket
from dataclasses import replace

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.derive.runners import RayRunner, resolve_runner
from sire_core.errors import ConfigurationError, LimitExceededError
from sire_core.models.usage import UsageLimits
from sire_core.testing.contents import read_contents
from sire_core.testing.scripted_model import ScriptedModel

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
