"""An index whose notes another version of the package wrote, or nobody: what stands on them is made anew."""

import sqlite3
from contextlib import closing

import pytest

from sire_core.index import Index
from sire_core.recipes.base import REGISTRY
from sire_core.testing.contents import read_contents
from sire_core.testing.corpora import sample_corpus
from sire_core.testing.hash_embedder import HashEmbedder
from sire_core.testing.plain_extractor import PlainExtractor

SAMPLE = sample_corpus()[:9]
QUESTION = "Who founded the lighthouse?"


def index_at(path, recipe):
    return Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor())


@pytest.mark.parametrize("recipe", sorted(REGISTRY))
def test_an_index_without_notes_follows_a_change(tmp_path, recipe):
    path = tmp_path / "index"
    with index_at(path, recipe) as index:
        index.build(SAMPLE)
    with closing(sqlite3.connect(path / "index.sqlite")) as database, database:
        database.execute("DELETE FROM notes")
    with index_at(path, recipe) as index:
        index.delete([SAMPLE[4].id])
        found = index.search(QUESTION, 5)
    rest = [document for document in SAMPLE if document is not SAMPLE[4]]
    with index_at(tmp_path / "fresh", recipe) as fresh:
        fresh.build(rest)
        if recipe not in ("raptor", "smart"):  # their clusters are kept up rather than made anew
            assert found == fresh.search(QUESTION, 5)
    grown, wanted = read_contents(path), read_contents(tmp_path / "fresh")
    assert grown.chunks == wanted.chunks
    kinds = {unit.kind for unit in wanted.units.values()}
    assert {unit.kind for unit in grown.units.values()} == kinds
    if recipe not in ("raptor", "smart", "sirerag"):
        assert grown.units == wanted.units
        assert set(map(repr, grown.edges)) == set(map(repr, wanted.edges))
