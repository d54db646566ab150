"""The embedder for tests."""

import numpy as np
import pytest

from sire_core.errors import ConfigurationError
from sire_core.protocols import Embedder
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


def test_protocol_and_bad_dimension():
    assert isinstance(HashEmbedder(), Embedder)
    assert HashEmbedder(16).fingerprint == "hash/1:16"
    with pytest.raises(ConfigurationError, match="at least 1"):
        HashEmbedder(0)


async def test_no_texts():
    assert (await HashEmbedder(8).embed([])).shape == (0, 8)
