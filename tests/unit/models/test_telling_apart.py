"""Fingerprints of models without a name: what they answer, whatever its last digits."""

import itertools

import numpy as np
import pytest

from sire_core.models.embedders import answer_text, same_model


def fingerprint(vector):
    return f"theirs:Model:{answer_text('Model', lambda text: vector.tolist())}"


@pytest.mark.parametrize("size", [4, 32, 1536])
def test_noise_makes_no_other_model_and_other_models_are_told_apart(size):
    random = np.random.default_rng(size)
    vectors = random.normal(size=(1500, size)) * random.uniform(0.01, 10, size=(1500, 1))
    noise = random.normal(size=vectors.shape) * 1e-3 * np.abs(vectors).mean(axis=1, keepdims=True)
    before, after = ([fingerprint(vector) for vector in found] for found in (vectors, vectors + noise))
    assert any(one != other for one, other in zip(before, after, strict=True))
    assert all(same_model(one, other) for one, other in zip(before, after, strict=True))
    assert not any(same_model(one, other) for one, other in itertools.pairwise(before))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("theirs:Model:small", "theirs:Model:small", True),
        ("theirs:Model:7-12", "theirs:Model:7-13", False),
        ("theirs:Model:answers-2-8080", "theirs:Model:answers-2-8181", True),
        ("theirs:Model:answers-2-8080", "theirs:Model:answers-2-8280", False),
        ("theirs:Model:answers-2-8080", "theirs:Model:answers-3-8080", False),
        ("theirs:Model:answers-2-8080", "theirs:Model:answers-2-80", False),
        ("theirs:Model:answers-2-8080", "others:Model:answers-2-8080", False),
    ],
)
def test_only_what_was_answered_may_differ_a_little(one, other, expected):
    assert same_model(one, other) is same_model(other, one) is expected
