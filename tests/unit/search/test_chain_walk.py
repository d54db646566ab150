"""The graph and the walk of chains."""

import asyncio
import itertools
import json
from dataclasses import astuple, dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.documents.media import split_media
from sire_core.errors import SnapshotExpiredError
from sire_core.extend import KnownSimilarities, Lists
from sire_core.files.readers import read_documents
from sire_core.papers.iier.chain_graph import ChainGraph, PassageKeywords
from sire_core.papers.iier.rank import frontier, walk_chains
from sire_core.papers.iier.scorers import ChainQuestion, HeuristicScorer, RandomScorer, newly_covered
from sire_core.recipes import iier
from sire_core.testing.doubles import HashEmbedder


def shown(view):
    graph = ChainGraph.of(view)
    words = PassageKeywords(view, graph.positions)
    arrays = {name: getattr(graph, name) for name in ChainGraph.__slots__}
    arrays |= {name: astuple(arrays[name]) for name in ("keywords", "postings")}
    arrays = {name: json.dumps(found, default=np.ndarray.tolist) for name, found in arrays.items()}
    return arrays, words.titled("The Salt Lantern").tolist(), words.with_phrase("was born").tolist()


def test_a_snapshot_reads_the_graph_of_its_own_generation(tmp_path):
    documents = demo_documents()
    first, second = (Index(tmp_path / "i", recipe=iier(), embedder=HashEmbedder()) for _ in range(2))
    with first as index, second as reader:
        index.build(documents[1:])
        wanted = shown(index.view())
        held, passing = index.snapshot(), reader.view()
        index.add(documents[:1])
        assert shown(held.view) == wanted
        with pytest.raises(SnapshotExpiredError, match="snapshot"):
            shown(passing)


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
    fingerprint: str = "static"
    batches: list = field(default_factory=list)

    async def score(self, state, graph, view):
        self.batches.append(len(state.candidates))
        return np.array([self.table[node] for node in state.candidates.tolist()], dtype=np.float32)


def graph_of(size, edges, vectors=None):
    """A graph from {(i, j): (structural, similarity, keywords)}."""
    both = sorted([(i, j, f) for (i, j), f in edges.items()] + [(j, i, f) for (i, j), f in edges.items()])
    counts = np.bincount([i for i, _, _ in both], minlength=size) if both else np.zeros(size, np.int64)
    return ChainGraph(
        positions=np.arange(size),
        vectors=np.zeros((size, 4), np.float32) if vectors is None else vectors,
        indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        neighbors=np.array([j for _, j, _ in both], dtype=np.int64),
        features=np.array([f for _, _, f in both], dtype=np.float32).reshape(-1, 3),
        keywords=Lists.of_lengths([0] * size, ()),
        postings=Lists.of_lengths((), ()),
        keyword_of={},
        keys=(),
    )


def question_for(graph, rng=None, keywords=3):
    size = graph.size
    if rng is None:
        return ChainQuestion(
            "q", np.zeros(4, np.float32), KnownSimilarities(np.zeros(size, np.float32)), (), np.zeros(size, np.uint64)
        )
    vector = rng.standard_normal(4).astype(np.float32)
    coverage = rng.integers(0, 2**keywords, size).astype(np.uint64)
    return ChainQuestion(
        "q", vector, KnownSimilarities((graph.vectors @ vector).astype(np.float32)), ("k",) * keywords, coverage
    )


def walked(graph, question, seeds, scorer, length, allowed=None):
    return asyncio.run(walk_chains(graph, None, question, seeds, scorer, length, allowed))


EDGES = dict.fromkeys([(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5)], (0, 0.5, 0))


def test_oracle_I6_walk():
    graph = graph_of(6, EDGES)
    question = question_for(graph)
    scorer = StaticScorer({0: 0.1, 1: 0.4, 2: 0.6, 3: 0.5, 4: 0.9, 5: 0.7})
    assert walked(graph, question, [0], scorer, 1) == [(0,)]
    assert walked(graph, question, [0], scorer, 3) == [(0, 2, 4)]
    assert walked(graph, question, [0], scorer, 5) == [(0, 2, 4)]
    assert walked(graph, question, [5], scorer, 3) == [(5, 3, 2)]
    assert walked(graph, question, [5], scorer, 5) == [(5, 3, 2, 4)]


random_graphs = st.builds(
    lambda size, pairs: (size, {(min(p), max(p)): (1, 0.5, 1) for p in pairs if p[0] != p[1] and max(p) < size}),
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25),
)


@settings(max_examples=60, deadline=None)
@given(made=random_graphs, seed=st.integers(0, 1000), length=st.integers(1, 7))
@pytest.mark.parametrize("scorer", [HeuristicScorer(), RandomScorer(5)], ids=["heuristic", "random"])
def test_walks_revisit_nothing_and_batches_change_nothing(scorer, made, seed, length):
    size, edges = made
    rng = np.random.default_rng(seed)
    graph = graph_of(size, edges, rng.standard_normal((size, 4)).astype(np.float32))
    question = question_for(graph, rng)
    allowed = rng.random(size) < 0.8
    seeds = np.flatnonzero(allowed).tolist()
    together = walked(graph, question, seeds, scorer, length, allowed)
    assert together == [walked(graph, question, [one], scorer, length, allowed)[0] for one in seeds]
    for chain in together:
        assert len(set(chain)) == len(chain) <= length
        assert allowed[list(chain)].all()
        assert all((min(pair), max(pair)) in edges for pair in itertools.pairwise(chain))


def test_the_heuristic_is_the_printed_sum():
    vectors = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], np.float32)
    graph = graph_of(3, {(0, 1): (1, 0.6, 7), (0, 2): (0, 0, 2)}, vectors)
    vector = np.array([0, 0.8, 0.6, 0], np.float32)
    coverage = np.array([0b001, 0b011, 0b110], np.uint64)
    question = ChainQuestion("q", vector, KnownSimilarities(vectors @ vector), ("a", "b", "c"), coverage)
    state, alive = frontier(graph, question, np.array([[0]]))
    assert alive.tolist() == [0]
    assert newly_covered(state).tolist() == [0.5, 1.0]
    scores = asyncio.run(HeuristicScorer(shared=0.1).score(state, graph, None))
    first = 0.5 * 0.8 + 0.2 * 0.5 + 0.05 + 0.05 * 0.6 + 0.1
    second = 0.5 * 0.6 + 0.2 * 1.0 + 0.1 * 2 / 5
    assert scores.tolist() == pytest.approx([first, second], abs=1e-6)
