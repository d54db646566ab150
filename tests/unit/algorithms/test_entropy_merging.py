import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_definition import clusters, nested, tree_entropy

from sire_core.recipes.smart.communities import (
    MergeLevel,
    dissolve_groups,
    entropy_partition,
    entropy_tree,
    merge_communities,
    move_units,
)
from sire_core.recipes.smart.encoding_tree import EncodingTree, UndirectedGraph, canonical_labels, decoding_information

BARBELL = UndirectedGraph.from_edges(6, np.array([(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)]))
PATH = UndirectedGraph.from_edges(4, np.array([(0, 1), (1, 2), (2, 3)]))
RING = UndirectedGraph.from_edges(8, np.array([(i, (i + 1) % 8) for i in range(8)]))


def information(graph, labels):
    return decoding_information(graph, EncodingTree(graph.size, (np.array(labels),)))


def partition_entropy(graph, labels):
    return tree_entropy(graph, EncodingTree(graph.size, (labels,)))


def partitions(size):
    """All partitions of a few vertices, as labels in order of first occurrence."""
    for labels in itertools.product(range(size), repeat=size):
        if all(label <= max(labels[:place], default=-1) + 1 for place, label in enumerate(labels)):
            yield np.array(labels)


def test_oracle_E8_merges_of_path_and_ring():
    assert merge_communities(MergeLevel.of(PATH)).tolist() == [0, 0, 1, 1]
    assert information(PATH, [0, 0, 1, 2]) == pytest.approx(0.3333, abs=5e-5)
    assert information(PATH, [0, 0, 1, 1]) == pytest.approx(0.6667, abs=5e-5)
    assert merge_communities(MergeLevel.of(RING)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert information(RING, [0, 0, 1, 2, 3, 4, 5, 6]) == pytest.approx(0.25)


def test_oracle_E8_merging_alone_is_stuck_on_the_barbell():
    assert information(BARBELL, [0, 0, 1, 2, 3, 4]) == pytest.approx(0.2582, abs=5e-5)
    halfway = np.array([0, 0, 1, 2, 3, 3])
    assert information(BARBELL, [0, 0, 1, 1, 2, 2]) - information(BARBELL, halfway) == pytest.approx(0.1746, abs=5e-5)
    assert information(BARBELL, [0, 0, 0, 1, 2, 2]) - information(BARBELL, halfway) == pytest.approx(0.1704, abs=5e-5)
    level = MergeLevel.of(BARBELL)
    merged = merge_communities(level)
    assert merged.tolist() == [0, 0, 1, 1, 2, 2]
    assert partition_entropy(BARBELL, merged) == pytest.approx(1.8656, abs=5e-5)
    assert move_units(level, merged).tolist() == merged.tolist()
    dissolved = dissolve_groups(level, merged)
    assert dissolved.tolist() == [0, 0, 0, 1, 1, 1]
    assert partition_entropy(BARBELL, dissolved) == pytest.approx(1.6995, abs=5e-5)
    assert min(partition_entropy(BARBELL, labels) for labels in partitions(6)) == pytest.approx(1.6995, abs=5e-5)


def test_oracle_E8_second_level_on_the_pairs_of_the_ring():
    pairs = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    level = MergeLevel(RING.contracted(pairs), np.full(4, 4.0), np.full(4, 16.0), 16.0)
    assert level.information(np.array([0, 0, 1, 2])) == pytest.approx(0.125)
    assert merge_communities(level).tolist() == [0, 0, 1, 1]
    tree = entropy_tree(RING)
    assert nested(tree) == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert tree_entropy(RING, tree) == pytest.approx(1.75)


def test_oracle_E8_three_levels_of_the_barbell():
    tree = entropy_tree(BARBELL)
    assert sorted(map(len, clusters(tree).values())) == [2, 2, 3, 3]
    assert tree_entropy(BARBELL, tree) == pytest.approx(1.4688, abs=5e-5)


def random_graph(seed, size, edges):
    """Continuous weights: no two gains are equal, so labels cannot matter."""
    rng = np.random.default_rng(seed)
    return UndirectedGraph.from_edges(size, rng.integers(0, size, (edges, 2)), rng.uniform(0.1, 5, edges))


graphs = st.builds(random_graph, st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 80))


@settings(deadline=None, max_examples=60)
@given(graphs, st.integers(0, 10**6))
def test_no_step_ends_above_its_start(graph, seed):
    level = MergeLevel.of(graph)
    start = canonical_labels(np.random.default_rng(seed).integers(0, 6, graph.size))
    value = information(graph, start)
    assert level.information(start) == pytest.approx(value, abs=1e-9)
    for step in (merge_communities, move_units, dissolve_groups, entropy_partition):
        after = step(level, start)
        assert level.information(after) >= value - 1e-9
        assert after.tolist() == canonical_labels(after).tolist()


@settings(deadline=None, max_examples=60)
@given(graphs, st.integers(0, 10**6), st.integers(1, 3))
def test_without_ties_a_relabelled_graph_gives_the_relabelled_tree(graph, seed, levels):
    order = np.random.default_rng(seed).permutation(graph.size)
    other = UndirectedGraph.from_edges(graph.size, order[graph.edges], graph.weights)
    tree, moved = entropy_tree(graph, levels), entropy_tree(other, levels)
    assert tree == EncodingTree(graph.size, tuple(level[order] for level in moved.labels))


@settings(deadline=None, max_examples=60)
@given(graphs, st.integers(1, 4))
def test_more_levels_never_say_less_than_the_partition(graph, levels):
    tree = entropy_tree(graph, levels)
    assert tree.height <= levels
    assert tree == tree.contracted()
    partition = entropy_partition(MergeLevel.of(graph))
    assert decoding_information(graph, tree) >= information(graph, partition) - 1e-9
    isolated = np.flatnonzero(graph.degrees() == 0)
    assert all(tree.ancestors(int(vertex)) == () for vertex in isolated)


def test_cliques_in_a_ring_are_found():
    size, count = 6, 20
    inside = [(c * size + a, c * size + b) for c in range(count) for a in range(size) for b in range(a)]
    between = [(c * size, ((c + 1) % count) * size + 1) for c in range(count)]
    graph = UndirectedGraph.from_edges(size * count, np.array(inside + between))
    cliques = np.repeat(np.arange(count), size)
    assert entropy_partition(MergeLevel.of(graph)).tolist() == cliques.tolist()
