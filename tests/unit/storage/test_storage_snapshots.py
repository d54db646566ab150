"""What a snapshot reads is of one generation, however late it reads it and whatever is committed meanwhile."""

import gc
import time
from contextlib import suppress

import pytest

from sire_core.errors import IndexLockedError, SnapshotExpiredError
from sire_core.index import Index
from sire_core.recipes import REGISTRY
from sire_core.storage.store import Store
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document

QUESTIONS = ["Where was the founder of the Amber mill born?", "Who met Bela Kovac 3?", "Ceuta"]
DOCUMENTS = [
    Document(
        f"d{i}",
        f"Bela Kovac {i} was born in Drava {i % 4}. Bela Kovac {i} met Bela Kovac {(i + 1) % 12} in Ceuta in 19{i:02}. "
        f"Bela Kovac {i} founded the Amber mill {i % 3}.",
        title=f"Bela Kovac {i}",
    )
    for i in range(12)
]


def answers(source):
    return [[(hit.unit.id, round(hit.score, 5), hit.path) for hit in source.search(q, 10)] for q in QUESTIONS]


def change(index):
    index.delete([f"d{i}" for i in range(0, 12, 2)])
    index.add(
        [Document("new", "Bela Kovac 3 met Cili Toth in Drava 9. Cili Toth founded the Amber mill 7.", "Cili Toth")]
    )


def purged(writer, seconds=10.0):
    """Purge; a worker thread may let go of the snapshot a moment later than this one."""
    for _ in range(int(seconds / 0.05)):
        with suppress(IndexLockedError):
            return writer.purge()
        time.sleep(0.05)
        gc.collect()
    return writer.purge()


@pytest.mark.quick(recipe=["iier", "sire", "smart"])
@pytest.mark.parametrize("recipe", sorted(REGISTRY))
def test_a_snapshot_searched_after_a_change(tmp_path, recipe):
    settings = {"recipe": recipe, "embedder": HashEmbedder()}
    with Index(tmp_path / "index", **settings) as index:
        index.build(DOCUMENTS)
        expected = answers(index)
    with Index(tmp_path / "index", **settings) as index, Index(tmp_path / "index", **settings) as writer:
        snapshot = index.snapshot()  # nothing of it is read yet
        change(writer)
        assert answers(snapshot) == expected
        assert answers(index) == answers(writer)
        assert answers(snapshot) == expected
        del snapshot
        gc.collect()
        purged(writer)  # nobody holds what was deleted any more


@pytest.mark.parametrize("recipe", ["pagerank", "iier", "raptor"])
def test_a_snapshot_in_memory_is_right_or_says_that_it_expired(recipe):
    with Index(recipe=recipe, embedder=HashEmbedder()) as index:
        index.build(DOCUMENTS)
        before, snapshot = answers(index.snapshot()), index.snapshot()
        change(index)
        try:
            assert answers(snapshot) == before
        except SnapshotExpiredError as expired:
            pytest.fail(f"what was read before is kept: {expired}")
        late = index.snapshot()
        index.add([Document("later", "Dora Nagy met Bela Kovac 5.")])
        if recipe == "raptor":
            assert answers(late)
        else:
            with pytest.raises(SnapshotExpiredError, match="Take a new one"):
                answers(late)


@pytest.mark.parametrize("reading", ["chunks", "chunks_of"])
def test_documents_are_of_one_generation(tmp_path, monkeypatch, reading):
    """A commit between what is read of documents and of their passages."""
    old, new = (Document("d", f"{word} text.", f"{word} title", {"word": word}) for word in ("Old", "New"))
    settings = {"recipe": "flat", "embedder": HashEmbedder()}
    with Index(tmp_path / "index", **settings) as first:
        first.build([old])
    with Index(tmp_path / "index", **settings) as index, Index(tmp_path / "index", **settings) as writer:
        read = getattr(Store, reading)

        def chunks(store, *documents):
            monkeypatch.setattr(Store, reading, read)
            writer.update([new])
            return read(store, *documents)

        monkeypatch.setattr(Store, reading, chunks)
        (given,) = index.documents(None if reading == "chunks" else "d")
        assert (given.title, given.metadata, given.chunks) == (old.title, old.metadata, (old.text,))
        (given,) = index.documents("d")
        assert (given.title, given.metadata, given.chunks) == (new.title, new.metadata, (new.text,))
