"""Embedding models without a name, whose answers vary in their last digits, as those of GPUs and servers do."""

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from langchain_sire import LangChainEmbedder
from sire_core import Document, Index
from sire_core.errors import EmbedderMismatchError

TELLING = "a short text that tells embedding models apart"


class Noisy(Embeddings):
    """Numbers of a seed and a text; `noise` of their size comes on top, another with each object."""

    def __init__(self, seed, noise, size=32):
        self.seed, self.noise, self.size = seed, noise, size

    def embed_query(self, text):
        vector = np.random.default_rng([self.seed, *text.encode()]).normal(size=self.size)
        return (vector * (1 + self.noise)).tolist() if text == TELLING else vector.tolist()

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


def test_an_index_takes_its_own_model_and_no_other(tmp_path):
    size = 32
    noises = np.random.default_rng(0).normal(size=(10, 2, size)) * 1e-3
    renamed = 0
    for seed, (before, after) in enumerate(noises):
        path = tmp_path / str(seed)
        with Index(path, recipe="flat", embedder=LangChainEmbedder(Noisy(seed, before, size))) as index:
            index.build([Document("a", "The ship.")])
        later = LangChainEmbedder(Noisy(seed, after, size))
        with Index(path, embedder=later) as index:
            assert index.search("ship", 1)[0].doc_ids == ("a",)
            renamed += later.fingerprint not in str(index.stats()["embedder"])
            if renamed == 1:
                index.add([Document("b", "A harbour.")])
                assert len(index.search("ship", 5)) == 2
        with (
            Index(path, embedder=LangChainEmbedder(Noisy(seed + 1000, after, size))) as index,
            pytest.raises(EmbedderMismatchError),
        ):
            index.search("ship", 1)
    assert renamed  # else nothing was at a border, and nothing was tried
