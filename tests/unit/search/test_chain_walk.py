"""The graph and the walk of chains."""

import asyncio
import itertools
from dataclasses import dataclass

import numpy as np

from sire_core import Index
from sire_core.documents.media import split_media
from sire_core.extend import KnownSimilarities, Lists
from sire_core.files.readers import read_documents
from sire_core.papers.iier.chain_graph import ChainGraph
from sire_core.papers.iier.rank import walk_chains
from sire_core.papers.iier.scorers import ChainQuestion
from sire_core.recipes import iier
from sire_core.testing.doubles import HashEmbedder


def test_tables_and_images_of_a_page_are_nodes_between_their_neighbours(tmp_path):
    (tmp_path / "boats.html").write_text(
        "<html><body><h1>Boats</h1><p>The boats of the isles are listed here.</p>"
        "<table><tr><th>Name</th><th>Year</th></tr><tr><td>Wren</td><td>1879</td></tr></table>"
        "<p>They carried mail.</p><img src='wren.png' alt='The Wren at the quay'><p>None is left.</p></body></html>"
    )
    with Index(recipe=iier(use_sim=False, use_kw=False), embedder=HashEmbedder()) as index:
        index.build(split_media(read_documents(tmp_path).documents).documents)
        graph = ChainGraph.of(index.view())
        texts = [unit.text for unit in index.view().units(graph.positions)]
    order = [[part in text for text in texts].index(True) for part in ("listed", "1879", "mail", "quay", "left")]
    edges = {(i, int(j)) for i in range(len(texts)) for j in graph.neighbors[graph.indptr[i] : graph.indptr[i + 1]]}
    assert edges == {pair for one, two in itertools.pairwise(order) for pair in ((one, two), (two, one))}


@dataclass
class StaticScorer:
    table: dict

    async def score(self, state, graph, view):
        return np.array([self.table[node] for node in state.candidates.tolist()], dtype=np.float32)


def graph_of(size, edges):
    """A graph from {(i, j): (structural, similarity, keywords)}."""
    both = sorted([(i, j, f) for (i, j), f in edges.items()] + [(j, i, f) for (i, j), f in edges.items()])
    counts = np.bincount([i for i, _, _ in both], minlength=size) if both else np.zeros(size, np.int64)
    return ChainGraph(
        positions=np.arange(size),
        vectors=np.zeros((size, 4), np.float32),
        indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        neighbors=np.array([j for _, j, _ in both], dtype=np.int64),
        features=np.array([f for _, _, f in both], dtype=np.float32).reshape(-1, 3),
        keywords=Lists.of_lengths([0] * size, ()),
        postings=Lists.of_lengths((), ()),
        keyword_of={},
        keys=(),
    )


def walked(graph, seeds, scorer, length):
    question = ChainQuestion(
        "q", np.zeros(4), KnownSimilarities(np.zeros(graph.size)), (), np.zeros(graph.size, np.uint64)
    )
    return asyncio.run(walk_chains(graph, None, question, seeds, scorer, length))


EDGES = dict.fromkeys([(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5)], (0, 0.5, 0))


def test_oracle_I6_walk():
    graph = graph_of(6, EDGES)
    scorer = StaticScorer({0: 0.1, 1: 0.4, 2: 0.6, 3: 0.5, 4: 0.9, 5: 0.7})
    assert walked(graph, [0], scorer, 1) == [(0,)]
    assert walked(graph, [0], scorer, 3) == [(0, 2, 4)]
    assert walked(graph, [0], scorer, 5) == [(0, 2, 4)]
    assert walked(graph, [5, 0], scorer, 3) == [(5, 3, 2), (0, 2, 4)]
    assert walked(graph, [5], scorer, 5) == [(5, 3, 2, 4)]
