"""`repaired_clusters`: trees of graphs that grow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_definition import tree_entropy

from sire_core.recipes.smart.communities import entropy_tree
from sire_core.recipes.smart.encoding_tree import EncodingTree, UndirectedGraph, decoding_information
from sire_core.recipes.smart.perspectives import repaired_clusters


def random_graph(size, edges, seed):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, size, (edges, 2))
    return UndirectedGraph.from_edges(size, ends, rng.integers(1, 4, edges).astype(float))


def communities(sizes, seed):
    """A graph of dense groups, three of which stand close to each other."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    left, right = np.triu_indices(len(group), 1)
    near, family = group[left] == group[right], group[left] // 3 == group[right] // 3
    kept = rng.random(len(left)) < np.where(near, 0.5, np.where(family, 0.02, 0.002))
    order = rng.permutation(len(group))
    return UndirectedGraph.from_edges(len(group), order[np.stack([left, right], axis=1)[kept]])


def first_vertices(graph, size):
    inside = (graph.edges < size).all(axis=1)
    return UndirectedGraph(size, graph.edges[inside], graph.weights[inside])


def levels_of(tree):
    return np.array(tree.filled())


def repaired(graph, start, new, changed):
    above = start[1] if len(start) > 1 else np.zeros(graph.size, dtype=np.int64)
    return np.array([repaired_clusters(graph, start[0], above, new, changed), *start[1:]])


@settings(max_examples=60, deadline=None)
@given(st.integers(5, 24), st.integers(1, 50), st.integers(0, 999), st.integers(1, 6), st.integers(1, 3))
def test_levels_stay_nested_say_no_less_and_other_clusters_stay(size, edges, seed, more, levels):
    graph = random_graph(size + more, edges + 2 * more, seed)
    before = entropy_tree(first_vertices(graph, size), levels)
    if not before.height:
        return
    new = np.arange(size + more) >= size
    far = size + np.arange(more)
    start = np.array([np.append(level, level[far % size]) for level in levels_of(before)])
    changed = new.copy()
    changed[graph.edges[new[graph.edges].any(axis=1)].ravel()] = True
    found = repaired(graph, start, new, changed)
    tree = EncodingTree(size + more, tuple(found))  # refuses what does not nest
    alone = start.copy()
    alone[0, new] = size + more + far
    least = decoding_information(graph, EncodingTree(size + more, tuple(alone)))
    assert decoding_information(graph, tree) >= least - 1e-9
    assert np.array_equal(found, repaired(graph, start, new, changed))
    for cluster in np.unique(start[0]):
        members = np.flatnonzero(start[0] == cluster)
        if not changed[members].any():
            assert np.array_equal(np.flatnonzero(found[0] == found[0, members[0]]), members)


def test_nothing_changed_changes_nothing():
    graph = random_graph(40, 90, 1)
    start = levels_of(entropy_tree(graph))
    none = np.zeros(40, dtype=bool)
    assert np.array_equal(repaired(graph, start, none, none), start)


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_that_grew_is_as_good_as_one_made_anew(seed):
    graph = communities([12] * 24, seed)
    size = 264
    tree = entropy_tree(first_vertices(graph, size))
    for end in range(size + 4, graph.size + 1, 4):
        grown = first_vertices(graph, end)
        new = np.arange(end) >= size
        start = np.array([np.append(level, level.max() + 1 + np.arange(end - size)) for level in levels_of(tree)])
        for vertex in range(size, end):  # into the cluster to which most edges lead
            known = grown.edges[grown.edges[:, 1] == vertex, 0]
            most = np.bincount(start[0, known]).argmax()
            start[:, vertex] = start[:, known[start[0, known] == most][0]]
        changed = new.copy()
        changed[grown.edges[new[grown.edges].any(axis=1)].ravel()] = True
        tree = EncodingTree(end, tuple(repaired(grown, start, new, changed))).contracted()
        size = end
    assert tree_entropy(graph, tree) <= 1.01 * tree_entropy(graph, entropy_tree(graph))
