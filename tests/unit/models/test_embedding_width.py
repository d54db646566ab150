"""Vectors of another length than those in the index are refused before anything is stored."""

import pytest

from sire_core.errors import EmbedderMismatchError
from sire_core.index import Index
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document


class Narrower(HashEmbedder):
    """Says that it is the same embedder, and is not."""

    async def embed(self, texts, kind="document"):
        return (await super().embed(texts, kind))[:, :-1]


@pytest.mark.parametrize("recipe", ["flat", "sirerag"])
def test_a_change_with_vectors_of_another_length_leaves_the_index_as_it_was(tmp_path, recipe):
    with Index(tmp_path / "ix", recipe=recipe, embedder=HashEmbedder()) as index:
        index.build([Document("a", "Ann met Bob."), Document("b", "Bob met Cid.")])
    before = read_contents(tmp_path / "ix")
    other = Index(tmp_path / "ix", recipe=recipe, embedder=Narrower())
    with other as index, pytest.raises(EmbedderMismatchError, match="another length"):
        index.add([Document("c", "Cid met Dan.")])
    assert read_contents(tmp_path / "ix") == before
    with Index(tmp_path / "ix", recipe=recipe, embedder=HashEmbedder()) as index:
        index.add([Document("c", "Cid met Dan.")])
        assert index.search("Who met Dan?", 1)
