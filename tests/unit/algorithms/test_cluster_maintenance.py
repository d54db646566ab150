"""Clusters that follow a changing corpus."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.trees.clustering import neighbors_together, place_rows, soft_clusters


def groups(seed, count=12, size=6, dimension=24):
    rng = np.random.default_rng(seed)
    centers = np.repeat(rng.standard_normal((count, dimension)), size, axis=0)
    rows = centers + 0.2 * rng.standard_normal(centers.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_a_new_row_joins_its_group_and_nothing_else_changes():
    vectors = groups(3)
    clusters = [list(range(start, start + 6)) for start in range(0, 72, 6)]
    without = [[row for row in cluster if row != 31] for cluster in clusters]
    assert place_rows(vectors, without) == clusters


def test_rows_of_a_new_group_make_a_cluster_of_their_own():
    vectors = groups(4)
    clusters = [list(range(start, start + 6)) for start in range(0, 66, 6)]
    placed = place_rows(vectors, clusters)
    assert placed[:11] == clusters
    assert placed[11:] == [list(range(66, 72))]


def test_one_row_and_rows_without_any_likeness():
    assert place_rows(np.ones((1, 4), dtype=np.float32), []) == [[0]]
    assert place_rows(np.eye(4, dtype=np.float32), [[0, 1], [2]]) == [[0, 1, 3], [2]]
    assert sorted(row for members in place_rows(np.zeros((5, 4), np.float32), []) for row in members) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(4))
def test_maintained_clusters_hold_neighbors_as_fresh_ones_do(seed):
    vectors = groups(seed, count=40)
    late = np.arange(0, 240, 8)
    early = np.setdiff1d(np.arange(240), late)
    built = soft_clusters(vectors[early], rng=np.random.default_rng(0))
    placed = place_rows(vectors, [early[cluster].tolist() for cluster in built])
    fresh = soft_clusters(vectors, rng=np.random.default_rng(0))
    assert neighbors_together(vectors, placed) >= neighbors_together(vectors, fresh) - 0.02


@given(st.integers(0, 99), st.integers(1, 5), st.data())
def test_every_row_has_a_place_and_clusters_only_grow(seed, size, data):
    vectors = groups(seed, 4, size, 5)
    rows = st.lists(st.integers(0, len(vectors) - 1), min_size=1, max_size=5, unique=True).map(sorted)
    clusters = data.draw(st.lists(rows, max_size=4))
    shrunk = data.draw(st.sets(st.integers(0, 3)))
    placed = place_rows(vectors, clusters, shrunk)
    assert {row for members in placed for row in members} == set(range(len(vectors)))
    for number, (was, now) in enumerate(zip(clusters, placed, strict=False)):
        assert set(was) <= set(now) or (now == [] and number in shrunk and len(was) == 1)
        assert now == sorted(set(now))
    assert placed == place_rows(vectors, clusters, shrunk)
