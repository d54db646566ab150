"""Exact neighbours and their graph."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sire_core.algorithms.neighbors import nearest_neighbors, neighbor_graph
from sire_core.errors import ConfigurationError


def brute_force(vectors, k):
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)
    scores = unit @ unit.T
    np.fill_diagonal(scores, -np.inf)
    return np.sort(scores, axis=1)[:, ::-1][:, :k]


@pytest.mark.parametrize(("n", "d", "k"), [(2, 3, 1), (9, 4, 8), (300, 16, 5), (1300, 48, 8)])
def test_neighbors_equal_brute_force(n, d, k):
    vectors = np.random.default_rng(n).standard_normal((n, d)).astype(np.float32)
    indices, similarities = nearest_neighbors(vectors, k)
    assert indices.shape == similarities.shape == (n, k)
    np.testing.assert_allclose(similarities, brute_force(vectors, k), atol=3e-6)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(np.einsum("ijk,ik->ij", unit[indices], unit), similarities, atol=2e-6)
    assert (indices != np.arange(n)[:, None]).all()


def test_ties_go_to_the_lower_row():
    indices, similarities = nearest_neighbors(np.ones((700, 5), np.float32), 3)
    assert indices[0].tolist() == [1, 2, 3]
    assert indices[2].tolist() == [0, 1, 3]
    assert indices[699].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(similarities, 1.0)


def test_more_neighbors_than_rows_and_tiny_inputs():
    assert nearest_neighbors(np.eye(3, dtype=np.float32), 8)[0].tolist() == [[1, 2], [0, 2], [0, 1]]
    assert nearest_neighbors(np.ones((1, 4), np.float32), 8)[0].shape == (1, 0)
    assert nearest_neighbors(np.ones((0, 4), np.float32), 8)[0].shape == (0, 0)


def test_zero_rows_have_similarity_zero():
    vectors = np.array([[0, 0], [1, 0], [3, 0], [0, 0]], np.float32)
    indices, similarities = nearest_neighbors(vectors, 2)
    assert indices[0].tolist() == [1, 2]
    assert similarities[0].tolist() == [0.0, 0.0]
    assert indices[1, 0] == 2
    assert similarities[1, 0] == 1.0


def test_threads_change_nothing():
    code = (
        "import hashlib, numpy as np; from sire_core.trees.clustering import soft_clusters as s;"
        "v = np.random.default_rng(1).standard_normal((1500, 96)).astype('float32'); v[700:750] = v[:50];"
        "c = s(v, rng=np.random.default_rng(2)); print(hashlib.sha256(repr([x.tolist() for x in c]).encode()).hexdigest())"
    )
    answers = set()
    for threads in ("1", "2"):
        environment = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        answers.add(run.stdout.strip())
    assert len(answers) == 1
    assert len(answers.pop()) == 64


def test_graph_weights_by_rank_and_mutual_liking():
    # 0 and 1 choose each other first, 2 chooses 0 first and is chosen by nobody; 2 and 3 have similarity 0.
    indices = np.array([[1], [0], [0], [2]])
    graph = neighbor_graph(indices, np.array([[0.9], [0.9], [0.5], [0.0]]))
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 0.5
    expected[0, 2] = expected[2, 0] = 0.5 / 4
    np.testing.assert_allclose(graph.toarray(), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_named(bad):
    vectors = np.ones((4, 2), np.float32)
    vectors[2, 1] = bad
    with pytest.raises(ConfigurationError, match="vector 2 is not finite"):
        nearest_neighbors(vectors, 1)


def test_bad_arguments():
    with pytest.raises(ConfigurationError, match="at least 1"):
        nearest_neighbors(np.ones((4, 2), np.float32), 0)
    with pytest.raises(ConfigurationError, match="one row per text"):
        nearest_neighbors(np.ones(4, np.float32), 1)
