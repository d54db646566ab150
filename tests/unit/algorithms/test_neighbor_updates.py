"""Neighbours after a change are those of a fresh search; approximate ones are nearly so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.algorithms import neighbor_updates as module
from sire_core.algorithms.neighbor_updates import approximate_neighbors, updated_neighbors
from sire_core.algorithms.neighbors import nearest_neighbors


def positive(lists):
    indices, similarities = lists
    return [
        [(int(i), float(s)) for i, s in zip(row, scores, strict=True) if s > 0]
        for row, scores in zip(indices, similarities, strict=True)
    ]


def carried(vectors, k, kept, gone):
    """Lists over the old rows `kept` + `gone` in numbers of `kept`, as stored edges tell of them."""
    rows = np.sort(np.concatenate((kept, gone)))
    indices, similarities = nearest_neighbors(vectors[rows], k)
    place = {row: i for i, row in enumerate(kept)}
    known = np.zeros((len(kept), k), dtype=np.int64), np.full((len(kept), k), -2.0)
    stale = np.zeros(len(kept), dtype=bool)
    for row, i in place.items():
        own = int(np.searchsorted(rows, row))
        listed = [(rows[j], s) for j, s in zip(indices[own], similarities[own], strict=True) if s > 0]
        stale[i] = any(j not in place for j, _ in listed)
        left = [(place[j], s) for j, s in listed if j in place]
        known[0][i, : len(left)] = [j for j, _ in left]
        known[1][i, : len(left)] = [s for _, s in left]
    return known, stale


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 5), new=st.integers(0, 6), gone=st.integers(0, 3))
def test_updated_lists_equal_fresh_ones(seed, k, new, gone):
    rng = np.random.default_rng(seed)
    # Few directions: many ties, and rows without any positive neighbour.
    vectors = rng.integers(-1, 2, (40, 3 + seed % 5)).astype(np.float32)
    known, stale = carried(vectors, k, np.arange(gone, 40 - new), np.arange(gone))
    after = vectors[gone:]
    grown = (
        np.concatenate((known[0], np.zeros((new, k), np.int64))),
        np.concatenate((known[1], np.full((new, k), -2.0))),
    )
    fresh = np.arange(40 - gone) >= 40 - gone - new
    found = updated_neighbors(after, k, grown, fresh, np.concatenate((stale, np.zeros(new, bool))))
    assert positive(found) == positive(nearest_neighbors(after, k))


def test_a_small_change_does_not_compare_everything(monkeypatch):
    vectors = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    known, stale = carried(vectors, 3, np.arange(299), np.arange(0))
    searched = []

    def counting(vectors, k, rows=None, among=None):
        searched.append((len(vectors) if rows is None else len(rows)) * (len(vectors) if among is None else len(among)))
        return nearest_neighbors(vectors, k, rows, among)

    monkeypatch.setattr(module, "nearest_neighbors", counting)
    grown = (np.pad(known[0], ((0, 1), (0, 0))), np.pad(known[1], ((0, 1), (0, 0)), constant_values=-2.0))
    updated_neighbors(vectors, 3, grown, np.arange(300) == 299, np.pad(stale, (0, 1)))
    assert sum(searched) < 1000 < 300 * 300


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
