"""Drift of stored clusters from a changed corpus."""

import numpy as np
import pytest

from sire_core.trees.clustering import neighbors_together


def test_pairs_by_hand():
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], dtype=np.float32)
    assert neighbors_together(vectors, [[0, 1], [2, 3]]) == 1.0
    assert neighbors_together(vectors, [[0, 1]]) == 0.5
    assert neighbors_together(vectors, [[0, 2], [1, 3]]) == 0.0
    assert neighbors_together(vectors, [[0, 1], [1, 2, 3]], neighbors=3) == pytest.approx(8 / 12)
    assert neighbors_together(vectors[:1], []) == 1.0
