import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.algorithms.pagerank import CSRGraph, has_compiler, personalized_pagerank
from sire_core.errors import ConfigurationError

COMPILED = [False, pytest.param(True, marks=pytest.mark.skipif(not has_compiler(), reason="numba is not installed"))]


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


def test_bad_input_is_refused():
    graph = graph_of(2, [(0, 1, 1.0)])
    for seeds in ([0.0, 0], [-1.0, 2], [1.0], [np.nan, 1]):
        with pytest.raises(ConfigurationError, match="Seeds"):
            personalized_pagerank(graph, np.array(seeds))
    with pytest.raises(ConfigurationError, match="following"):
        personalized_pagerank(graph, np.ones(2), 1.0)
    with pytest.raises(ConfigurationError, match="threshold"):
        personalized_pagerank(graph, np.ones(2), threshold=0)
    with pytest.raises(ConfigurationError, match="positive"):
        graph_of(2, [(0, 1, 0.0)])
    with pytest.raises(ConfigurationError, match="join"):
        graph_of(2, [(0, 2, 1.0)])
