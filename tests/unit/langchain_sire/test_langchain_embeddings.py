"""LangChain embeddings as an `Embedder`."""

import asyncio

import numpy as np
import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core import documents as langchain_documents
from langchain_core.embeddings import Embeddings
from langchain_core.stores import InMemoryByteStore

from langchain_sire import LangChainEmbedder, SireRetriever
from sire_core.errors import ConfigurationError, EmbedderMismatchError, ModelError


class Letters(Embeddings):
    """Vectors of letter counts, with async methods of its own."""

    model = "letters-1"

    def embed_documents(self, texts):
        return [[float(text.count(letter)) + 0.1 for letter in "abcdefgh"] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts):
        return self.embed_documents(texts)


async def test_concurrency_bounds_all_calls_together():
    class Watched(Letters):
        active = most = 0

        async def aembed_documents(self, texts):
            self.active += 1
            self.most = max(self.most, self.active)
            await asyncio.sleep(0.005)
            self.active -= 1
            return self.embed_documents(texts)

    model = Watched()
    embedder = LangChainEmbedder(model, batch_size=1, concurrency=3)
    await asyncio.gather(*(embedder.embed(["a"] * 5) for _ in range(4)))
    assert model.most == 3


async def test_the_first_error_calls_off_the_rest():
    class Failing(Letters):
        calls = 0

        async def aembed_documents(self, texts):
            self.calls += 1
            await asyncio.sleep(0.005)
            raise RuntimeError("quota")

    model = Failing()
    with pytest.raises(ModelError, match="quota"):
        await LangChainEmbedder(model, batch_size=1, concurrency=2).embed(["a"] * 50)
    assert model.calls < 10


@pytest.mark.parametrize(
    ("attributes", "name", "expected"),
    [
        ({}, "", "langchain:Letters:letters-1"),
        ({}, "prod", "langchain:Letters:letters-1:prod"),
        ({"model": None, "model_name": "m2"}, "", "langchain:Letters:m2"),
        ({"model": "m3", "dimensions": 256}, "", "langchain:Letters:m3:256"),
        ({"model": object()}, "mine", "langchain:Letters:mine"),
    ],
)
def test_fingerprint(attributes, name, expected):
    model = Letters()
    for key, value in attributes.items():
        setattr(model, key, value)
    assert LangChainEmbedder(model, name=name).fingerprint == expected
    assert expected in repr(LangChainEmbedder(model, name=name))


def test_a_deployment_that_was_given_is_part_of_the_fingerprint():
    openai = pytest.importorskip("langchain_openai")
    plain = openai.OpenAIEmbeddings(model="text-embedding-3-small", api_key="none")
    assert LangChainEmbedder(plain).fingerprint == "langchain:OpenAIEmbeddings:text-embedding-3-small"
    azure = [
        LangChainEmbedder(
            openai.AzureOpenAIEmbeddings(
                azure_endpoint="https://x.invalid", azure_deployment=name, api_key="none", api_version="2024-02-01"
            )
        ).fingerprint
        for name in ("small", "large")
    ]
    assert azure[0] != azure[1]


async def test_nothing_and_nonsense():
    embedder = LangChainEmbedder(Letters())
    with pytest.raises(ConfigurationError, match="document or query"):
        await embedder.embed(["a"], "passage")
    with pytest.raises(ConfigurationError, match="str is no LangChain"):
        LangChainEmbedder("openai")
    with pytest.raises(ConfigurationError, match="at least 1"):
        LangChainEmbedder(Letters(), batch_size=0)


def test_embeddings_behind_langchains_cache_are_told_apart(tmp_path):
    def cached(size, seed):
        class Nameless(Embeddings):
            """Has no model name, as people's own classes have none."""

            def embed_documents(self, texts):
                return np.random.default_rng([seed, len(texts)]).normal(size=(len(texts), size)).tolist()

            def embed_query(self, text):
                return np.random.default_rng([seed, len(text)]).normal(size=size).tolist()

        return CacheBackedEmbeddings.from_bytes_store(
            Nameless(), InMemoryByteStore(), namespace="same", key_encoder="blake2b"
        )

    names = [LangChainEmbedder(cached(size, seed)).fingerprint for size, seed in ((8, 1), (8, 1), (8, 2), (16, 1))]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    texts = [langchain_documents.Document("One.", id="a"), langchain_documents.Document("Two.", id="b")]
    SireRetriever.from_documents(texts, cached(8, 1), path=tmp_path, recipe="flat").index.close()
    assert len(SireRetriever.load(tmp_path, cached(8, 1)).invoke("one")) == 2
    with pytest.raises(EmbedderMismatchError):
        SireRetriever.load(tmp_path, cached(8, 2)).invoke("one")
