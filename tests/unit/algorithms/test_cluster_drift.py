"""Drift of stored clusters from a changed corpus."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.trees.clustering import neighbors_together, soft_clusters


def groups(seed, count=12, size=6, dimension=24):
    rng = np.random.default_rng(seed)
    centers = np.repeat(rng.standard_normal((count, dimension)), size, axis=0)
    rows = centers + 0.2 * rng.standard_normal(centers.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_pairs_by_hand():
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], dtype=np.float32)
    assert neighbors_together(vectors, [[0, 1], [2, 3]]) == 1.0
    assert neighbors_together(vectors, [[0, 1]]) == 0.5
    assert neighbors_together(vectors, [[0, 2], [1, 3]]) == 0.0
    assert neighbors_together(vectors, [[0, 1], [1, 2, 3]], neighbors=3) == pytest.approx(8 / 12)
    assert neighbors_together(vectors[:1], []) == 1.0


def test_clusters_that_stay_while_rows_come_lose_neighbours():
    old, new = groups(1), groups(2)
    stored = soft_clusters(old, rng=np.random.default_rng(0))
    built = neighbors_together(old, stored)
    grown = np.concatenate([old, new])
    fresh = soft_clusters(grown, rng=np.random.default_rng(0))
    assert neighbors_together(grown, stored) < 0.95 * built
    assert neighbors_together(grown, fresh) > 0.95 * built
    assert neighbors_together(grown, fresh, sample=60) == pytest.approx(neighbors_together(grown, fresh), abs=0.1)


@given(st.integers(0, 50), st.integers(1, 5))
def test_it_is_a_share_and_whole_for_one_cluster(seed, neighbors):
    vectors = groups(seed, 3, 4, 5)
    clusters = soft_clusters(vectors, rng=np.random.default_rng(seed))
    assert 0 <= neighbors_together(vectors, clusters, neighbors=neighbors) <= 1
    assert neighbors_together(vectors, [range(len(vectors))], neighbors=neighbors) == 1.0
