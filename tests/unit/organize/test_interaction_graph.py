"""The interaction graph: what it joins, and that growing equals building."""

import json

import numpy as np

from sire_core import Document, Index
from sire_core.knowledge import KEYWORD
from sire_core.recipes import iier
from sire_core.recipes.iier import INTERACTS
from sire_core.recipes.iier.graph import ChainGraph
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import ExtractionRecord

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


def folder(path, embedder=None, **settings):
    return Index(path, recipe=iier(**settings), embedder=embedder or HashEmbedder(), extractor=Keywords())


def edges_of(path):
    return {
        (e.kind, e.source, e.target, e.weight, json.dumps(dict(e.metadata), sort_keys=True))
        for e in read_contents(path).edges
    }


def test_every_kind_of_edge_can_be_left_out(tmp_path):
    documents = corpus(8)
    kinds = {}
    for name, settings in {
        "all": {"kw_min": 2},
        "structural": {"kw_min": 2, "use_struc": False},
        "similarity": {"kw_min": 2, "use_sim": False},
        "keywords": {"use_kw": False},
    }.items():
        with folder(tmp_path / name, **settings) as index:
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


def test_large_corpora_are_joined_approximately(tmp_path):
    documents = corpus(60)
    graphs = {}
    for name, below in (("exact", 1000), ("approximate", 10)):
        with Index(
            tmp_path / name,
            recipe=iier(exact_below=below, use_kw=False, use_struc=False),
            embedder=HashEmbedder(),
            extractor=Keywords(),
        ) as index:
            index.build(documents)
        graphs[name] = {edge[:3] for edge in edges_of(tmp_path / name) if edge[0] == INTERACTS}
    assert len(graphs["exact"] & graphs["approximate"]) > 0.9 * len(graphs["exact"])
