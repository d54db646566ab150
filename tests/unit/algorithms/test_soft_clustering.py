"""Soft clusters and the token guard: invariants, tiny inputs, degenerate vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.trees.clustering import soft_clusters, split_by_tokens


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


def test_larger_resolution_makes_more_clusters():
    vectors = np.random.default_rng(2).standard_normal((500, 12))
    assert len(clusters_of(vectors, resolution=0.05)) > len(clusters_of(vectors, resolution=0.01))


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
