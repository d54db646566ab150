import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_definition import clusters, nested, tree_entropy

from sire_core.errors import ConfigurationError
from sire_core.recipes.smart.encoding_tree import (
    EncodingTree,
    UndirectedGraph,
    decoding_information,
    modularity,
    mutual_information,
    normalized_mutual_information,
    one_dimensional_entropy,
)
from sire_core.recipes.smart.perspectives import tree_information

BARBELL = UndirectedGraph.from_edges(6, np.array([(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)]))
PATH = UndirectedGraph.from_edges(4, np.array([(0, 1), (1, 2), (2, 3)]))
HEAVY_PATH = UndirectedGraph.from_edges(4, np.array([(0, 1), (1, 2), (2, 3)]), np.array([2.0, 1.0, 2.0]))
RING = UndirectedGraph.from_edges(8, np.array([(i, (i + 1) % 8) for i in range(8)]))
NATURAL, PAIRS, CROSSED, ONE, ALONE = (
    np.array(labels)
    for labels in ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 2], [0] * 6, [0, 1, 2, 3, 4, 5])
)


def partition_entropy(graph, labels):
    """Of the tree whose only level a partition is."""
    return tree_entropy(graph, EncodingTree(graph.size, (labels,)))


def labels_of(text):
    return np.array([int(digit) for digit in text])


@pytest.mark.parametrize(
    ("labels", "entropy", "decoding", "quality"),
    [
        (NATURAL, 1.6995, 0.8571, 0.3571),
        (PAIRS, 1.8656, 0.6910, 0.0816),
        (CROSSED, 2.5567, 0.0, -0.3367),
        (ONE, 2.5567, 0.0, 0.0),
        (ALONE, 2.5567, 0.0, -0.1735),
    ],
)
def test_oracle_E1_barbell_partitions(labels, entropy, decoding, quality):
    tree = EncodingTree(6, (labels,))
    assert one_dimensional_entropy(BARBELL) == pytest.approx(2.5567, abs=5e-5)
    assert tree_entropy(BARBELL, tree) == pytest.approx(entropy, abs=5e-5)
    assert decoding_information(BARBELL, tree) == pytest.approx(decoding, abs=5e-5)
    assert modularity(BARBELL, labels) == pytest.approx(quality, abs=5e-5)


def test_oracle_E2_paths():
    assert one_dimensional_entropy(PATH) == pytest.approx(1.9183, abs=5e-5)
    assert partition_entropy(PATH, labels_of("0011")) == pytest.approx(1.2516, abs=5e-5)
    assert modularity(PATH, labels_of("0011")) == pytest.approx(0.1667, abs=5e-5)
    assert partition_entropy(PATH, labels_of("0112")) == pytest.approx(1.7233, abs=5e-5)
    assert modularity(PATH, labels_of("0112")) == pytest.approx(-0.1667, abs=5e-5)
    assert one_dimensional_entropy(HEAVY_PATH) == pytest.approx(1.9710, abs=5e-5)
    assert partition_entropy(HEAVY_PATH, labels_of("0011")) == pytest.approx(1.1710, abs=5e-5)
    assert modularity(HEAVY_PATH, labels_of("0011")) == pytest.approx(0.3, abs=5e-5)


def test_oracle_E3_ring_and_components():
    pairs, halves = labels_of("00112233"), labels_of("00001111")
    assert one_dimensional_entropy(RING) == pytest.approx(3)
    assert partition_entropy(RING, pairs) == pytest.approx(2.0)
    assert partition_entropy(RING, halves) == pytest.approx(2.25)
    assert tree_entropy(RING, EncodingTree(8, (pairs, halves))) == pytest.approx(1.75)
    apart = np.array([(0, 1), (2, 3)])
    for size in (4, 5):  # an added isolated vertex changes nothing
        graph = UndirectedGraph.from_edges(size, apart)
        assert one_dimensional_entropy(graph) == pytest.approx(2)
        assert partition_entropy(graph, np.array([0, 0, 1, 1, -1][:size])) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("first", "second", "nats", "normalized"),
    [
        ("000111", "000111", 0.6931, 1),
        ("000111", "111000", 0.6931, 1),
        ("000111", "001011", 0.0566, 0.0817),
        ("000111", "010101", 0.0566, 0.0817),
        ("0011", "0101", 0, 0),
        ("000000", "000111", 0, 0),
    ],
)
def test_oracle_E4_mutual_information(first, second, nats, normalized):
    one, two = labels_of(first), labels_of(second)
    assert mutual_information(one, two) * math.log(2) == pytest.approx(nats, abs=5e-5)
    assert normalized_mutual_information(one, two) == pytest.approx(normalized, abs=5e-5)


