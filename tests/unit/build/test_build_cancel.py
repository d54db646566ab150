"""Builds that are cancelled, and an event loop that stays responsive."""

import asyncio
import time

import pytest

from sire_core.errors import IndexLockedError
from sire_core.index import Index
from sire_core.storage.store import Store
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document

DOCUMENTS = [Document(f"d{i}", f"Alma lives in Drava {i}.") for i in range(4)]


@pytest.fixture
def slow_commit(monkeypatch):
    """Makes commits of the index take a while, and tells when one begins and ends."""
    steps, commit = [], Store.commit

    def slow(self, changes):
        steps.append("begin")
        time.sleep(0.4)
        commit(self, changes)
        steps.append("end")

    monkeypatch.setattr(Store, "commit", slow)
    return steps


async def reach(steps, step):
    while step not in steps:
        await asyncio.sleep(0.01)


async def test_a_cancelled_commit_ends_before_another_writer_may_begin(tmp_path, slow_commit):
    path = tmp_path / "index"
    index, other = (Index(path, recipe="flat", embedder=HashEmbedder(), lock_timeout=0) for _ in range(2))
    build = asyncio.create_task(index.abuild(DOCUMENTS))
    await reach(slow_commit, "begin")
    build.cancel()
    await asyncio.sleep(0)
    with pytest.raises(IndexLockedError):
        await other.aadd([Document("x", "X.")])
    with pytest.raises(asyncio.CancelledError):
        await build
    assert slow_commit == ["begin", "end"]
    await other.aadd([Document("x", "X.")])
    assert len(read_contents(path).units) == 5
    index.close()
    other.close()


async def test_the_event_loop_goes_on_while_the_index_commits(tmp_path, slow_commit):
    with Index(tmp_path / "index", recipe="flat", embedder=HashEmbedder()) as index:
        build = asyncio.create_task(index.abuild(DOCUMENTS))
        await reach(slow_commit, "begin")
        assert "end" not in slow_commit
        await build


async def test_a_build_that_is_cancelled_while_it_embeds_can_be_repeated(tmp_path):
    class Slow(HashEmbedder):
        async def embed(self, texts, kind="document"):
            await asyncio.sleep(30)
            return await super().embed(texts, kind)

    path = tmp_path / "index"
    with Index(path, recipe="flat", embedder=Slow()) as index, pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(index.abuild(DOCUMENTS), 0.2)
    with Index(path, recipe="flat", embedder=HashEmbedder()) as index:
        assert (await index.abuild(DOCUMENTS)).added == 4
