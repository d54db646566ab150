import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.recipes import flat
from sire_core.search.rankers import late_interaction
from sire_core.search.rankers.late_interaction import LateInteraction, max_similarity
from sire_core.testing.doubles import HashEmbedder

CORPUS = [
    Document("tide", "The Long Tide was directed by Mira Vale", metadata={"tenant": "a"}),
    Document("vale", "Mira Vale painted Port Amber", metadata={"tenant": "b"}),
    Document("port", "Port Amber is a harbor", metadata={"tenant": "a"}),
    *(Document(f"o{i}", f"Bridge {i} spans the river Elm", metadata={"tenant": "a"}) for i in range(12)),
]


class WordEmbedder(HashEmbedder):
    """One vector per word."""

    def __init__(self):
        super().__init__()
        self.texts = 0

    async def embed_tokens(self, texts, kind):
        self.texts += len(texts)
        return [await self.embed(text.split(), kind) for text in texts]


def built(embedder, **settings):
    index = Index(recipe=flat(ranker="late", **settings), embedder=embedder)
    index.build(CORPUS)
    return index


def test_max_similarity_is_the_mean_of_the_best_cosines():
    question = np.eye(3, dtype=np.float32)[:2]
    text = np.array([[1, 0, 0], [0.6, 0.8, 0]], dtype=np.float16)
    assert max_similarity(question, text) == pytest.approx((1.0 + 0.8) / 2, abs=1e-3)
    assert max_similarity(question[:0], text) == -1.0


def test_every_word_of_the_question_counts():
    hits = built(WordEmbedder()).search("Mira Vale painted Port Amber", 15)
    assert hits[0].doc_ids == ("vale",)
    assert hits[0].score == pytest.approx(1.0, abs=1e-3)
    assert len({hit.unit.id for hit in hits}) == len(CORPUS)
    assert hits[0].path[0].note.startswith("words 1.000, cosine")


def test_token_vectors_are_made_once_and_only_so_many_are_kept(monkeypatch):
    embedder = WordEmbedder()
    index = built(embedder)
    first = index.search("Port Amber", 3)
    made = embedder.texts
    assert made == len(CORPUS) + 1
    assert index.search("Port Amber", 3) == first
    assert embedder.texts == made + 1
    monkeypatch.setattr(late_interaction, "_KEPT", 4)
    assert index.search("Port Amber", 3) == first
    index.search("Port Amber", 3)
    assert embedder.texts > made + 3


def test_a_filter_holds():
    hits = built(WordEmbedder()).search("Mira Vale painted Port Amber", 15, filter={"tenant": "a"})
    assert "vale" not in {doc for hit in hits for doc in hit.doc_ids}
    assert len(hits) == len(CORPUS) - 1


def test_an_embedder_without_tokens_is_told():
    with pytest.raises(ConfigurationError, match="st:NAME_OR_FOLDER"):
        built(HashEmbedder()).search("Port Amber")
    with pytest.raises(ConfigurationError, match="at least 1, not 0"):
        LateInteraction(0)
