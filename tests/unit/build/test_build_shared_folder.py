"""Several recipes in one folder, and an embedder that learns."""

import pickle

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.models.lexical_embedder import LexicalEmbedder
from sire_core.recipes import flat, raptor, sirerag
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, PlainExtractor

DOCUMENTS = list(demo_documents())


def index_at(path, recipe, extractor=None, **options):
    return Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=extractor or PlainExtractor(), **options)


def test_the_first_recipe_stays_the_default_until_another_is_made_it_and_names_choose(tmp_path):
    path = tmp_path / "a"
    for recipe in (flat(), raptor(depth=1), raptor(depth=2)):
        with index_at(path, recipe) as index:
            index.build(DOCUMENTS)
    with index_at(path, None) as index:
        assert index.stats()["recipe"] == "flat"
        assert index.stats()["recipes"] == ["flat", "raptor"]
    with index_at(path, "raptor") as index:
        index.add([Document("more", "One more passage.")])
        levels = {hit.unit.level for hit in index.search("harbor", 1000, returns="units")}
    assert levels == {0, 1, 2}
    with index_at(path, raptor(depth=1)) as index:
        assert {hit.unit.level for hit in index.search("harbor", 1000, returns="units")} == {0, 1}


def test_the_default_may_be_changed_and_survives_changes_and_copies(tmp_path):
    path = tmp_path / "a"
    with index_at(path, flat()) as first:
        first.build(DOCUMENTS)
    with index_at(path, raptor()) as other:
        other.build(DOCUMENTS)
        with pytest.raises(ConfigurationError, match="does not hold 'pagerank'"):
            other.set_default_recipe("pagerank")
        other.set_default_recipe("raptor")
    with index_at(path, "flat") as named:
        named.add([Document("more", "One more passage.")])
        named.build(DOCUMENTS)
        named.reembed(tmp_path / "copy", HashEmbedder(32))
    for place in (path, tmp_path / "copy"):
        with Index(place, embedder=HashEmbedder(64 if place == path else 32)) as index:
            assert index.stats()["recipe"] == "raptor"
            assert index.stats()["recipes"] == ["raptor", "flat"]


def test_an_open_index_keeps_the_recipe_that_it_began_with(tmp_path):
    path = tmp_path / "a"
    with index_at(path, flat()) as first:
        first.build(DOCUMENTS)
    with index_at(path, None) as opened, index_at(path, "raptor") as named:
        before = opened.search("harbor", 5)
        with index_at(path, raptor(depth=1)) as beside:
            beside.build(DOCUMENTS)
        depth_1 = named.search("harbor", 1000, returns="units")
        for recipe in (raptor(depth=2), flat(ranker="bm25")):
            with index_at(path, recipe) as beside:
                beside.build(DOCUMENTS)
        assert opened.stats()["recipe"] == opened.recipe_name == "flat"
        assert opened.search("harbor", 5) == before
        assert named.search("harbor", 1000, returns="units") == depth_1
        assert pickle.loads(pickle.dumps(opened)).search("harbor", 5) == before
        with index_at(path, raptor()) as beside:
            beside.build(DOCUMENTS)
        opened.delete([DOCUMENTS[-1].id])
        assert opened.stats()["recipe"] == "flat"
        with index_at(path, None) as later:
            assert later.stats()["recipe"] == "flat"


def test_a_recipe_that_is_removed_under_an_open_index_is_an_error_there(tmp_path):
    path = tmp_path / "a"
    for recipe in (raptor(), flat()):
        with index_at(path, recipe) as index:
            index.build(DOCUMENTS)
    with index_at(path, None) as opened, index_at(path, None) as other:
        assert opened.stats()["recipe"] == other.stats()["recipe"] == "raptor"
        other.drop_recipe("raptor")
        assert other.stats()["recipe"] == "flat"
        with pytest.raises(ConfigurationError, match=r"'raptor'.*was removed.*holds: flat.*Open the index again"):
            opened.search("harbor")


def test_a_ranker_is_a_setting_of_the_search_not_of_the_build(tmp_path):
    path = tmp_path / "a"
    with index_at(path, sirerag()) as index:
        index.build(DOCUMENTS)
        dense = index.search("harbor", 5)
    with index_at(path, sirerag(ranker="bm25")) as index:
        assert index.search("harbor", 5) != dense
    assert read_contents(path).units


def test_the_default_embedder_is_fitted_again_when_the_corpus_has_doubled(tmp_path):
    path = tmp_path / "a"
    texts = [f"{document.title}. {document.text}" for document in DOCUMENTS]
    small = [Document(f"s{i}", text) for i, text in enumerate(texts[:12])]
    large = [Document(f"l{i}", text) for i, text in enumerate(texts[12:])]
    with Index(path, recipe="raptor") as index:
        index.build(small)
        first, before = index.stats()["embedder"], read_contents(path)
        index.add(large[:5])
        assert index.stats()["embedder"] == first
        index.add(large[5:])
        second, after = index.stats()["embedder"], read_contents(path)
        hits = index.search("harbor and ferry", 8)
    assert second != first
    kept = [unit for unit in before.vectors if unit in after.vectors]
    assert len(kept) >= len(small)
    assert all(before.vectors[unit] != after.vectors[unit] for unit in kept)
    with Index(path) as again:
        assert again.search("harbor and ferry", 8) == hits
        assert again.stats()["embedder"] == second
        again.add([Document("again", "A ferry left the harbor.")])
        assert again.stats()["embedder"] == second
    fitted = LexicalEmbedder().fit([c.index_text for c in after.chunks.values()])
    assert fitted.fingerprint == second
