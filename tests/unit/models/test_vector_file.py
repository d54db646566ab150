"""Vectors that wait for a commit take no memory to speak of, and leave no file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np

from sire_core.models.embedding import VectorFile

_MANY = 10_000


def _filled(directory: Path | None, vectors: np.ndarray) -> VectorFile:
    found = VectorFile(directory)
    for place, vector in enumerate(vectors):
        found.put([f"unit {place}", f"same as {place}"], vector)
    return found


def test_every_vector_is_found_under_its_ids(tmp_path: Path) -> None:
    vectors = np.random.default_rng(7).random((_MANY, 384), dtype=np.float32)  # 15 MB: more than stays in memory
    found = _filled(tmp_path, vectors)
    for place in (0, 1, 4_321, _MANY - 1):
        np.testing.assert_array_equal(found[f"unit {place}"], vectors[place])
        np.testing.assert_array_equal(found[f"same as {place}"], vectors[place])
    found.put(["one more"], vectors[5])  # after reading
    np.testing.assert_array_equal(found["one more"], vectors[5])
    np.testing.assert_array_equal(found["unit 9999"], vectors[9999])
    assert "another" not in found
    assert len(found) == 2 * _MANY + 1
    assert not list(tmp_path.iterdir())  # nothing that a crash could leave


def test_a_vector_takes_less_memory_than_its_numbers(tmp_path: Path) -> None:
    vectors = np.ones((_MANY, 512), dtype=np.float32)
    tracemalloc.start()
    try:
        found = _filled(tmp_path, vectors)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 2 * _MANY
    assert held < vectors.nbytes / 4
