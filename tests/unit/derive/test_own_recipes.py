"""Recipes and runners of users."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.extend import Flat, PlainDerivation
from sire_core.protocols import Recipe
from sire_core.recipes import REGISTRY
from sire_core.recipes.published import PUBLISHED
from sire_core.recipes.registry import register
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Edge, Unit, UnitKind
from support.command import run_python

GUIDE = Path(__file__).parents[3] / "docs" / "extending" / "method.md"


def sentences(passages):
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


def test_a_recipe_that_another_process_does_not_know_is_not_dropped(tmp_path):
    with opened(tmp_path, own_recipe()) as index:
        index.build([document(1)])
    code = """
import sys
from sire_core import Document, Index
from sire_core.testing.doubles import HashEmbedder
for change in (lambda i: i.add([Document("d2", "More.")]), lambda i: i.using("own").search("mill")):
    with Index(sys.argv[1], recipe="flat", embedder=HashEmbedder()) as index:
        try:
            change(index)
        except Exception as error:
            print(type(error).__name__, error)
"""
    done = run_python(code, tmp_path)
    changing, searching = done.stdout.splitlines()
    assert re.fullmatch(r"ConfigurationError .*recipe 'own'.*register.*drop_recipe.*", changing)
    assert re.fullmatch(r"ConfigurationError .*recipe 'own', which is not known here. Pass it: .*", searching)
    with opened(tmp_path, own_recipe()) as index:
        index.add([document(2)])
        assert index.stats()["recipes"] == ["own"]
        assert len(index.search("mill", 9, returns="units")) == 6


def test_a_recipe_that_was_given_as_an_object_follows_the_changes_of_others(tmp_path):
    with opened(tmp_path / "a", own_recipe()) as index:
        index.build([document(1)])
    with opened(tmp_path / "a", "flat") as index:
        index.build([document(1)])
        index.add([document(2)])
        assert index.stats()["recipes"] == ["own", "flat"]
        assert len(index.search("mill", 9)) == 2
        assert len(index.using("own").search("mill", 9, returns="units")) == 6
        index.reembed(tmp_path / "b", "lexical")
    with Index(tmp_path / "b", recipe=own_recipe()) as index:
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


def test_the_guide_does_what_it_says(capsys, monkeypatch):
    monkeypatch.setitem(REGISTRY, "name_walk", None)  # taken out again afterwards
    monkeypatch.setitem(PUBLISHED, "name_walk", ())
    names = {"__name__": "guide"}
    said = []
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)):
        exec(compile(code, f"snippet {number}", "exec"), names)
        said.append(capsys.readouterr().out)
    _, steps, plain, walk, edges, broken = said
    first, filtered, without = steps.splitlines()
    assert "Rime is a crust of ice." in first
    assert "crust" not in filtered
    assert "Rime is a danger to masts." in without
    assert "crust" not in without
    assert "Rime is a crust of ice." in plain
    assert "the question names Northern Wren" in walk
    assert edges.strip() == "{'mentions'} Probability of following an edge instead of restarting."
    assert broken.strip() == "{}"


def test_the_guide_imports_what_authors_import():
    modules = set(re.findall(r"^from (sire_core[\w.]*) import", GUIDE.read_text(encoding="utf-8"), re.MULTILINE))
    assert modules == {"sire_core", "sire_core.data", "sire_core.extend", "sire_core.testing.contracts"}


class Backwards:
    """Goes over all parts and gives the last one first."""

    part_size: int | None = 8

    async def map(
        self, function: Callable[[Any, Any], Any], shared: Any, parts: Sequence[Any]
    ) -> AsyncGenerator[tuple[int, Any], None]:
        taken = []
        for part in parts:
            assert len(taken) < len(parts), "parts have no end"
            taken.append(part)
        with pytest.raises(IndexError):
            parts[len(parts)]
        for number in reversed(range(len(taken))):
            yield number, await asyncio.to_thread(function, shared, taken[number])


def test_a_runner_that_iterates_over_its_parts_builds_the_same(tmp_path: Path) -> None:
    for name, runner in (("here", None), ("there", Backwards())):
        with Index(tmp_path / name, recipe="sirerag", embedder=HashEmbedder(), runner=runner) as index:
            index.build(demo_documents())
    assert read_contents(tmp_path / "there") == read_contents(tmp_path / "here")


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
