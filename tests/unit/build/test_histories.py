"""Histories of changes end as a build of what is left."""

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import cycle

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.evaluate.datasets import load_dataset
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import UnitKind

OF_VECTORS = (UnitKind.SIM_SUMMARY, UnitKind.REL_SUMMARY, UnitKind.REPORT)
"""Clusters follow a change where it happens; the embedder learns again when the corpus has doubled."""
RECIPES = ("indexrag", "pagerank", "msrag", "iier", "sirerag", "hipporag2", "linearrag", "sire", "smart")
OTHER = Document(
    "other", "The ferry Aldous Brack was named after a commander. Mara Quell built it in 1903.", "Aldous Brack"
)


def corpus(name, request):
    if name == "demo":
        return list(demo_documents()[:16])
    folder = request.getfixturevalue("sire_data") / "2wikimultihopqa"
    return list(load_dataset(folder).documents[:60])


def grow(path, documents, recipes):
    """Slices, updates and deletes, under the recipes of the folder in turn; and what is there in the end."""
    third = len(documents) // 3
    changes = [
        lambda index: index.add(documents[third : 2 * third]),
        lambda index: index.update([replace(documents[1], text=OTHER.text)]),
        lambda index: index.add([OTHER, *documents[2 * third :]]),
        lambda index: index.update([documents[1]]),
        lambda index: index.delete(["other", *[document.id for document in documents[3::5]]]),
        lambda index: index.add([documents[3]]),
    ]
    for name in recipes:
        with Index(path, recipe=name) as index:
            index.build(documents[:third])
    for name, change in zip(cycle(recipes), changes, strict=False):
        with Index(path, recipe=name) as index:
            change(index)
    with Index(path) as index:
        order = [document.id for document in index.documents()]
    known = {document.id: document for document in documents}
    return [known[name] for name in order]


def edges(contents):
    """Edges but for those that follow vectors, with what says so."""
    kept = [edge for edge in contents.edges if edge.kind != "child"]
    return Counter(
        (edge.kind, edge.source, edge.target, edge.metadata.get("structural"), edge.metadata.get("keywords"))
        for edge in kept
        if edge.kind != "interacts" or set(edge.metadata) - {"similarity", "near"}
    )


@pytest.mark.default_recipe
@pytest.mark.parametrize(
    ("name", "recipes"),
    [
        ("demo", ("msrag", "iier", "hipporag2", "linearrag")),
        pytest.param("demo", RECIPES, marks=pytest.mark.slow),
        pytest.param("2wiki", RECIPES, marks=[pytest.mark.data, pytest.mark.slow]),
    ],
)
def test_what_grew_equals_what_is_built_at_once(name, recipes, request, tmp_path):
    left = grow(tmp_path / "grown", corpus(name, request), recipes)
    for recipe in recipes:
        with Index(tmp_path / "fresh", recipe=recipe) as index:
            index.build(left)
    with Index(tmp_path / "grown") as index:
        index.reembed(tmp_path / "again", "lexical")
    for recipe in recipes:
        grown, fresh, again = (read_contents(tmp_path / path, recipe) for path in ("grown", "fresh", "again"))
        exact = [kind for kind in UnitKind if kind not in OF_VECTORS]
        assert grown.said(*exact) == fresh.said(*exact), recipe
        ids = [{unit.id for unit in found.units.values() if unit.kind in exact} for found in (grown, fresh)]
        assert ids[0] == ids[1], recipe
        if recipe != "smart":  # its reports stand on clusters, and mention entities
            assert edges(grown) == edges(fresh), recipe
        # Written anew, it is in everything what a build at once makes: clusters, reports and vectors too.
        assert again.units == fresh.units, recipe
        assert again.vectors == fresh.vectors, recipe
        assert sorted(map(str, again.edges)) == sorted(map(str, fresh.edges)), recipe


DOCUMENTS = list(demo_documents()[:16])
QUESTIONS = ("Who built the ferry Aldous Brack?", DOCUMENTS[0].title, DOCUMENTS[5].title, DOCUMENTS[12].title)


def opened(path, recipe):
    return Index(path, recipe=recipe, embedder=HashEmbedder())


def found(index):
    return [[(hit.unit.id, hit.score) for hit in index.search(question, 30)] for question in QUESTIONS]


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
