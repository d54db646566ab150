"""How summary trees grow, through the real index."""

from dataclasses import replace

import pytest

from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.recipes import raptor, sirerag
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, PlainExtractor
from sire_core.trees.tree import TreeSettings
from sire_core.types import Document, Passage

WORDS = [
    "amber",
    "basil",
    "cedar",
    "dune",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "inlet",
    "jetty",
    "kelp",
    "lagoon",
    "marsh",
    "north",
    "oasis",
]


def documents(n):
    return [Document(f"d{i}", f"The {WORDS[i]} stands by the {WORDS[i - 1]} in town {i}.") for i in range(n)]


def grown(tmp_path, n, **settings):
    with Index(tmp_path / "index", recipe=raptor(**settings), embedder=HashEmbedder()) as index:
        index.build(documents(n))
    found = read_contents(tmp_path / "index")
    levels = {}
    for unit in found.units.values():
        levels.setdefault(unit.level, []).append(unit)
    return found, levels


def test_oracle_R2_eleven_nodes_make_one_summary_and_the_tree_stops(tmp_path):
    found, levels = grown(tmp_path, 11)
    assert {level: len(units) for level, units in levels.items()} == {0: 11, 1: 1}
    (summary,) = levels[1]
    assert set(summary.chunk_ids) == set(found.chunks)
    assert {(edge.kind, edge.source, edge.target) for edge in found.edges} == {
        ("child", summary.id, chunk) for chunk in found.chunks
    }


def test_oracle_R2_without_a_stop_rule_one_node_is_summarised_again(tmp_path):
    found, levels = grown(tmp_path, 11, stop_rule="none")
    assert {level: len(units) for level, units in levels.items()} == {0: 11, 1: 1, 2: 1, 3: 1}
    above = {edge.target: edge.source for edge in found.edges if edge.target not in found.chunks}
    assert above == {levels[1][0].id: levels[2][0].id, levels[2][0].id: levels[3][0].id}


def test_oracle_R2_the_official_rule_stops_at_eleven_nodes(tmp_path):
    _, levels = grown(tmp_path, 11, stop_rule="official")
    assert list(levels) == [0]


@pytest.mark.parametrize(("rule", "summaries"), [("default", 0), ("none", 3), ("official", 0)])
def test_oracle_R2_a_single_passage(tmp_path, rule, summaries):
    found, _ = grown(tmp_path, 1, stop_rule=rule)
    assert len(found.units) == 1 + summaries


@pytest.mark.parametrize(
    "settings",
    [{"depth": -1}, {"max_cluster_tokens": 0}, {"summary_tokens": 0}, {"clustering": "k"}, {"stop_rule": "x"}],
)
def test_settings_out_of_range(settings):
    with pytest.raises(ConfigurationError):
        TreeSettings(**settings)


OVERVIEW = "Gardens are usually kept for food or pleasure, and most of them are shared by various people."


def with_overviews(tmp_path, extractor=None, **settings):
    given = [*documents(11), Document("d90", OVERVIEW), Document("d91", OVERVIEW.replace("Gardens", "Parks"))]
    recipe = raptor(hierarchy=True, **settings)
    with Index(tmp_path, recipe=recipe, embedder=HashEmbedder(), extractor=extractor or PlainExtractor()) as index:
        index.build(given)
    found = read_contents(tmp_path)
    levels = {unit.id: unit.level for unit in found.units.values()}
    documents_of = {chunk.id: chunk.doc_id for chunk in found.chunks.values()}
    return {
        level: {documents_of[e.target] for e in found.edges if levels[e.source] == level and e.target in documents_of}
        for level in (1, 2)
    }


def test_overviews_join_at_level_one(tmp_path):
    below = with_overviews(tmp_path)
    assert below == {1: {f"d{i}" for i in range(11)}, 2: {"d90", "d91"}}


def test_a_model_decides_what_is_an_overview(tmp_path):
    class Judged(PlainExtractor):
        def _record(self, chunk):
            level = "high" if chunk.doc_id in ("d0", "d1") else "low"
            return replace(super()._record(chunk), abstractiveness=level)

    below = with_overviews(tmp_path, Judged(), max_cluster_tokens=10000)
    assert below[2] == {"d0", "d1"}
    assert {"d90", "d91"} <= below[1]


def test_what_passages_say_of_themselves_comes_first(tmp_path):
    given = [
        Document("a", chunks=(Passage("Ann met Bob in 1901.", metadata={"abstractiveness": "high"}),)),
        *(
            Document(f"b{i}", chunks=(Passage(f"{OVERVIEW} {i}", metadata={"abstractiveness": "low"}),))
            for i in range(3)
        ),
    ]
    recipe = sirerag(hierarchy=True, cross="replace")
    with Index(tmp_path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor()) as index:
        index.build(given)
    found = read_contents(tmp_path)
    levels = {unit.id: unit.level for unit in found.units.values()}
    above = {found.chunks[e.target].doc_id: levels[e.source] for e in found.edges if e.target in found.chunks}
    assert above == {"a": 2, "b0": 1, "b1": 1, "b2": 1}
