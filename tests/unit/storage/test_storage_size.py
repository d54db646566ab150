"""What passages take on disk and in memory while they are indexed."""

import asyncio
import sqlite3
import time
import tracemalloc
from contextlib import closing

from sire_core import Document, Index
from sire_core.models.lexical_embedder import LexicalEmbedder

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


def test_embedding_a_batch_takes_little_memory():
    texts = [passage(number).text.replace("built", f"built{number % 997}x{number}") for number in range(1500)]
    embedder = LexicalEmbedder().fit(texts[:200])
    tracemalloc.start()
    vectors = asyncio.run(embedder.embed(texts))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert vectors.shape == (1500, embedder.dimension)
    assert peak < 60e6
