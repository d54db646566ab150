"""Nearest neighbours, and clusters of trees: soft and as published, kept up to date, measured."""

import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.extend import approximate_neighbors, nearest_neighbors
from sire_core.papers.trees.clustering import (
    paper_clusters,
    place_rows,
    soft_clusters,
    soft_labels,
    split_by_tokens,
)
from support.command import run_python


def clusters_of(vectors, seed=0, **options):
    return soft_clusters(np.asarray(vectors, np.float32), rng=np.random.default_rng(seed), **options)


def lists(clusters):
    return [cluster.tolist() for cluster in clusters]


def check(clusters, n):
    plain = lists(clusters)
    assert sorted({row for cluster in plain for row in cluster}) == list(range(n))
    assert all(cluster == sorted(set(cluster)) for cluster in plain)
    assert all(len(cluster) > 1 for cluster in plain) or n == 1
    assert plain == sorted(plain)
    assert len({tuple(cluster) for cluster in plain}) == len(plain)
    assert all(cluster.dtype == np.int64 for cluster in clusters)


def blobs(groups, size, d=16, noise=0.15, seed=0):
    rng = np.random.default_rng(seed)
    centers = np.repeat(rng.standard_normal((groups, d)), size, axis=0)
    return (centers + noise * rng.standard_normal(centers.shape)).astype(np.float32)


