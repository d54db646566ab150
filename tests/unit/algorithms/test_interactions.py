"""Graphs of passages: interactions and PageRank."""

import itertools
from importlib.util import find_spec

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.arrays.nearest_neighbors import nearest_neighbors
from sire_core.arrays.personalized_pagerank import CSRGraph, personalized_pagerank
from sire_core.papers.iier.derive import keyword_pairs, semantic_pairs, structural_pairs
from sire_core.papers.iier.rank import arrange_chains, greedy_cover
from sire_core.search.vectors.sq_index import KnownSimilarities

KEYWORDS = [
    {"mayan ruins", "guatemala", "tikal", "stela", "rain"},
    {"guatemala", "tikal", "stela", "jungle", "maize"},
    {"guatemala", "tikal", "coffee", "export", "port"},
    {"tikal", "stela", "guatemala", "rain", "king"},
    {"coffee", "export", "port", "tax", "law"},
]
SIMILARITY = np.array([0.40, 0.90, 0.30, 0.55, 0.20], dtype=np.float32)


def rows(keywords):
    numbers = [number for found in keywords for number in sorted(found)]
    return np.cumsum([0, *map(len, keywords)]), np.array(numbers, dtype=np.int64)


def numbered(keywords):
    number = {word: i for i, word in enumerate(sorted(set().union(*keywords)))}
    return rows([{number[word] for word in found} for found in keywords])


def pairs_of(keywords, **settings):
    pairs, counts = keyword_pairs(*numbered(keywords), **settings)
    return {tuple(pair): count for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)}


def holders(*asked):
    return [np.array([i for i, found in enumerate(KEYWORDS) if word in found], dtype=np.int64) for word in asked]


def test_oracle_I1_keyword_edges():
    three = {(0, 1): 3, (0, 3): 4, (1, 3): 3, (2, 4): 3}
    assert pairs_of(KEYWORDS, min_shared=3) == three
    assert pairs_of(KEYWORDS, min_shared=2) == three | {(0, 2): 2, (1, 2): 2, (2, 3): 2}


@settings(max_examples=50, deadline=None)
@given(
    keywords=st.lists(st.sets(st.integers(0, 8), max_size=5), max_size=12),
    min_shared=st.integers(1, 3),
    max_nodes=st.one_of(st.none(), st.integers(1, 6)),
)
def test_keyword_pairs_are_those_of_all_comparisons(keywords, min_shared, max_nodes):
    count = [sum(word in found for found in keywords) for word in range(9)]
    rare = [{word for word in found if max_nodes is None or count[word] <= max_nodes} for found in keywords]
    expected = {
        (i, j): len(rare[i] & rare[j])
        for i, j in itertools.combinations(range(len(rare)), 2)
        if len(rare[i] & rare[j]) >= min_shared
    }
    pairs, counts = keyword_pairs(*rows(keywords), min_shared, max_nodes)
    found = [tuple(pair) for pair in pairs.tolist()]
    assert found == sorted(expected)
    assert dict(zip(found, counts.tolist(), strict=True)) == expected


def test_oracle_I2_greedy_cover():
    seeds, covers = greedy_cover(holders("guatemala", "coffee", "rain", "mars"), KnownSimilarities(SIMILARITY))
    assert seeds == [3, 2]
    assert covers == [(0, 2), (1,)]
    assert greedy_cover(holders("mars"), KnownSimilarities(SIMILARITY)) == ([], [])
    assert greedy_cover([], KnownSimilarities(SIMILARITY)) == ([], [])


@settings(max_examples=50, deadline=None)
@given(found=st.lists(st.sets(st.integers(0, 9)), max_size=6))
def test_a_cover_covers_what_can_be_covered_and_no_seed_is_idle(found):
    nodes = [np.array(sorted(held), dtype=np.int64) for held in found]
    seeds, covers = greedy_cover(nodes, KnownSimilarities(np.zeros(10, dtype=np.float32)))
    assert sorted(itertools.chain(*covers)) == [i for i, held in enumerate(found) if held]
    assert all(covers)
    assert len(set(seeds)) == len(seeds)
    assert all(seed in found[keyword] for seed, cover in zip(seeds, covers, strict=True) for keyword in cover)


