"""What passages take on disk and in memory while they are indexed."""

import asyncio
import sqlite3
import time
import tracemalloc
from contextlib import closing

import pytest

from sire_core import Document, Index
from sire_core.derive import runners
from sire_core.models.lexical_embedder import LexicalEmbedder
from sire_core.recipes.smart import network
from sire_core.storage.calls import CallStore
from sire_core.storage.checksums import row_checksum

WORDS = "river mill bridge harbour tower market castle garden railway museum".split()


def passage(number: int) -> Document:
    sentences = [
        f"{WORDS[(number + place) % 10].title()} {number + place} was built near the {WORDS[place]} of Town {place} "
        f"and belonged to Person {number % 40} for {place + 3} years."
        for place in range(6)
    ]
    return Document(f"d{number}", " ".join(sentences), title=f"Place {number}")


def size_of(folder) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_passage_of_a_hundred_words_takes_at_most_fifteen_kilobytes_while_the_index_is_open_and_after(tmp_path):
    with Index(tmp_path / "index", recipe="sire") as index:
        index.build([passage(number) for number in range(400)])
        sizes = [size_of(tmp_path / "index")]
    sizes.append(size_of(tmp_path / "index"))
    assert max(sizes) / 400 < 15 * 1024


def test_a_reader_delays_no_build_and_sees_its_state_until_it_lets_go_of_it(tmp_path):
    folder = tmp_path / "index"
    log = folder / "index.sqlite-wal"
    with Index(folder, recipe="sire") as index:
        index.build([passage(number) for number in range(20)])
        with closing(sqlite3.connect(folder / "index.sqlite", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            before = reader.execute("SELECT count(*) FROM documents").fetchone()
            start = time.monotonic()
            index.add([passage(number) for number in range(20, 220)])
            assert time.monotonic() - start < 20  # SQLite would wait for 30 seconds
            assert reader.execute("SELECT count(*) FROM documents").fetchone() == before
        assert log.stat().st_size > 1 << 18
        assert index.search("Who owned Place 211?", 3)
        index.add([passage(220)])
        assert log.stat().st_size == 0
        assert index.stats()["documents"] == 221


def test_records_that_were_stored_as_text_are_still_known(tmp_path):
    documents = [passage(number) for number in range(3)]
    with Index(tmp_path / "index", recipe="sire") as index:
        index.build(documents)
        found = index.search("Who owned Place 2?", 3)
    with closing(CallStore(tmp_path / "index" / "calls.sqlite")) as calls:
        fingerprint = calls._db.read("SELECT fingerprint FROM records")[0][0]
        bodies = calls.bodies(fingerprint)
    assert len(bodies) == 3
    with closing(sqlite3.connect(tmp_path / "index" / "calls.sqlite")) as db, db:
        for name, body in bodies.items():
            row = (fingerprint, name, "ok", body.decode())
            db.execute("UPDATE records SET body=?, checksum=? WHERE hash=?", (row[3], row_checksum(row), name))
    (tmp_path / "index" / "index.sqlite").unlink()
    (tmp_path / "index" / "manifest.json").unlink()
    with Index(tmp_path / "index", recipe="sire") as index:
        assert index.build(documents).failures == ()
        assert index.search("Who owned Place 2?", 3) == found
    with closing(CallStore(tmp_path / "index" / "calls.sqlite")) as calls:
        assert calls.bodies(fingerprint) == bodies
        assert {type(body) for (body,) in calls._db.read("SELECT body FROM records")} == {str}  # none was made again


@pytest.mark.parametrize(("recipe", "times"), [("sire", 1), ("msrag", 1), ("smart", 2)])
def test_a_build_reads_records_in_parts(monkeypatch, recipe, times):
    documents = [passage(number) for number in range(20)]
    with Index(recipe=recipe) as index:
        index.build(documents)
        whole = index.search("Who owned Place 7?", 5)
    monkeypatch.setattr(runners, "_PART", 4)
    monkeypatch.setattr(network, "_BATCH", 4)
    asked = []
    read = CallStore.records
    monkeypatch.setattr(CallStore, "records", lambda *given: asked.append(len(given[2])) or read(*given))
    with Index(recipe=recipe) as index:
        index.build(documents)
        assert index.search("Who owned Place 7?", 5) == whole
    assert max(asked) == 4
    assert sum(asked) == 20 * times


def test_embedding_a_batch_takes_little_memory():
    texts = [passage(number).text.replace("built", f"built{number % 997}x{number}") for number in range(1500)]
    embedder = LexicalEmbedder().fit(texts[:200])
    tracemalloc.start()
    vectors = asyncio.run(embedder.embed(texts))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert vectors.shape == (1500, embedder.dimension)
    assert peak < 60e6