@st.composite
def matrices(draw):
    n = draw(st.integers(0, 90))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    kind = draw(st.sampled_from(["normal", "grid", "duplicates", "one zero", "all zero", "all equal"]))
    vectors = rng.standard_normal((n, 6)).astype(np.float32)
    if kind == "grid":
        vectors = rng.integers(-1, 2, (n, 3)).astype(np.float32)
    elif kind == "duplicates" and n:
        vectors = vectors[rng.integers(0, max(1, n // 4), n)]
    elif kind == "one zero" and n:
        vectors[rng.integers(n)] = 0
    elif kind == "all zero":
        vectors[:] = 0
    elif kind == "all equal":
        vectors[:] = 1
    return vectors


@settings(max_examples=120, deadline=None)
@given(matrices(), st.integers(1, 12), st.integers(0, 3))
def test_every_row_is_covered_and_nothing_is_alone(vectors, neighbors, seed):
    first = clusters_of(vectors, seed, neighbors=neighbors)
    check(first, len(vectors))
    assert lists(first) == lists(clusters_of(vectors, seed, neighbors=neighbors))


@pytest.mark.parametrize("n", [1, 2, 3, 11])
def test_oracle_R2_eleven_nodes_are_one_cluster(n):
    assert lists(clusters_of(blobs(n, 1))) == [list(range(n))]


def test_separate_groups_are_found():
    assert lists(clusters_of(blobs(20, 9))) == [list(range(start, start + 9)) for start in range(0, 180, 9)]


def test_a_row_between_two_groups_is_in_both():
    vectors = blobs(16, 6, noise=0.05, seed=3)
    between = vectors[:6].mean(axis=0) + vectors[6:12].mean(axis=0)
    homes = [set(cluster) for cluster in lists(clusters_of(np.vstack([vectors, between]))) if 96 in cluster]
    assert len(homes) == 2
    assert homes[0] >= set(range(6))
    assert homes[1] >= set(range(6, 12))


# The token guard


def split(cluster, tokens, vectors, limit):
    return split_by_tokens(cluster, np.asarray(tokens), vectors, limit, rng=np.random.default_rng(0))


def test_what_clustering_cannot_shorten_is_cut_in_order_into_the_fewest_even_parts():
    vectors = np.ones((9, 4), np.float32)
    assert lists(split(range(9), [10] * 9, vectors, 40)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert lists(split([0, 2, 3, 5], [30, 0, 5, 5, 0, 30], vectors, 40)) == [[0, 2], [3, 5]]


@settings(max_examples=60, deadline=None)
@given(matrices(), st.integers(1, 400), st.integers(0, 2**31))
def test_parts_cover_the_cluster_within_the_limit(vectors, limit, seed):
    n = len(vectors)
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 90, n)
    rows = np.flatnonzero(rng.random(n) < 0.7).tolist()
    parts = lists(split(rows, tokens, vectors, limit))
    assert sorted({row for part in parts for row in part}) == rows
    assert all(tokens[part].sum() <= limit or len(part) == 1 for part in parts)
    assert parts == sorted(parts)


needs_umap = pytest.mark.skipif(find_spec("umap") is None, reason="extra `paper` is not installed")


def members(labels):
    return [set(np.flatnonzero(row).tolist()) for row in labels]


def test_oracle_S4_labels_at_threshold():
    assert members(soft_labels(np.array([[0.85, 0.12, 0.03]]))) == [{0, 1}]
    assert members(soft_labels(np.array([[0.9, 0.1]]))) == [{0}]
    assert members(soft_labels(np.full((1, 20), 0.05), repair=False)) == [set()]
    assert members(soft_labels(np.full((1, 20), 0.05))) == [{0}]


def tight_blobs(groups, size):
    rng = np.random.default_rng(7)
    centers = np.repeat(rng.standard_normal((groups, 12)), size, axis=0)
    return (centers + 0.1 * rng.standard_normal(centers.shape)).astype(np.float32)


def test_eleven_rows_need_no_umap():
    rng = np.random.default_rng(0)
    assert [part.tolist() for part in paper_clusters(tight_blobs(11, 1), rng=rng)] == [list(range(11))]
    assert paper_clusters(np.empty((0, 3), np.float32), rng=rng) == []


def test_missing_umap_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ConfigurationError, match=r'pip install "sire-rag\[paper\]"'):
        soft_clusters(tight_blobs(3, 5), rng=np.random.default_rng(0), method="paper")


@needs_umap
@pytest.mark.parametrize(
    "vectors",
    [
        tight_blobs(4, 12),
        np.ones((14, 4), np.float32),
        np.zeros((12, 4), np.float32),
        np.repeat(tight_blobs(3, 2), 4, axis=0),
    ],
    ids=["groups", "all equal", "all zero", "duplicates"],
)
def test_paper_method_covers_every_row_and_repeats(vectors):
    first, second = (soft_clusters(vectors, rng=np.random.default_rng(4), method="paper") for _ in range(2))
    assert [part.tolist() for part in first] == [part.tolist() for part in second]
    assert sorted({row for part in first for row in part.tolist()}) == list(range(len(vectors)))


def groups(seed, count=12, size=6, dimension=24):
    rng = np.random.default_rng(seed)
    centers = np.repeat(rng.standard_normal((count, dimension)), size, axis=0)
    rows = centers + 0.2 * rng.standard_normal(centers.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(0, 99), st.integers(1, 5), st.data())
def test_every_row_is_placed_and_clusters_only_grow(seed, size, data):
    vectors = groups(seed, 4, size, 5)
    rows = st.lists(st.integers(0, len(vectors) - 1), min_size=1, max_size=5, unique=True).map(sorted)
    clusters = data.draw(st.lists(rows, max_size=4))
    placed = place_rows(vectors, clusters)
    assert {row for members in placed for row in members} == set(range(len(vectors)))
    for before, after in zip(clusters, placed, strict=False):
        assert set(before) <= set(after)
        assert after == sorted(set(after))
    assert all(len(members) > 1 for members in placed[len(clusters) :]) or len(vectors) == 1
    assert placed == place_rows(vectors, clusters)


def test_new_rows_join_their_group_or_are_a_new_one():
    vectors = np.vstack([blobs(5, 8, seed=1), np.ones((1, 16), np.float32)])
    clusters = [list(range(start, start + 6)) for start in range(0, 32, 8)]  # the fifth group is new, two of each other
    placed = place_rows(vectors[:40], clusters)
    assert placed == [list(range(start, start + 8)) for start in range(0, 40, 8)]


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
        run = run_python(code, env=environment)
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
