"""Trees that follow a changing corpus, through the real index."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sire_core.algorithms.text import count_tokens
from sire_core.index import Index
from sire_core.recipes import raptor, sirerag
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.types import Document, UnitKind

PLACES = ["harbor", "mill", "school", "orchard", "station", "quarry", "library", "bakery"]
LIMIT = 90


def document(number):
    place = PLACES[number % 8]
    return Document(f"d{number}", f"The {place} of town {number} has a {place} keeper named Keeper{number}.")


def index_at(path, recipe=None, **options):
    recipe = recipe or raptor(max_cluster_tokens=LIMIT)
    return Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor(), **options)


def check_tree(path):
    found = read_contents(path)
    below = {}
    for edge in found.edges:
        assert {edge.source, edge.target} <= set(found.units)
        below.setdefault(edge.source, []).append(found.units[edge.target])
    levels = {}
    for unit in found.units.values():
        levels.setdefault(unit.level, []).append(unit)
        if unit.level:
            members = below[unit.id]
            assert {chunk for member in members for chunk in member.chunk_ids} == set(unit.chunk_ids)
            assert len(members) == 1 or sum(count_tokens(member.text) for member in members) <= LIMIT
    for number in range(1, len(levels)):
        covered = {member.id for unit in levels[number] for member in below[unit.id]}
        assert covered == {unit.id for unit in levels[number - 1]}
    return found


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sets(st.integers(0, 59), min_size=1, max_size=12), min_size=1, max_size=4))
def test_any_history_leaves_a_whole_tree(steps):
    with tempfile.TemporaryDirectory() as place, index_at(Path(place, "a")) as index:
        there = set(range(40))
        index.build([document(number) for number in sorted(there)])
        for step in steps:
            index.delete([f"d{number}" for number in sorted(step & there)])
            index.add([document(number) for number in sorted(step - there)])
            there ^= step
            found = check_tree(Path(place, "a"))
            assert {chunk.doc_id for chunk in found.chunks.values()} == {f"d{number}" for number in there}


def test_a_small_change_leaves_most_summaries_alone_and_asks_for_the_others_only(tmp_path):
    asked = ScriptedModel()
    recipe = raptor(max_cluster_tokens=LIMIT, depth=1)
    with Index(tmp_path / "a", recipe=recipe, embedder=HashEmbedder(), language_model=asked) as index:
        built = index.build([document(number) for number in range(80)]).calls
        before = read_contents(tmp_path / "a").units
        added = index.add([document(80)]).calls
        after = read_contents(tmp_path / "a").units
        new = [unit for unit in after.values() if unit.id not in before and unit.level]
        assert added <= len(new) < built / 4
        chunk = next(unit.id for unit in after.values() if "Keeper80" in unit.text and not unit.level)
        assert all(chunk in unit.chunk_ids or len(unit.chunk_ids) < 80 for unit in new)
        index.delete(["d80"])
        gone = read_contents(tmp_path / "a").units
        assert not any("Keeper80" in unit.text for unit in gone.values())
        assert index.add([]).calls == 0


def test_the_same_history_gives_the_same_tree(tmp_path):
    for name, workers in (("a", 1), ("b", 16)):
        with index_at(tmp_path / name, sirerag(), workers=workers) as index:
            index.build([document(number) for number in range(30)])
            index.add([document(number) for number in range(30, 35)])
            index.delete(["d3", "d31"])
    assert read_contents(tmp_path / "a") == read_contents(tmp_path / "b")


def test_drift_is_told_and_a_tree_that_drifted_is_made_anew(tmp_path):
    with index_at(tmp_path / "a", sirerag()) as index:
        index.build([document(number) for number in range(60)])
        assert index.stats()["drift_sim"] == index.stats()["drift_rel"] == 0
        index.add([document(60)])
        assert 0 < index.stats()["drift_sim"] < 1
        index.add([document(number) for number in range(61, 120)])
        assert index.stats()["drift_sim"] == 0


@pytest.mark.parametrize("recipe", [raptor(), sirerag(), sirerag(cross="add"), sirerag(variant="E")])
def test_a_copy_of_a_passage_is_cited_by_the_summaries_above_it(tmp_path, recipe):
    with index_at(tmp_path / "a", recipe) as index:
        index.build([document(number) for number in range(30)])
        index.add([Document("copy", document(4).text)])
        found = read_contents(tmp_path / "a")
        copy = next(chunk.id for chunk in found.chunks.values() if chunk.doc_id == "copy")
        first = next(chunk.id for chunk in found.chunks.values() if chunk.doc_id == "d4")
        above = [unit for unit in found.units.values() if unit.level and first in unit.chunk_ids]
        assert above
        assert all(copy in unit.chunk_ids for unit in above)
        index.delete(["d4"])
        found = read_contents(tmp_path / "a")
        assert not any(first in unit.chunk_ids for unit in found.units.values())
        assert any(copy in unit.chunk_ids for unit in found.units.values() if unit.kind is not UnitKind.CHUNK)
