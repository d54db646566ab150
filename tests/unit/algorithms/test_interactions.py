"""Graphs of passages and names: interactions, PageRank, relations, aliases."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.extend import CSRGraph, KnownSimilarities, nearest_neighbors, parse_order, personalized_pagerank
from sire_core.knowledge.same_names import merge_aliases
from sire_core.papers.iier.derive import keyword_pairs, semantic_pairs, structural_pairs
from sire_core.papers.iier.rank import arrange_chains, greedy_cover
from sire_core.papers.msrag.element_graph import Incidence, nearby_entities, nearby_relations

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


def test_oracle_I7_reading_order():
    chains = [[0, 2, 4], [5, 3, 2]]
    assert arrange_chains(chains, "chain", np.random.default_rng(1)) == [[0, 2, 4], [5, 3, 2]]
    assert arrange_chains(chains, "iterative", np.random.default_rng(1)) == [[0, 5, 2, 3, 4]]
    (shuffled,) = arrange_chains(chains, "shuffle", np.random.default_rng(1))
    assert sorted(shuffled) == [0, 2, 3, 4, 5]
    assert arrange_chains(chains, "shuffle", np.random.default_rng(1)) == [shuffled]


def graph_of(size, edges):
    sources, targets, weights = (np.array(column) for column in zip(*edges, strict=True)) if edges else ([], [], [])
    return CSRGraph.from_edges(
        size, np.asarray(sources, np.int64), np.asarray(targets, np.int64), np.asarray(weights, float)
    )


@st.composite
def weighted_graphs(draw):
    size = draw(st.integers(1, 18))  # walks from one node in eight or fewer are pushed, others are iterated
    node = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=25, unique=True))
    edges = [(a, b, draw(st.floats(0.1, 5))) for a, b in pairs]
    seeds = np.zeros(size)
    seeds[draw(st.lists(node, min_size=1, max_size=size))] = draw(st.floats(0.1, 3))
    seeds[draw(node)] += 1
    return size, edges, seeds


@pytest.mark.parametrize(("follow", "expected"), [(0.5, [0.5833, 0.3333, 0.0833]), (0.1, [0.9045, 0.0909, 0.0045])])
def test_oracle_M5_path_of_three(follow, expected):
    path = graph_of(3, [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)])
    found = personalized_pagerank(path, np.array([1.0, 0, 0]), follow, threshold=1e-9)
    assert found.scores == pytest.approx(expected, abs=5e-5)


@settings(deadline=None, max_examples=60)
@given(case=weighted_graphs(), follow=st.floats(0, 0.95), threshold=st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_push_is_within_its_error_bound_of_networkx(case, follow, threshold):
    size, edges, seeds = case
    found = personalized_pagerank(graph_of(size, edges), seeds, follow, threshold=threshold)
    reference = nx.DiGraph()
    reference.add_nodes_from(range(size))
    reference.add_weighted_edges_from(edges)
    exact = nx.pagerank(reference, follow, dict(enumerate(seeds)), max_iter=5000, tol=1e-13)
    missing = np.array([exact[node] for node in range(size)]) - found.scores
    assert missing.min() > -1e-9
    assert missing.sum() == pytest.approx(found.error, abs=1e-9)
    assert found.error <= threshold * (len(edges) + size) + 1e-12
    assert found.scores.sum() + found.error == pytest.approx(1)


# a-b, b-c, c-d, d-e, x-y as relations 0..4 over entities 0..6


def incidence(pairs):
    return Incidence.from_arrays(*np.array(pairs, dtype=np.int64).reshape(-1, 2).T, 20)


PATH = incidence([(r, e) for r, ends in enumerate(((0, 1), (1, 2), (2, 3), (3, 4), (5, 6))) for e in ends])


@pytest.mark.parametrize(
    ("hops", "entities", "relations"),
    [(0, {0}, set()), (1, {0, 1}, {0}), (2, {0, 1, 2}, {0, 1}), (4, {0, 1, 2, 3, 4}, {0, 1, 2, 3})],
)
def test_oracle_M2_expansion_from_an_entity(hops, entities, relations):
    found = nearby_entities([0], PATH, hops)
    assert set(found[0]) == entities
    assert set(found[1]) == relations


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("2#0", "CABD"), ("2#0#2#9", "CABD"), ("", "ABCD"), ("Text 1 then 3", "BDAC"), ("9" * 5000, "ABCD")],
)
def test_oracle_M4_order_from_numbers(answer, expected):
    assert parse_order(answer, ["pA", "pB", "pC", "pD"]) == [f"p{letter}" for letter in expected]


def test_relations_one_hop_apart_share_an_entity():
    assert nearby_relations([0], PATH, 0) == {0: 0}
    assert nearby_relations([0], PATH, 2) == {0: 0, 1: 1, 2: 2}
    assert nearby_relations([0], PATH, 9) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_fanout_keeps_the_most_similar_and_what_is_forbidden_is_not_entered():
    star = incidence([(r, e) for r in range(1, 5) for e in (0, 10 + r)])
    similarity = [0.0] * 20
    similarity[3], similarity[4] = 0.9, float("-inf")
    entities, relations = nearby_entities([0], star, 1, 2, similarity)
    assert relations == {3: 1, 1: 1}
    assert set(entities) == {0, 11, 13}
    assert 4 not in nearby_relations([1], star, 5, None, similarity)


def merged(canonical):
    """Groups of more than one name, the canonical one first, the others in order."""
    groups = {chosen: [] for chosen in canonical.values()}
    for name, chosen in canonical.items():
        groups[chosen] += [name] if name != chosen else []
    return sorted((chosen, *sorted(others)) for chosen, others in groups.items() if others)


def test_oracle_M3_alias_groups():
    groups = [["Fred Gehrke", "Clarence Fred Gehrke"], ["C. F. Gehrke", "Clarence Fred Gehrke"], ["Paris"]]
    found = merge_aliases(groups)
    assert merged(found) == [("Clarence Fred Gehrke", "C. F. Gehrke", "Fred Gehrke")]
    assert found["Fred Gehrke"] == found["C. F. Gehrke"] == "Clarence Fred Gehrke"
    assert found["Paris"] == "Paris"
    assert len(set(found.values())) == 2


def test_types_that_contradict_are_not_merged():
    names, types = [["Paris of France", "Paris, France"]], {"Paris of France": "Person", "Paris, France": "Location"}
    assert len(merged(merge_aliases(names))) == 1
    assert merged(merge_aliases(names, types)) == []


def test_a_short_form_of_several_names_joins_none():
    names = [["Robert E. Lee", "R. Lee"], ["Ron A. Lee", "R. Lee"]]
    assert len(merged(merge_aliases(names[:1]))) == 1
    assert merged(merge_aliases(names)) == []


def test_one_word_of_a_name_is_not_merged_with_it():
    found = merge_aliases([["Henry of Flanders", "Henry"], ["British Film Institute", "BFI"]])
    assert merged(found) == [("British Film Institute", "BFI")]
