import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.recipes.smart.encoding_tree import (
    EncodingTree,
    UndirectedGraph,
    corrected_information,
    decoding_information,
    normalized_mutual_information,
    one_dimensional_entropy,
)
from sire_core.recipes.smart.perspectives import abstract_greedy, leiden_labels


def greedy_trees(graph, **settings):
    return tuple(found.tree for found in abstract_greedy(graph, **settings))


def two_partitions(size, blocks, probabilities, seed):
    """Edges inside the blocks of two independent partitions of the same vertices, and a few anywhere."""
    rng = np.random.default_rng(seed)
    first, second = (rng.integers(0, count, size) for count in blocks)
    left, right = np.triu_indices(size, 1)
    chance = (
        0.005 + probabilities[0] * (first[left] == first[right]) + probabilities[1] * (second[left] == second[right])
    )
    chosen = rng.random(len(left)) < chance
    return UndirectedGraph.from_edges(size, np.stack([left[chosen], right[chosen]], axis=1)), first, second


def recovery(tree, partition):
    return max(normalized_mutual_information(level, partition) for level in tree.filled())


@pytest.mark.parametrize(
    ("size", "blocks", "probabilities"),
    [(240, (4, 4), (0.25, 0.2)), (240, (4, 4), (0.25, 0.25)), (400, (8, 8), (0.4, 0.3)), (400, (5, 8), (0.3, 0.3))],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_two_planted_partitions_are_both_found_where_leiden_finds_one(size, blocks, probabilities, seed):
    graph, first, second = two_partitions(size, blocks, probabilities, seed)
    alone = [normalized_mutual_information(leiden_labels(graph, 1.0, 0), part) for part in (first, second)]
    assert min(alone) < 0.3
    trees = greedy_trees(graph, kappa=2)
    assert len(trees) == 2
    assert [max(recovery(tree, part) for tree in trees) >= 0.9 for part in (first, second)] == [True, True]


@pytest.mark.parametrize(("size", "edges"), [(0, []), (1, []), (3, [(0, 1), (1, 2)]), (6, []), (5, [(2, 2)])])
def test_too_little_to_abstract_is_a_root_only(size, edges):
    graph = UndirectedGraph.from_edges(size, np.array(edges, dtype=np.int64).reshape(-1, 2))
    assert greedy_trees(graph) == (EncodingTree(size),)


@settings(deadline=None, max_examples=40)
@given(st.integers(4, 14), st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), min_size=1, max_size=40))
def test_any_small_graph_gives_different_tidy_trees(size, pairs):
    graph = UndirectedGraph.from_edges(size, np.array(pairs) % size)
    trees = greedy_trees(graph, kappa=3, seed=1)
    assert trees == greedy_trees(graph, kappa=3, seed=1)
    assert 1 <= len(set(trees)) == len(trees) <= 3
    for tree in trees:
        assert tree == tree.contracted()
        assert tree.height <= 3
        assert all(tree.ancestors(int(vertex)) == () for vertex in np.flatnonzero(graph.degrees() == 0))


def test_a_view_is_worth_what_its_own_tree_explains_of_it():
    """The second partition stands in another graph on the vertices, of which the first says nothing."""
    graph, first, _ = two_partitions(200, (4, 4), (0.3, 0.0), 3)
    other, _, second = two_partitions(200, (5, 5), (0.0, 0.4), 4)
    one, two = abstract_greedy(graph, kappa=2, views={"other": other})
    assert (one.view, two.view) == ("relations", "other")
    assert min(recovery(one.tree, first), recovery(two.tree, second)) >= 0.9
    share = decoding_information(other, two.tree) / one_dimensional_entropy(other)
    assert two.information == pytest.approx(share)


def test_without_the_principle_of_information_only_differences_count():
    graph, _, _ = two_partitions(150, (3, 5), (0.3, 0.2), 2)
    kept, free = (abstract_greedy(graph, kappa=3, informative=informative) for informative in (True, False))
    assert sum(one.information for one in free) < sum(one.information for one in kept)


def test_information_is_corrected_for_chance():
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, 100, 400), rng.integers(0, 100, 400)
    assert normalized_mutual_information(one, two) > 0.6
    assert corrected_information(one, two) < 0.05
    assert corrected_information(one, one[::1]) == pytest.approx(1)
    assert corrected_information(np.zeros(5, int), np.zeros(5, int)) == 0
