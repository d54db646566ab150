"""The embedder for tests."""

import numpy as np
import pytest

from sire_core.testing.doubles import HashEmbedder


async def test_similar_texts_are_similar_and_rows_are_unit():
    vectors = await HashEmbedder(256).embed(["red apple pie", "Apple pie, red!", "steam engine boiler", "..."])
    assert vectors.dtype == np.float32
    assert vectors[0] @ vectors[1] == pytest.approx(1)
    assert vectors[0] @ vectors[2] < 0.5
    assert not vectors[3].any()


async def test_known_bits():
    """crc32("a") = 0xE8B7BE43: top bit set, so +1, at place 0x43 % 8 = 3."""
    assert (await HashEmbedder(8).embed(["a"], "query")).tolist() == [[0, 0, 0, 1, 0, 0, 0, 0]]