def test_oracle_E9_ancestors_of_the_entities_in_the_hits():
    first = EncodingTree(5, (np.array([0, 0, 1, 1, 2]), np.array([0, 0, 0, 0, 1])))  # v1, v2 -> a1; v3 -> a2
    second = EncodingTree(5, (np.array([0, 1, 1, 0, 2]), np.array([0, 0, 0, 0, 1])))
    found = [
        (number, node)
        for vertex in (0, 1)
        for number, tree in enumerate((first, second))
        for node in tree.ancestors(vertex)
    ]
    assert len(found) == 8
    assert set(found) == {(0, (1, 0)), (0, (2, 0)), (1, (1, 0)), (1, (1, 1)), (1, (2, 0))}


def test_oracle_E10_two_heads():
    natural, pairs, one = (EncodingTree(6, (labels,)) for labels in (NATURAL, PAIRS, ONE))
    assert mutual_information(NATURAL, PAIRS) == pytest.approx(0.6667, abs=5e-5)
    assert normalized_mutual_information(NATURAL, PAIRS) == pytest.approx(0.5158, abs=5e-5)

    def objective(first, second, diversity):
        mean = (decoding_information(BARBELL, first) + decoding_information(BARBELL, second)) / 2
        return -mean + diversity * tree_information(first, second)

    for diversity, expected in {
        1: (0.1429, -0.1074, -0.4286),
        0.3: (-0.5571, -0.5740, -0.4286),
        0.5: (-0.3571, -0.4407, -0.4286),
    }.items():
        for other, value in zip((natural, pairs, one), expected, strict=True):
            # The printed values were computed from rounded terms.
            assert objective(natural, other, diversity) == pytest.approx(value, abs=1e-4)


@st.composite
def graphs_and_trees(draw):
    size = draw(st.integers(1, 9))
    vertex = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=20))
    weights = draw(st.lists(st.floats(0.01, 9), min_size=len(edges), max_size=len(edges)))
    graph = UndirectedGraph.from_edges(size, np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(weights))
    below, levels = np.arange(size), []
    for _ in range(draw(st.integers(0, 3))):
        groups = np.array(draw(st.lists(st.integers(0, 3), min_size=9, max_size=9)))
        below = groups[below]
        levels.append(below)
    for number, level in enumerate(levels):  # some clusters do not exist at their level
        missing = draw(st.sets(st.integers(0, 3), max_size=1))
        levels[number] = np.where(np.isin(level, list(missing)), -1, level)
    return graph, EncodingTree(size, tuple(levels))


@settings(deadline=None, max_examples=60)
@given(graphs_and_trees())
def test_decoding_information_and_tree_entropy_add_up(case):
    graph, tree = case
    whole = one_dimensional_entropy(graph)
    assert decoding_information(graph, tree) + tree_entropy(graph, tree) == pytest.approx(whole, abs=1e-9)
    assert decoding_information(graph, tree) >= -1e-12


@settings(deadline=None, max_examples=60)
@given(graphs_and_trees())
def test_contracting_single_child_nodes_changes_no_entropy(case):
    graph, tree = case
    short = tree.contracted()
    assert tree_entropy(graph, short) == pytest.approx(tree_entropy(graph, tree), abs=1e-9)
    assert short.contracted() == short
    assert set(clusters(short).values()) <= set(clusters(tree).values())
    below, vertices = [part for part in nested(short) if isinstance(part, list)], []
    for part in below:
        assert len(part) > 1
        below += [inner for inner in part if isinstance(inner, list)]
        vertices += [inner for inner in part if not isinstance(inner, list)]
    vertices += [part for part in nested(short) if not isinstance(part, list)]
    assert sorted(vertices) == list(range(tree.size))


@pytest.mark.parametrize("labels", [(labels_of("0011"), labels_of("0101")), (labels_of("001"),)])
def test_levels_must_fit_and_nest(labels):
    with pytest.raises(ConfigurationError):
        EncodingTree(4, labels)
