"""Positions of values in arrays, and their numbers by appearance, against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest

from sire_core.arrays.grouping import by_appearance, numbered, places_in, positions_in, stable_argsort


@pytest.mark.parametrize("size", [0, 1, 40])
@pytest.mark.parametrize("wanted_size", [0, 1, 3, 60])
@pytest.mark.parametrize("kept", [0, 1, 30])
def test_positions_are_those_of_a_dictionary(size: int, wanted_size: int, kept: int) -> None:
    """Most values where they were, or none; fewer wanted than known, or more; some twice, some unknown."""
    rng = np.random.default_rng(size + wanted_size + kept)
    keys = rng.permutation(100)[:size]
    wanted = np.concatenate([keys[:kept], rng.integers(0, 100, wanted_size)])
    positions = {key: position for position, key in enumerate(keys.tolist())}
    assert positions_in(keys, wanted).tolist() == [positions.get(value, -1) for value in wanted.tolist()]
    names, wanted_names = (np.array([f"{value:03}" for value in values], dtype="S3") for values in (keys, wanted))
    assert positions_in(names, wanted_names).tolist() == positions_in(keys, wanted).tolist()


@pytest.mark.parametrize("scale", [1, 1 << 40])
def test_numbers_follow_the_first_appearance(scale: int) -> None:
    values = np.array([7, 3, 7, 9, 3, 1], dtype=np.int64) * scale
    numbers, first = by_appearance(values)
    assert numbers.tolist() == [0, 1, 0, 2, 1, 3]
    assert first.tolist() == [0, 1, 3, 5]


@pytest.mark.parametrize("size", [0, 1, 2, 500])
@pytest.mark.parametrize("values_are", [3, 10_000])
def test_sorted_numbers_and_places_are_those_of_numpy(size: int, values_are: int) -> None:
    values = np.random.default_rng(size).integers(0, values_are, size).astype(np.uint64)
    expected = np.unique(values, return_index=True, return_inverse=True)
    assert [part.tolist() for part in numbered(values)] == [part.tolist() for part in expected]
    assert stable_argsort(values).tolist() == np.argsort(values, kind="stable").tolist()
    keys = np.unique(values[::2])
    assert places_in(keys, values).tolist() == np.searchsorted(keys, values).tolist()
