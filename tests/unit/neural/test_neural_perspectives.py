from dataclasses import replace

import numpy as np
import pytest

from sire_core.papers.smart.derive import Perspectives
from sire_core.papers.smart.encoding_tree import (
    EncodingTree,
    UndirectedGraph,
    decoding_information,
    modularity,
    nested_labels,
    normalized_mutual_information,
    repaired_labels,
    tree_of,
)

EDGES = np.array([(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)])
NATURAL, PAIRS = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 2, 2])
SHORT = Perspectives(abstractor="neural", kappa=2, diversity=0.3, epochs=40)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def losses(torch, monkeypatch):
    from sire_core.papers.smart import soft_trees as module

    for name, value in {"_HIDDEN": 32, "_DIMENSION": 32, "_POSITIONS": 8}.items():
        monkeypatch.setattr(module, name, value)
    return module


def barbell(losses, torch):
    return losses.sparse_adjacency(6, torch.from_numpy(EDGES), torch.ones(len(EDGES)))


def one_hot(torch, labels):
    return torch.nn.functional.one_hot(torch.as_tensor(labels)).float()


def planted(blocks, size, seed=0, inside=0.5, outside=0.02):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, blocks, size)
    left, right = np.triu_indices(size, 1)
    chosen = rng.random(len(left)) < np.where(labels[left] == labels[right], inside, outside)
    return UndirectedGraph.from_edges(size, np.stack([left[chosen], right[chosen]], axis=1)), labels


def noise(size, seed=0):
    return np.random.default_rng(seed).standard_normal((size, 16)).astype(np.float32)


def test_oracle_E5_soft_equals_hard(torch, losses):
    adjacency = barbell(losses, torch)
    degrees = adjacency.to_dense().sum(1)

    def saved(*levels, parents=None):
        return losses.soft_decoding_information(adjacency, degrees, levels, parents).item()

    assert saved(one_hot(torch, NATURAL)) == pytest.approx(2.5567 - 1.6995, abs=1e-4)
    assert saved(torch.full((6, 2), 0.5)) == pytest.approx(2.5567 - 2.0567, abs=1e-4)
    assert saved(torch.ones(6, 1)) == pytest.approx(0, abs=1e-6)
    ring = torch.tensor([(i, (i + 1) % 8) for i in range(8)])
    adjacency, degrees = losses.sparse_adjacency(8, ring, torch.ones(8)), torch.full((8,), 2.0)
    pairs, halves = one_hot(torch, [0, 0, 1, 1, 2, 2, 3, 3]), one_hot(torch, [0, 0, 0, 0, 1, 1, 1, 1])
    assert saved(pairs, halves, parents=[one_hot(torch, [0, 0, 1, 1])]) == pytest.approx(3 - 1.75, abs=1e-6)
    assert saved(pairs, halves) == pytest.approx(3 - 1.75, abs=1e-6)  # parents follow from the memberships


def test_oracle_E6_modularity_loss_and_soft_information(torch, losses):
    adjacency = barbell(losses, torch)
    loss = losses.soft_modularity_loss(adjacency, one_hot(torch, NATURAL)).item()
    assert loss == pytest.approx(-5, abs=1e-5)
    assert loss / 14 == pytest.approx(-modularity(UndirectedGraph.from_edges(6, EDGES), NATURAL), abs=1e-6)
    assert losses.soft_modularity_loss(adjacency, torch.full((6, 2), 0.5)).item() == pytest.approx(0, abs=1e-5)
    natural, even = one_hot(torch, NATURAL), torch.full((6, 2), 0.5)
    nats = np.log(2)
    assert losses.soft_mutual_information(natural, natural).item() * nats == pytest.approx(0.6931, abs=5e-5)
    assert losses.soft_mutual_information(natural, even).item() == pytest.approx(0, abs=1e-6)
    assert losses.soft_mutual_information(natural, natural, normalized=True).item() == pytest.approx(1, abs=1e-5)
    found = losses.soft_mutual_information(natural, one_hot(torch, PAIRS), normalized=True).item()
    assert found == pytest.approx(0.5158, abs=5e-5)


@pytest.mark.parametrize(("mu", "natural", "one"), [(1e-3, -11.9020, -13.8040), (None, -5.0, 0.0)])
def test_oracle_E7_small_mu_prefers_one_cluster(torch, losses, mu, natural, one):
    adjacency = barbell(losses, torch)
    assert losses.soft_modularity_loss(adjacency, one_hot(torch, NATURAL), mu).item() == pytest.approx(
        natural, abs=5e-5
    )
    assert losses.soft_modularity_loss(adjacency, torch.ones(6, 1), mu).item() == pytest.approx(one, abs=5e-5)


