"""RAPTOR's own clustering."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sire_core.errors import ConfigurationError
from sire_core.trees.clustering import paper_clusters, soft_clusters, soft_labels

needs_umap = pytest.mark.skipif(find_spec("umap") is None, reason="extra `paper` is not installed")


def members(labels):
    return [set(np.flatnonzero(row).tolist()) for row in labels]


def test_oracle_S4_labels_at_threshold():
    assert members(soft_labels(np.array([[0.85, 0.12, 0.03]]))) == [{0, 1}]
    assert members(soft_labels(np.array([[0.9, 0.1]]))) == [{0}]
    assert members(soft_labels(np.full((1, 20), 0.05), repair=False)) == [set()]
    assert members(soft_labels(np.full((1, 20), 0.05))) == [{0}]


@given(arrays(np.float64, st.tuples(st.integers(0, 9), st.integers(1, 7)), elements=st.floats(0, 1)))
def test_repair_leaves_nobody_out_and_changes_nobody_else(posteriors):
    repaired, literal = soft_labels(posteriors), soft_labels(posteriors, repair=False)
    assert repaired.any(axis=1).all()
    kept = literal.any(axis=1)
    np.testing.assert_array_equal(repaired[kept], literal[kept])


def blobs(groups, size):
    rng = np.random.default_rng(7)
    centers = np.repeat(rng.standard_normal((groups, 12)), size, axis=0)
    return (centers + 0.1 * rng.standard_normal(centers.shape)).astype(np.float32)


def test_eleven_rows_need_no_umap():
    rng = np.random.default_rng(0)
    assert [part.tolist() for part in paper_clusters(blobs(11, 1), rng=rng)] == [list(range(11))]
    assert paper_clusters(np.empty((0, 3), np.float32), rng=rng) == []


def test_missing_umap_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ConfigurationError, match=r'pip install "sire-rag\[paper\]"'):
        soft_clusters(blobs(3, 5), rng=np.random.default_rng(0), method="paper")


@needs_umap
@pytest.mark.parametrize(
    "vectors",
    [blobs(4, 12), np.ones((14, 4), np.float32), np.zeros((12, 4), np.float32), np.repeat(blobs(3, 2), 4, axis=0)],
    ids=["groups", "all equal", "all zero", "duplicates"],
)
def test_paper_method_covers_every_row_and_repeats(vectors):
    first, second = (soft_clusters(vectors, rng=np.random.default_rng(4), method="paper") for _ in range(2))
    assert [part.tolist() for part in first] == [part.tolist() for part in second]
    assert sorted({row for part in first for row in part.tolist()}) == list(range(len(vectors)))
    assert all(len(part) > 1 for part in first)
