"""A user's own recipes are built, kept up, searched, and never dropped by anybody else's change."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from sire_core import Document, Index
from sire_core.derive.plain import PlainDerivation
from sire_core.errors import ConfigurationError
from sire_core.protocols import Recipe
from sire_core.recipes.base import REGISTRY, register
from sire_core.search.vectors.flat import Flat
from sire_core.testing.contents import read_contents
from sire_core.testing.hash_embedder import HashEmbedder
from sire_core.types import Edge, Unit, UnitKind

GUIDE = Path(__file__).parents[3] / "docs" / "extending" / "derived-data.md"


def sentences(passages):
    """Every sentence with its passage."""
    units = [
        Unit("", UnitKind.PROPOSITION, text, passage.unit.chunk_ids)
        for passage in passages
        for text in passage.unit.text.split(". ")
    ]
    return units, [Edge("follows", a.unit.id, b.unit.id) for a, b in pairwise(passages)]


def own_recipe():
    organizer = PlainDerivation("sentences", sentences, needs_records=False)
    return Recipe(name="own", summary="sentences", paper="", organizers=(organizer,), ranker=Flat())


def opened(path, recipe):
    return Index(path, recipe=recipe, embedder=HashEmbedder())


def document(number):
    return Document(f"d{number}", f"Town {number} has a mill. The mill of town {number} burns")


def test_what_a_function_derives_follows_every_change(tmp_path):
    with opened(tmp_path / "grown", own_recipe()) as index:
        index.build([document(1), document(2)])
        index.add([document(3)])
        index.delete(["d1"])
        index.update([Document("d2", "Nothing is left. Nobody came")])
        hits = index.search("Who came?", 8, returns="units")
    assert {hit.unit.text for hit in hits} >= {"Nobody came", "Town 3 has a mill"}
    with opened(tmp_path / "fresh", own_recipe()) as index:
        index.build([Document("d2", "Nothing is left. Nobody came"), document(3)])
    grown, fresh = read_contents(tmp_path / "grown"), read_contents(tmp_path / "fresh")
    assert grown.units == fresh.units
    assert grown.edges == fresh.edges
    assert len(grown.edges) == 1


def test_a_recipe_that_is_not_known_here_is_not_dropped(tmp_path):
    with opened(tmp_path, own_recipe()) as index:
        index.build([document(1)])
    with opened(tmp_path, "flat") as index:
        index.build([document(1)])
        with pytest.raises(ConfigurationError, match=r"recipe 'own'.*register.*drop_recipe"):
            index.add([document(2)])
        assert index.stats()["recipes"] == ["own", "flat"]
    with opened(tmp_path, own_recipe()) as index:
        index.add([document(2)])
        assert len(index.search("mill", 9, returns="units")) == 6
    with opened(tmp_path, "flat") as index:
        assert len(index.search("mill", 9)) == 2


def test_a_registered_recipe_follows_the_changes_of_others(tmp_path, monkeypatch):
    def own():
        return own_recipe()

    monkeypatch.setitem(REGISTRY, "own", None)  # taken out again afterwards
    register(own)
    with opened(tmp_path, "own") as index:
        index.build([document(1)])
    with opened(tmp_path, "flat") as index:
        index.build([document(1), document(2)])
    with opened(tmp_path, "own") as index:
        assert len(index.search("mill", 9, returns="units")) == 6


def test_dropping_a_recipe_takes_what_only_it_derived(tmp_path):
    with opened(tmp_path, own_recipe()) as index:
        index.build([document(1)])
        with pytest.raises(ConfigurationError, match="only recipe"):
            index.drop_recipe("own")
    with opened(tmp_path, "flat") as index:
        index.build([document(1)])
        with pytest.raises(ConfigurationError, match="does not hold 'other'"):
            index.drop_recipe("other")
        index.drop_recipe("own")
        index.add([document(2)])
        assert index.stats()["recipes"] == ["flat"]
    assert {unit.kind for unit in read_contents(tmp_path).units.values()} == {UnitKind.CHUNK}


def test_the_guide_does_what_it_says(capsys):
    first, second = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(first, "first", "exec"), {"__name__": "guide"})
    assert "'Bo is a town'" in capsys.readouterr().out
    exec(compile(second, "second", "exec"), {"__name__": "guide"})
    assert capsys.readouterr().out.strip() == "{'chunk': 1}"
