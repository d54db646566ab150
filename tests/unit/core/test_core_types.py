"""Ids and the small rules of the types."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.types import Chunk, chunk_id, content_hash, digest, unit_id


def test_what_ids_depend_on():
    base = chunk_id("d", 0, "T", "x")
    assert len({base, chunk_id("e", 0, "T", "x"), chunk_id("d", 1, "T", "x"), chunk_id("d", 0, "T", "y")}) == 4
    ids = {unit_id(k, f, ("c",), t) for k in ("aku", "bridge") for f in ("1", "2") for t in ("x", "y")}
    assert len(ids) == 8
    # The same words in two documents share one extraction record.
    assert Chunk("1", "d", 0, "T", "x").hash == Chunk("2", "e", 5, "T", "x", {"k": 1}).hash == content_hash("T", "x")


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"chunker": "words"}])
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ConfigurationError):
        Index(**wrong)


@given(st.lists(st.text(st.characters(exclude_categories=[]))))
def test_a_digest_hashes_the_length_in_bytes_and_the_bytes_of_every_part(parts):
    raw = [part.encode("utf-8", "surrogatepass") for part in parts]
    prefixed = b"".join(b"%d:%b" % (len(part), part) for part in raw)
    assert digest(*parts) == hashlib.blake2b(prefixed, digest_size=12).hexdigest()
