"""Graphs of entities, passages and interactions."""

import json

import numpy as np

from sire_core import Document, Index
from sire_core.extend import KEYWORD
from sire_core.extraction.record import RecordedExtractor
from sire_core.extraction.rules import RulesExtractor
from sire_core.papers.iier import INTERACTS
from sire_core.papers.iier.chain_graph import ChainGraph
from sire_core.recipes import iier, msrag, pagerank
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import ExtractionRecord, UnitKind

CORPUS = [
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide (film)"),
    Document("vale", "Mira Vale was a director. Her mother was Anna Vale.", "Mira Vale"),
    Document("anna", "Anna Vale was a painter in Port Amber.", "Anna Vale"),
    Document("port", "Port Amber is a harbor.", "Port Amber"),
]
# Fitted beforehand: an index fits it on its first batch, and other statistics are another extractor.
EXTRACTOR = RulesExtractor()


def folder(path, **settings):
    return Index(path, recipe=pagerank(**settings), embedder=HashEmbedder(), extractor=EXTRACTOR)


def edges_of(path):
    return {
        (e.kind, e.source, e.target, json.dumps(dict(e.metadata), sort_keys=True)) for e in read_contents(path).edges
    }


def test_with_units_a_relation_stands_on_every_passage_that_states_it(tmp_path):
    said = [Document(title, "Mira Vale painted Anna Vale.", title) for title in ("Mira Vale", "Notes")]
    with folder(tmp_path / "i", index_units=True) as index:
        index.build([*said, *CORPUS[2:]])
    found = read_contents(tmp_path / "i")
    names = [unit.text for unit in found.units.values() if unit.kind is UnitKind.ENTITY]
    assert {"Mira Vale", "Anna Vale", "Port Amber"} <= set(names)
    relation = next(unit for unit in found.units.values() if unit.text == "Mira Vale painted Anna Vale")
    assert relation.kind is UnitKind.RELATION
    assert [found.chunks[chunk].doc_id for chunk in relation.chunk_ids] == ["Mira Vale", "Notes"]
    ends = [found.units[e.target].text for e in found.edges if e.source == relation.id and e.kind == "relates"]
    assert sorted(ends) == ["Anna Vale", "Mira Vale"]


def test_hubs_keep_only_the_passages_they_title(tmp_path):
    notes = [Document(f"n{i}", f"Note {i} speaks of Port Amber at length.", f"Note {i}") for i in range(12)]
    with folder(tmp_path / "i") as index:
        index.build([CORPUS[3], *notes])
    found = read_contents(tmp_path / "i")
    port = [edge for edge in found.edges if "Port Amber" in edge.metadata["names"]]
    assert [found.chunks[edge.source].doc_id for edge in port] == ["port"]


def test_ends_that_no_passage_spells_out_are_entities_in_the_graph_as_published(tmp_path):
    rows = [
        {"id": "a", "entities": ["Mira Vale", "Vale Works"], "triples": [["Mira Vale", "runs", "Vale Works"]]},
        {"id": "b", "entities": ["Otto Kell"], "triples": [["Otto Kell", "is", "glass maker"]]},
        {"id": "c", "entities": ["Anna Vale"], "triples": [["Anna Vale", "is", "glass maker"]]},
    ]
    file = tmp_path / "recorded.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpus = [
        Document("a", "Mira Vale runs the works of her family."),
        Document("b", "Otto Kell made glass."),
        Document("c", "Anna Vale makes glass."),
    ]
    found = {}
    for preset in ("ours", "published"):
        with Index(
            recipe=msrag(preset=preset, rerank="none"), embedder=HashEmbedder(), extractor=RecordedExtractor(file)
        ) as index:
            index.build(corpus)
            view = index.view()
            units = view.units(range(view.size))
            found[preset] = {unit.text: len(unit.chunk_ids) for unit in units if unit.kind is UnitKind.ENTITY}
    assert found["ours"] == {"Mira Vale": 1, "Otto Kell": 1, "Anna Vale": 1}
    assert found["published"] == {**found["ours"], "Vale Works": 1, "glass maker": 2}