def test_oracle_I3_semantic_edges():
    vectors = np.array([(1, 0), (0.8, 0.6), (0, 1), (-1, 0)], dtype=np.float32)
    nearest = nearest_neighbors(vectors, 1)
    pairs, cosines, listed = semantic_pairs(*nearest)
    assert pairs.tolist() == [[0, 1], [1, 2]]
    assert cosines.tolist() == pytest.approx([0.8, 0.6])
    assert listed.tolist() == [3, 2]
    assert semantic_pairs(*nearest, links="mutual")[0].tolist() == [[0, 1]]


def test_oracle_I4_structural_edges():
    assert structural_pairs(["d0", "d0", "d0", "d1"], [0, 1, 2, 3]).tolist() == [[0, 1], [1, 2]]


def test_copies_are_one_node_and_never_joined_to_themselves():
    assert structural_pairs(["d0", "d0", "d0", "d1", "d1"], [0, 0, 1, 1, 0]).tolist() == [[0, 1]]


def test_oracle_I7_reading_order():
    chains = [[0, 2, 4], [5, 3, 2]]
    assert arrange_chains(chains, "chain", np.random.default_rng(1)) == [[0, 2, 4], [5, 3, 2]]
    assert arrange_chains(chains, "iterative", np.random.default_rng(1)) == [[0, 5, 2, 3, 4]]
    (shuffled,) = arrange_chains(chains, "shuffle", np.random.default_rng(1))
    assert sorted(shuffled) == [0, 2, 3, 4, 5]
    assert arrange_chains(chains, "shuffle", np.random.default_rng(1)) == [shuffled]


COMPILED = [
    False,
    pytest.param(True, marks=pytest.mark.skipif(not find_spec("numba"), reason="numba is not installed")),
]


def graph_of(size, edges):
    sources, targets, weights = (np.array(column) for column in zip(*edges, strict=True)) if edges else ([], [], [])
    return CSRGraph.from_edges(
        size, np.asarray(sources, np.int64), np.asarray(targets, np.int64), np.asarray(weights, float)
    )


@st.composite
def weighted_graphs(draw):
    size = draw(st.integers(1, 9))
    node = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=25, unique=True))
    edges = [(a, b, draw(st.floats(0.1, 5))) for a, b in pairs]
    seeds = draw(st.lists(st.floats(0, 3), min_size=size, max_size=size))
    seeds[draw(node)] += 1
    return size, edges, np.array(seeds)


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize(("follow", "expected"), [(0.5, [0.5833, 0.3333, 0.0833]), (0.1, [0.9045, 0.0909, 0.0045])])
def test_oracle_M5_path_of_three(follow, expected, compiled):
    path = graph_of(3, [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)])
    found = personalized_pagerank(path, np.array([1.0, 0, 0]), follow, threshold=1e-9, compiled=compiled)
    assert found.scores == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("compiled", [*COMPILED, None], ids=str)  # with None such small graphs are iterated
@settings(deadline=None, max_examples=60)
@given(case=weighted_graphs(), follow=st.floats(0, 0.95), threshold=st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_push_is_within_its_error_bound_of_networkx(case, follow, threshold, compiled):
    size, edges, seeds = case
    found = personalized_pagerank(graph_of(size, edges), seeds, follow, threshold=threshold, compiled=compiled)
    reference = nx.DiGraph()
    reference.add_nodes_from(range(size))
    reference.add_weighted_edges_from(edges)
    exact = nx.pagerank(reference, follow, dict(enumerate(seeds)), max_iter=5000, tol=1e-13)
    missing = np.array([exact[node] for node in range(size)]) - found.scores
    assert missing.min() > -1e-9
    assert missing.sum() == pytest.approx(found.error, abs=1e-9)
    assert found.error <= threshold * (len(edges) + size) + 1e-12
    assert found.scores.sum() + found.error == pytest.approx(1)
