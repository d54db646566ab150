"""Nearest neighbors, exact and approximate."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sire_core.arrays.nearest_neighbors import approximate_neighbors, nearest_neighbors


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


def test_threads_change_nothing():
    code = (
        "import hashlib, numpy as np; from sire_core.papers.trees.clustering import soft_clusters as s;"
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


def positive(lists):
    indices, similarities = lists
    return [
        [(int(i), float(s)) for i, s in zip(row, scores, strict=True) if s > 0]
        for row, scores in zip(indices, similarities, strict=True)
    ]


@pytest.mark.parametrize("size", [1, 2, 7, 2000])
def test_approximate_neighbors_are_nearly_the_exact_ones(size):
    rng = np.random.default_rng(size)
    topics = rng.standard_normal((40, 24))
    vectors = (topics[rng.integers(0, 40, size)] + rng.standard_normal((size, 24))).astype(np.float32)
    exact, found = positive(nearest_neighbors(vectors, 5)), positive(approximate_neighbors(vectors, 5))
    same = sum(len(set(a) & set(b)) for a, b in zip(exact, found, strict=True))
    assert same >= 0.9 * sum(map(len, exact))
    assert all(scores == sorted(scores, reverse=True) for scores in ([s for _, s in row] for row in found))
    assert positive(approximate_neighbors(vectors, 5)) == found


def test_approximate_neighbors_of_equal_rows_and_of_nothing():
    same = np.ones((400, 8), dtype=np.float32)
    indices, cosines = approximate_neighbors(same, 3)
    assert (cosines == 1).all()
    assert (indices != np.arange(400)[:, None]).all()
    assert all(len(set(row)) == 3 for row in indices.tolist())
    _, cosines = approximate_neighbors(np.zeros((400, 8), dtype=np.float32), 3)
    assert (cosines <= 0).all()