@pytest.mark.parametrize(
    "changes", [{}, {"nest": "repair"}, {"assign": "sigmoid"}, {"loss": "modularity"}, {"information": "nmi"}]
)
def test_training_finds_planted_blocks(losses, monkeypatch, changes):
    graph, labels = planted(4, 80)
    monkeypatch.setattr(losses, "_BLIND", 0.0)
    settings = replace(SHORT, kappa=1, levels=2, diversity=0.0, **changes)
    (tree,) = losses.abstract_neural(graph, noise(80), settings)
    assert max(normalized_mutual_information(level, labels) for level in tree.filled()) > 0.75
    assert decoding_information(graph, tree) > 0.8 * decoding_information(graph, EncodingTree(80, (labels,)))


def test_overlapping_memberships_sum_to_one(torch, losses, monkeypatch):
    shares, of_two = [], losses.soft_mutual_information

    def spy(first, second, **more):
        shares.append(first.sum(1))
        return of_two(first, second, **more)

    monkeypatch.setattr(losses, "soft_mutual_information", spy)
    losses.abstract_neural(planted(4, 80)[0], noise(80), replace(SHORT, assign="sigmoid", nest="repair", levels=2))
    assert torch.allclose(torch.stack(shares), torch.ones(80), atol=1e-5)


@pytest.mark.parametrize("nest", ["chain", "repair"])
@pytest.mark.parametrize("assign", ["softmax", "sigmoid"])
def test_clusters_are_the_largest_logits_where_memberships_are_all_one(losses, monkeypatch, assign, nest):
    monkeypatch.setattr(losses, "_POSITIONS", 0)
    labels = np.repeat(np.arange(3), 3)  # triangles of equal features, and all features alike
    features = (np.eye(3, dtype=np.float32) + 2)[labels]
    edges = np.array([(i, j) for i in range(9) for j in range(i) if labels[i] == labels[j]])
    settings = replace(
        SHORT, kappa=1, levels=1, sizes=(6,), diversity=0.0, epochs=1, polish=0, assign=assign, nest=nest
    )
    (tree,) = losses.abstract_neural(UndirectedGraph.from_edges(9, edges), features, settings)
    assert [level.tolist() for level in tree.filled()] == [labels.tolist()]


def test_equal_seeds_give_equal_trees(torch, losses):
    graph, _ = planted(3, 50)
    state = torch.random.get_rng_state()
    first, second = (losses.abstract_neural(graph, noise(50), SHORT, 4) for _ in range(2))
    assert first == second
    assert torch.equal(state, torch.random.get_rng_state())  # no global seed is touched
    assert len(first) == 2


@pytest.mark.parametrize(("size", "edges"), [(0, []), (3, [(0, 1), (1, 2)]), (9, []), (9, [(0, 1)])])
def test_too_little_to_train_on_is_a_root_only(losses, size, edges):
    graph = UndirectedGraph.from_edges(size, np.array(edges, dtype=np.int64).reshape(-1, 2))
    assert losses.abstract_neural(graph, noise(size), SHORT) == (EncodingTree(size),)


def test_hardening_nests():
    finest = np.array([0, 0, 1, 1, 2, 2])
    assert [level.tolist() for level in nested_labels(finest, [np.array([0, 0, 1])])] == [
        finest.tolist(),
        [0, 0, 0, 0, 1, 1],
    ]
    torn = np.array([5, 5, 5, 7, 3, 7])  # the middle and the last pair are ties
    assert repaired_labels([finest, torn])[1].tolist() == [5, 5, 5, 5, 3, 3]
    tree = tree_of(nested_labels(finest, [np.array([0, 0, 1])]), np.array([1, 2, 3, 4, 5, 7]), 8)
    assert [level.tolist() for level in tree.labels] == [[-1, 0, 0, 1, 1, 2, -1, 2], [-1, 0, 0, 0, 0, -1, -1, -1]]


def two_planted(size, blocks, inside, seed=0):
    """Edges inside the blocks of two independent partitions of the same vertices, and a few anywhere."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, blocks, size), rng.integers(0, blocks, size)
    left, right = np.triu_indices(size, 1)
    chance = 0.005 + inside * (first[left] == first[right]) + inside * (second[left] == second[right])
    chosen = rng.random(len(left)) < chance
    return UndirectedGraph.from_edges(size, np.stack([left[chosen], right[chosen]], axis=1)), first, second


@pytest.mark.slow
def test_polished_heads_find_both_planted_partitions(losses):
    graph, first, second = two_planted(200, 4, 0.3)

    def worst(rounds):
        trees = losses.abstract_neural(graph, noise(200), replace(SHORT, polish=rounds), 1)
        return min(
            max(normalized_mutual_information(level, part) for tree in trees for level in tree.filled())
            for part in (first, second)
        )

    assert worst(0) < 0.9
    assert worst(4) >= 0.9
