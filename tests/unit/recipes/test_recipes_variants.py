"""Recipes and their settings; the variants of SiReRAG's Table 5."""

from collections import Counter
from dataclasses import replace

import pytest

from sire_core import Document, Index
from sire_core.recipes import sirerag
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, PlainExtractor

# The facts of oracle S1 in three passages of equal length, and a passage that states none.
TEXTS = ("A founded B. B makes C. Sales rise.", "C was sold to A. D likes tea.", "F met G. G hired F.", "Nothing here.")
PADDING = " ".join(["word"] * 20)
PASSAGES = [f"{text} {PADDING}" for text in TEXTS]
FACTS = {
    PASSAGES[0]: [("A founded B.", "AB"), ("B makes C.", "BC"), ("Sales rise.", "")],
    PASSAGES[1]: [("C was sold to A.", "Ca"), ("D likes tea.", "D"), ("E married D.", "ED")],
    PASSAGES[2]: [("F met G.", "FG"), ("G hired F.", "GF")],
}
COUNTS = {
    "full": {"chunk": 4, "sim_summary": 2, "aggregate": 5, "rel_summary": 2},
    "A": {"chunk": 4, "sim_summary": 2, "aggregate": 5},
    "B": {"chunk": 4, "sim_summary": 2, "aggregate": 5, "rel_summary": 2, "proposition": 8},
    "C": {"chunk": 4, "sim_summary": 2, "rel_summary": 2, "proposition": 8},
    "D": {"chunk": 4, "sim_summary": 2, "proposition": 8},
    # Of all passages {0, 1} and {2, 3}; of the three that mention somebody {0} and {1, 2}.
    "E": {"chunk": 4, "sim_summary": 4},
    # 4 x 30 and 44 tokens in one level of at most 70.
    "replace": {"chunk": 4, "aggregate": 5, "cross_summary": 3},
    "add": {"chunk": 4, "sim_summary": 2, "aggregate": 5, "rel_summary": 2, "cross_summary": 3},
}


def built(path, variant):
    # A level over the limit is cut into the fewest parts: 4 x 30 tokens of passages, 44 tokens of aggregates.
    switch = {"cross": variant} if variant in ("replace", "add") else {"variant": variant}
    related = {} if variant == "E" else {"singleton_rule": "code", "entity_key": "lower"}
    recipe = sirerag(**switch, **related, depth=1)
    limits = {"similarity_tree": 70, "relatedness_tree": 30, "cross_tree": 70}
    organizers = tuple(
        replace(organizer, tree=replace(organizer.tree, max_cluster_tokens=limits[organizer.name]))
        for organizer in recipe.organizers
    )
    recipe = replace(recipe, organizers=organizers)
    with Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor(FACTS), chunker=None) as index:
        index.build([Document(f"d{i}", text) for i, text in enumerate(PASSAGES)])
        return index.stats(), read_contents(path)


@pytest.mark.parametrize(
    ("variant", "total"),
    [("full", 13), ("A", 11), ("B", 21), ("C", 16), ("D", 14), ("E", 8), ("replace", 12), ("add", 16)],
)
def test_oracle_S5_units_per_variant(tmp_path, variant, total):
    stats, contents = built(tmp_path, variant)
    assert stats["kinds"] == COUNTS[variant]
    assert stats["units"] == total
    assert Counter(unit.kind.value for unit in contents.units.values()) == COUNTS[variant]


def test_oracle_S5_propositions_hold_facts_without_entities(tmp_path):
    _, contents = built(tmp_path, "D")
    said = {unit.text for unit in contents.units.values() if unit.kind.value == "proposition"}
    assert said == {text for facts in FACTS.values() for text, _ in facts}


def test_oracle_S5_rel_summaries_of_C_are_built_over_aggregates(tmp_path):
    _, full = built(tmp_path / "full", "full")
    _, without = built(tmp_path / "c", "C")

    def summaries(contents):
        return {unit.text for unit in contents.units.values() if unit.kind.value == "rel_summary"}

    assert summaries(full) == summaries(without)


@pytest.mark.parametrize("mode", ["replace", "add"])
def test_cross_summaries_stand_on_chunks_and_aggregates(tmp_path, mode):
    _, contents = built(tmp_path, mode)
    kinds = {unit.id: unit.kind.value for unit in contents.units.values()}
    below = {kinds[edge.target] for edge in contents.edges if kinds[edge.source] == "cross_summary"}
    assert below == {"chunk", "aggregate"}
    members = {edge.target for edge in contents.edges if kinds[edge.source] == "cross_summary"}
    assert {unit for unit, kind in kinds.items() if kind in ("chunk", "aggregate")} == members


def test_added_cross_levels_cluster_the_summaries_of_both_trees(tmp_path):
    recipe = sirerag(cross="add", max_cluster_tokens=60, summary_tokens=30, depth=2, copy_share=None)
    documents = [Document(f"d{i}", text) for i, text in enumerate(PASSAGES)]
    with Index(tmp_path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor(FACTS)) as index:
        index.build(documents)
        first = read_contents(tmp_path)
        index.delete(["d3"])
        index.add(documents[3:])
        assert read_contents(tmp_path).said() == first.said()
    units = first.units
    below = {
        (units[edge.target].kind.value, units[edge.target].level)
        for edge in first.edges
        if units[edge.source].kind.value == "cross_summary" and units[edge.source].level == 2
    }
    assert below == {("sim_summary", 1), ("rel_summary", 1), ("cross_summary", 1)}
