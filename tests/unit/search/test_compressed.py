"""Compressed vectors find what a scan of all vectors does."""

import faiss
import numpy as np
import pytest

from sire_core.search.ranking import best_first
from sire_core.search.vectors.sq_index import SQIndex, sq_pays


def unit(rows):
    return (rows / np.maximum(1e-9, np.linalg.norm(rows, axis=-1, keepdims=True))).astype(np.float32)


def matrices():
    rng = np.random.default_rng(0)
    spread = rng.standard_normal((5000, 48))
    peaked = spread**5
    repeated = np.repeat(spread[:500], 10, axis=0)
    nothing = np.where(np.arange(5000)[:, None] % 2, spread, 0.0)
    return {"spread": spread, "peaked": peaked, "repeated": repeated, "half of nothing": nothing}


@pytest.mark.parametrize("name", matrices())
def test_the_nearest_rows_are_those_of_the_exact_scan(name):
    matrix = unit(matrices()[name])
    index = SQIndex.make(matrix)
    found = 0
    for question in unit(np.concatenate([np.random.default_rng(1).standard_normal((20, 48)), matrix[:20] + 0.01])):
        scores = matrix @ question
        for n in (1, 10, 100):
            best = index.best(question, n)
            if best is not None:
                found += 1
                np.testing.assert_allclose(best[1], scores[best_first(scores, n)], atol=1e-6)
                np.testing.assert_allclose(best[1], scores[best[0]], atol=1e-6)
                assert len(set(best[0].tolist())) == n
    assert found or name == "repeated", "ten equal rows around every border cannot be told apart"


@pytest.mark.parametrize("name", matrices())
def test_rows_that_follow_others_are_rounded_as_all_at_once(name):
    matrix = unit(matrices()[name])
    whole = SQIndex.make(matrix)
    for first in (matrix[:1], matrix[:3000], matrix, matrix[::-1], matrix[1:], matrix[:100] * 2):
        grown = SQIndex.make(matrix, SQIndex.make(first))
        assert (grown.scale, grown.error, len(grown.matrix)) == (whole.scale, whole.error, len(matrix))
        assert faiss.serialize_index(grown.codes).tobytes() == faiss.serialize_index(whole.codes).tobytes()


def test_what_is_near_nothing_is_scanned():
    index = SQIndex.make(np.zeros((100, 16), dtype=np.float32))
    assert index.best(np.zeros(16, dtype=np.float32), 3) is None
    assert index.best(unit(np.ones(16)), 3) is None
    assert not sq_pays(4_000, 512)
    assert sq_pays(100_000, 512)
