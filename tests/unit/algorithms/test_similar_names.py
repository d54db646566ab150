import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sire_core.knowledge.names import similar_names


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_shared_word_and_a_similar_vector_are_both_needed():
    names = ["Mira Vale", "Vale Mira Anna", "Port Amber", "Anna Berg"]
    vectors = unit([[1, 0], [1, 0.1], [1, 0], [0, 1]])
    first, second, cosines = similar_names(names, vectors, 0.9)
    assert list(zip(first, second, strict=True)) == [(0, 1)]  # 2 shares no word, 3 shares one but points elsewhere
    assert cosines[0] > 0.99


def test_a_word_of_too_many_names_links_none():
    names = [f"Bridge {letter}" for letter in "abcdef"]
    vectors = unit([[1, 0]] * 6)
    assert len(similar_names(names, vectors, 0.5, max_names_per_word=5)[0]) == 0
    assert len(similar_names(names, vectors, 0.5, max_names_per_word=6)[0]) == 15


@given(
    st.lists(st.sampled_from(["red fox", "red", "fox den", "old den", "sea"]), max_size=12),
    st.floats(-1, 1),
    st.integers(0, 99),
)
def test_it_finds_what_comparing_all_pairs_finds(names, threshold, seed):
    vectors = unit(np.random.default_rng(seed).normal(size=(len(names), 3))) if names else np.empty((0, 3), np.float32)
    first, second, _ = similar_names(names, vectors, threshold)
    expected = [
        (i, j)
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if set(names[i].split()) & set(names[j].split())
        and np.einsum("d,d->", vectors[i], vectors[j], dtype=np.float32) >= threshold + 1e-5
    ]
    assert set(expected) <= set(zip(first.tolist(), second.tolist(), strict=True))
    assert all(set(names[i].split()) & set(names[j].split()) for i, j in zip(first, second, strict=True))
