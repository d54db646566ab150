"""Vectors from a file."""

import numpy as np
import pytest

from sire_core.errors import ConfigurationError, ModelError
from sire_core.models.precomputed import PrecomputedEmbedder, write_precomputed
from sire_core.testing.doubles import HashEmbedder

TEXTS = ["one red fox", "two grey owls", "three herons", "one red fox"]


@pytest.fixture
async def path(tmp_path):
    maker = HashEmbedder(16)
    write_precomputed(tmp_path / "vectors.npz", TEXTS, await maker.embed(TEXTS), maker.fingerprint)
    return tmp_path / "vectors.npz"


async def test_stands_in_for_the_embedder_that_made_them(path):
    embedder = PrecomputedEmbedder(path)
    assert embedder.fingerprint == HashEmbedder(16).fingerprint
    assert embedder.dimension == 16
    wanted = [TEXTS[2], TEXTS[0], TEXTS[1]]
    assert np.array_equal(await embedder.embed(wanted), await HashEmbedder(16).embed(wanted))
    assert (await embedder.embed([])).shape == (0, 16)


async def test_missing_texts_are_counted_and_the_first_is_shown(path):
    with pytest.raises(ModelError, match="2 of 3 texts, the first being 'a new text'"):
        await PrecomputedEmbedder(path).embed(["a new text", TEXTS[0], "zzz"])


async def test_fallback_embeds_what_is_missing(path):
    texts = ["a new text", TEXTS[0]]
    vectors = await PrecomputedEmbedder(path, HashEmbedder(16)).embed(texts)
    assert np.array_equal(vectors, await HashEmbedder(16).embed(texts))


async def test_fallback_must_be_the_embedder_that_made_the_file(path):
    with pytest.raises(ConfigurationError, match=r"hash/1:16.*hash/1:8"):
        await PrecomputedEmbedder(path, HashEmbedder(8)).embed(TEXTS)


def test_no_file(tmp_path):
    with pytest.raises(ConfigurationError, match="write_precomputed"):
        PrecomputedEmbedder(tmp_path / "nothing.npz")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04broken"])
def test_damaged_file(tmp_path, content):
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(ConfigurationError, match="make it again"):
        _ = PrecomputedEmbedder(tmp_path / "bad.npz").dimension


def test_other_arrays_unsorted_keys_and_objects_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    for arrays in (
        {"x": np.zeros(3)},
        {"keys": np.array([b"b", b"a"]), "vectors": np.zeros((2, 3), np.float32), "fingerprint": np.array("f")},
        {"keys": np.array([b"a"]), "vectors": np.zeros((2, 3), np.float32), "fingerprint": np.array("f")},
        {"keys": np.array([{}], dtype=object), "vectors": np.zeros((1, 3), np.float32), "fingerprint": np.array("f")},
    ):
        np.savez(path, **arrays)
        with pytest.raises(ConfigurationError, match="make it again"):
            _ = PrecomputedEmbedder(path).dimension


def test_writing_checks_its_input_and_leaves_no_part_behind(tmp_path):
    with pytest.raises(ConfigurationError, match="shape"):
        write_precomputed(tmp_path / "v.npz", ["a"], np.zeros((2, 3), np.float32), "f")
    with pytest.raises(ConfigurationError, match="NaN"):
        write_precomputed(tmp_path / "v.npz", ["a"], np.full((1, 3), np.nan, np.float32), "f")
    assert list(tmp_path.iterdir()) == []
    write_precomputed(tmp_path / "v.npz", ["a"], np.ones((1, 3), np.float32), "f")
    assert [p.name for p in tmp_path.iterdir()] == ["v.npz"]
