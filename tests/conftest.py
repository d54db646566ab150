"""Fixtures of all tests."""

import gc
import json
import os
import random
import signal
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent


settings.register_profile("no deadline", deadline=None)  # what has to be fast has tests of its own
settings.load_profile("no deadline")


def pytest_configure() -> None:
    """A shell lets its background jobs ignore Ctrl-C, and their children too; tests send it to processes of theirs."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are collected: what is imported stays


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `quick`, the cases that the mark does not name are slow."""
    for item in items:
        mark = item.get_closest_marker("quick")
        if mark is not None and any(item.callspec.params[name] not in cases for name, cases in mark.kwargs.items()):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Collect garbage rarely, and never look at modules and tests, which stay to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session")
def sire_data():
    """Folder of the benchmark data, from SIRE_DATA (default: ../shared/data beside the repository)."""
    path = Path(os.environ.get("SIRE_DATA") or ROOT / ".." / "shared" / "data").resolve()
    if not path.is_dir():
        pytest.skip(f"no benchmark data in {path}; set SIRE_DATA")
    return path


@pytest.fixture(scope="session")
def question():
    from sire_core.data import demo_questions

    return demo_questions()[0].question


@pytest.fixture
def demo_set(tmp_path):
    """The demo corpus and its questions as a data set, in the folder `demo-set`."""
    from sire_core.data import demo_documents, demo_questions

    folder = tmp_path / "demo-set"
    folder.mkdir()
    fields = {
        "corpus": (demo_documents(), ("id", "title", "text")),
        "questions": (demo_questions(), ("id", "question", "answers", "supporting")),
    }
    for name, (items, keys) in fields.items():
        rows = [json.dumps({key: getattr(item, key) for key in keys}) + "\n" for item in items]
        (folder / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def postgres():
    """Address of a real PostgreSQL with pgvector, from the wheel `pgserver`."""
    pgserver = pytest.importorskip("pgserver", reason="pgserver has no wheel for this platform")
    # Run by root, it makes a user for the server with a command that only some shells find.
    os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    # Not in pytest's folder: every other pytest that starts closes that to other users, and root's server runs as one.
    found = pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    yield found.get_uri()
    found.cleanup()


@pytest.fixture(params=["postgres", "qdrant", "lance"])
def make_store(request, tmp_path):
    """Makes stores over the same empty table: of processes that know nothing of one another."""
    from sire_core.stores import LanceStore, PostgresStore, QdrantStore

    made, table = [], f"t{random.randrange(10**12)}"

    def postgres():
        made.append(PostgresStore(request.getfixturevalue("postgres"), table))
        return made[-1]

    def qdrant():
        client = pytest.importorskip("qdrant_client").QdrantClient
        made.append(QdrantStore(made[0]._client if made else client(":memory:"), table))
        return made[-1]

    def lance():
        pytest.importorskip("lancedb")
        return LanceStore(tmp_path / "lance", table)

    yield {"postgres": postgres, "qdrant": qdrant, "lance": lance}[request.param]
    for store in made:
        getattr(store, "close", lambda: None)()


@pytest.fixture(autouse=True)
def recipe_with_derived_units(request, monkeypatch):
    """Tests of how an index is built, kept up and shown want derived units: there the default is a recipe that has some.

    Tests of the default itself carry the mark `default_recipe`; whatever runs in a process of its own has the default.
    """
    if request.node.get_closest_marker("default_recipe") is None:
        monkeypatch.setattr("sire_core.recipes.registry.DEFAULT_RECIPE", "sirerag")
