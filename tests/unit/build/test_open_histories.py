"""Changes by one open index, and by others beside it: what it keeps in memory never differs from what is stored."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder

DOCUMENTS = list(demo_documents()[:16])
QUESTIONS = ("Who built the ferry Aldous Brack?", DOCUMENTS[0].title, DOCUMENTS[5].title, DOCUMENTS[12].title)
OTHER = Document(
    "other", "The ferry Aldous Brack was named after a commander. Mara Quell built it in 1903.", "Aldous Brack"
)
CHANGES = (
    lambda index: index.add([OTHER, *DOCUMENTS[6:9]]),
    lambda index: index.update(
        [replace(DOCUMENTS[1], text=OTHER.text), replace(DOCUMENTS[2], metadata={"year": 1903})]
    ),
    lambda index: index.delete(["other", DOCUMENTS[7].id]),
    lambda index: index.add([DOCUMENTS[7], replace(OTHER, id="again")]),
    lambda index: index.update([DOCUMENTS[1]]),
    lambda index: index.add(DOCUMENTS[9:]),
)


def opened(path, recipe):
    return Index(path, recipe=recipe, embedder=HashEmbedder())


def found(index):
    return [[(hit.unit.id, hit.score) for hit in index.search(question, 30)] for question in QUESTIONS]


@pytest.mark.quick(recipe=["sire"])
@pytest.mark.parametrize("recipe", ["sire", "pagerank"])
@pytest.mark.parametrize("alone", [True, False])
def test_an_open_index_follows_every_change(recipe, alone, tmp_path):
    with opened(tmp_path / "grown", recipe) as index:
        index.build(DOCUMENTS[:6])
        index.search(QUESTIONS[0])
        for number, change in enumerate(CHANGES):
            if alone or number % 2:
                change(index)
            else:
                with opened(tmp_path / "grown", recipe) as other:
                    change(other)
            left = index.documents()
            with opened(tmp_path / str(number), recipe) as fresh:
                fresh.build(left)
                assert found(index) == found(fresh), number
            grown, built = read_contents(tmp_path / "grown"), read_contents(tmp_path / str(number))
            assert list(grown.chunks.values()) == list(built.chunks.values())
            assert grown.units == built.units
            assert grown.vectors == built.vectors
            assert sorted(map(str, grown.edges)) == sorted(map(str, built.edges))


def test_what_a_caller_does_with_metadata_afterwards_changes_nothing(tmp_path):
    metadata = {"team": "red", "tags": ["a"]}
    with opened(tmp_path, "sire") as index:
        index.build(DOCUMENTS[:4])
        index.add([replace(OTHER, metadata=metadata)])
        metadata["team"] = "blue"
        metadata["tags"].append("b")
        index.add([DOCUMENTS[4]])
        kept = {document.id: document.metadata for document in index.documents()}
        assert kept["other"] == {"team": "red", "tags": ["a"]}
        assert index.update([replace(OTHER, metadata=metadata)]).updated == 1
        assert index.search(QUESTIONS[0], 1, filter="team == 'blue'")


def test_a_record_that_somebody_damages_is_made_again(tmp_path):
    many = [Document(f"d{i}", f"Alma met Boris in Ceuta {i}.") for i in range(1001)]  # so many are not looked up singly
    with opened(tmp_path, "sire") as index:
        index.build(many)
        index.add([OTHER])
        with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as db, db:
            (row,) = db.execute("SELECT hash, body FROM records LIMIT 1").fetchall()
            db.execute("UPDATE records SET body=? WHERE hash=?", (row[1][:-1], row[0]))
        index.add([DOCUMENTS[0]])
        with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as db:
            assert db.execute("SELECT body FROM records WHERE hash=?", row[:1]).fetchone()[0] == row[1]