def test_oracle_M7_dates_and_common_nouns_are_entities_by_switch(tmp_path):
    rows = [
        {"id": "a", "entities": ["Mira Vale"], "triples": [["Mira Vale", "plays", "basketball"]]},
        {"id": "b", "entities": ["Otto Kell", "3 July 2001"], "triples": [["Otto Kell", "born", "3 July 2001"]]},
        {"id": "c", "entities": ["Anna Vale"], "triples": [["Anna Vale", "coached", "basketball"]]},
    ]
    file = tmp_path / "recorded.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpus = [
        Document("a", "Mira Vale plays basketball."),
        Document("b", "Otto Kell was born on 3 July 2001."),
        Document("c", "Anna Vale coached basketball."),
    ]

    def entities(index):
        units = index.view().units(range(index.view().size))
        return {unit.text: len(unit.chunk_ids) for unit in units if unit.kind is UnitKind.ENTITY}

    def built(path=None, documents=corpus, **settings):
        recipe = msrag(rerank="none", **settings)
        index = Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=RecordedExtractor(file))
        index.build(documents)
        return index

    plain, whole = built(), built(tmp_path / "whole", literals=True, skip_types=())
    assert "basketball" not in entities(plain)
    assert entities(whole) == {"Mira Vale": 1, "Otto Kell": 1, "Anna Vale": 1, "basketball": 2, "3 July 2001": 1}
    # Two relations that share "basketball" are one hop apart: from Mira Vale's passage to Anna Vale's.
    walk = {"entities": 1, "relations": 0, "chunks": 0, "vote": "count", "link": False, "entity_hops": 2}
    reached = built(literals=True, **walk)
    assert {hit.doc_ids[0] for hit in reached.search("Mira Vale", 3) if hit.score > 0} == {"a", "c"}
    assert [hit.doc_ids[0] for hit in built(**walk).search("Mira Vale", 3) if hit.score > 0] == ["a"]
    # After any history the graph is that of a fresh build.
    grown = built(tmp_path / "grown", corpus[:1], literals=True, skip_types=())
    grown.add(corpus[1:])
    assert entities(grown) == entities(whole)
    assert edges_of(tmp_path / "grown") == edges_of(tmp_path / "whole")
    grown.delete(["c"])
    assert entities(grown)["basketball"] == 1


WORDS = ("harbor", "bridge", "mill", "ferry", "lamp", "tide", "rope", "salt")


class Keywords:
    """Every word of the list that a passage contains is a keyword."""

    fingerprint = "keywords"
    links_titles = False

    async def extract(self, chunks):
        for item in chunks:
            words = tuple(word for word in WORDS if word in item.chunk.text)
            yield [ExtractionRecord(item.chunk.hash, "m", "p", keywords=words[:5])]


def document(number, *words):
    return Document(f"d{number}", chunks=(f"{' '.join(words)} stand in text {number}.", f"More of {number}."))


def corpus(size, seed=0):
    rng = np.random.default_rng(seed)
    return [document(i, *rng.choice(WORDS, 4, replace=False).tolist()) for i in range(size)]


def keyword_folder(path, embedder=None, **settings):
    return Index(path, recipe=iier(**settings), embedder=embedder or HashEmbedder(), extractor=Keywords())


def test_every_kind_of_edge_can_be_left_out(tmp_path):
    documents = corpus(8)
    kinds = {}
    for name, settings in {
        "all": {"kw_min": 2},
        "structural": {"kw_min": 2, "use_struc": False},
        "similarity": {"kw_min": 2, "use_sim": False},
        "keywords": {"use_kw": False},
    }.items():
        with keyword_folder(tmp_path / name, **settings) as index:
            index.build(documents)
            view = index.view()
            kinds[name] = [edge for edge in view.edges() if edge.kind == INTERACTS]
            assert len([edge for edge in view.edges() if edge.kind == KEYWORD]) == 8 * 4
    for name in ("structural", "similarity", "keywords"):
        assert any(name in edge.metadata for edge in kinds["all"])
        assert not any(name in edge.metadata for edge in kinds[name])
        assert kinds[name]


def test_titles_are_keywords_when_asked_without_their_bracket():
    documents = [Document("a", "A harbor.", "Port (film)"), Document("b", "The harbor of b.")]
    for wanted, expected in ((True, {"port", "harbor"}), (False, {"harbor"})):
        with Index(recipe=iier(title_keywords=wanted), embedder=HashEmbedder(), extractor=Keywords()) as index:
            index.build(documents)
            assert set(ChainGraph.of(index.view()).keyword_of) == expected


def test_keywords_of_many_passages_join_nothing_but_still_find_seeds():
    documents = [Document(f"d{i}", f"The harbor of passage {i}.") for i in range(6)]
    with Index(recipe=iier(kw_df_cap=5, use_sim=False), embedder=HashEmbedder(), extractor=Keywords()) as index:
        index.build(documents)
        graph = ChainGraph.of(index.view())
        assert not len(graph.neighbors)
        assert graph.postings.of(graph.keyword_of["harbor"]).tolist() == list(range(6))
