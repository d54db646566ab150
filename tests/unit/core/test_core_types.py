"""Ids and the small rules of the types."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.storage.manifest import BuiltRecipe, Manifest
from sire_core.types import Chunk, Unit, UnitKind, chunk_id, content_hash, digest, unit_id

TEXTS = st.lists(st.text(st.characters(), max_size=5), min_size=1, max_size=4)


@given(TEXTS, TEXTS)
def test_different_parts_have_different_digests(one, other):
    assert (digest(*one) == digest(*other)) == (one == other)


@given(TEXTS)
def test_the_order_of_sources_does_not_change_a_unit(chunks):
    assert unit_id("bridge", "f", chunks, "t") == unit_id("bridge", "f", reversed(chunks), "t")
    assert len(unit_id("bridge", "f", chunks, "t")) == 24


def test_what_ids_depend_on():
    base = chunk_id("d", 0, "T", "x")
    assert len({base, chunk_id("e", 0, "T", "x"), chunk_id("d", 1, "T", "x"), chunk_id("d", 0, "T", "y")}) == 4
    ids = {unit_id(k, f, ("c",), t) for k in ("aku", "bridge") for f in ("1", "2") for t in ("x", "y")}
    assert len(ids) == 8
    # The same words in two documents share one extraction record.
    assert Chunk("1", "d", 0, "T", "x").hash == Chunk("2", "e", 5, "T", "x", {"k": 1}).hash == content_hash("T", "x")


def test_only_passages_carry_their_title_into_the_index():
    assert Chunk("1", "d", 0, "T", "x").index_text == "T\nx"
    assert Chunk("1", "d", 0, "", "x").index_text == "x"
    assert Unit("1", UnitKind.CHUNK, "x", ("1",), title="T").index_text == "T\nx"
    assert Unit("1", UnitKind.AGGREGATE, "x", ("1",), title="T").index_text == "x"


def test_a_manifest_survives_its_json_form():
    built = BuiltRecipe("flat", {"ranker": "dense"}, (("tree", {"depth": 3}),), ("abc",), "rules/1", "")
    manifest = Manifest(3, "e", "spec", 64, "rules/1", {"max_tokens": 9}, 7, (built,), {"documents": 2}, {"x": ["h"]})
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert Manifest.from_json({}) == Manifest()


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"chunker": "words"}])
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ConfigurationError):
        Index(**wrong)


@given(st.lists(st.text(st.characters(exclude_categories=[]))))
def test_a_digest_hashes_the_length_in_bytes_and_the_bytes_of_every_part(parts):
    raw = [part.encode("utf-8", "surrogatepass") for part in parts]
    prefixed = b"".join(b"%d:%b" % (len(part), part) for part in raw)
    assert digest(*parts) == hashlib.blake2b(prefixed, digest_size=12).hexdigest()
