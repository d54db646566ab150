"""LangChain embeddings as an `Embedder`."""

import asyncio
import threading

import numpy as np
import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core import documents as langchain_documents
from langchain_core.embeddings import Embeddings
from langchain_core.stores import InMemoryByteStore

from langchain_sire import LangChainEmbedder, SireRetriever
from sire_core.errors import ConfigurationError, EmbedderMismatchError, ModelError
from sire_core.models.sync import run_sync


class Counting(Embeddings):
    """Vectors of letter counts; notes every call and its thread."""

    model = "letters-1"

    def __init__(self):
        self.calls = []

    def _rows(self, texts):
        return [[float(text.count(letter)) + 0.1 for letter in "abcdefgh"] for text in texts]

    def embed_documents(self, texts):
        self.calls.append(("documents", len(texts), threading.current_thread()))
        return self._rows(texts)

    def embed_query(self, text):
        self.calls.append(("query", 1, threading.current_thread()))
        return self._rows([text])[0]


class Native(Counting):
    """Has async methods of its own."""

    async def aembed_documents(self, texts):
        self.calls.append(("adocuments", len(texts), threading.current_thread()))
        return self._rows(texts)

    async def aembed_query(self, text):
        self.calls.append(("aquery", 1, threading.current_thread()))
        return self._rows([text])[0]


async def test_trap_embeddings_have_no_batch_size_so_batches_are_cut_here():
    model = Native()
    embedder = LangChainEmbedder(model, batch_size=4)
    vectors = await embedder.embed(["abc"] * 10 + ["h"])
    assert sorted(size for _, size, _ in model.calls) == [3, 4, 4]
    assert vectors.shape == (11, 8)
    assert vectors.dtype == np.float32
    assert vectors[10].argmax() == 7


async def test_concurrency_bounds_all_calls_together():
    class Watched(Native):
        active = most = 0

        async def aembed_documents(self, texts):
            self.active += 1
            self.most = max(self.most, self.active)
            await asyncio.sleep(0.005)
            self.active -= 1
            return self._rows(texts)

    model = Watched()
    embedder = LangChainEmbedder(model, batch_size=1, concurrency=3)
    await asyncio.gather(*(embedder.embed(["a"] * 5) for _ in range(4)))
    assert model.most == 3


async def test_the_first_error_calls_off_the_rest():
    class Failing(Native):
        async def aembed_documents(self, texts):
            self.calls.append(texts)
            await asyncio.sleep(0.005)
            raise RuntimeError("quota")

    model = Failing()
    with pytest.raises(ModelError, match="quota"):
        await LangChainEmbedder(model, batch_size=1, concurrency=2).embed(["a"] * 50)
    assert len(model.calls) < 10


def test_trap_a_sync_call_never_uses_the_async_connections_of_another_loop():
    model = Native()
    run_sync(LangChainEmbedder(model).embed(["abc"]))
    run_sync(LangChainEmbedder(model).embed(["abc"], "query"))
    assert [kind for kind, _, _ in model.calls] == ["documents", "query"]


@pytest.mark.parametrize(
    ("attributes", "name", "expected"),
    [
        ({}, "", "langchain:Counting:letters-1"),
        ({}, "prod", "langchain:Counting:letters-1:prod"),
        ({"model": None, "model_name": "m2"}, "", "langchain:Counting:m2"),
        ({"model": "m3", "dimensions": 256}, "", "langchain:Counting:m3:256"),
        ({"model": object()}, "mine", "langchain:Counting:mine"),
    ],
)
def test_fingerprint(attributes, name, expected):
    model = Counting()
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


def test_a_delete_in_a_new_process_needs_no_vectors_to_know_the_dimension(tmp_path):
    texts = ["Petra wrote it.", "Otto sang it."]
    SireRetriever.from_texts(texts, Counting(), ids=["a", "b"], recipe="flat", path=tmp_path / "i").index.close()
    loaded = SireRetriever.load(tmp_path / "i", Counting())
    loaded.index.delete(["a"])
    assert loaded.index.stats()["dimension"] == 8
    assert loaded.invoke("Who?")[0].metadata["sire"]["doc_ids"] == ["b"]


class Broken(Counting):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def embed_documents(self, texts):
        if isinstance(self.rows, Exception):
            raise self.rows
        return self.rows


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[1.0]], "for 2 texts"),
        ([[1.0], [float("nan")]], "infinite or undefined"),
        ([[1.0], [1.0, 2.0]], "length 2, not 1"),
        ([[], []], "no vector"),
        (RuntimeError("quota"), "Broken failed: RuntimeError: quota"),
    ],
)
async def test_bad_answers_are_model_errors(rows, words):
    with pytest.raises(ModelError, match=words):
        await LangChainEmbedder(Broken(rows)).embed(["a", "b"])


async def test_nothing_and_nonsense():
    embedder = LangChainEmbedder(Counting())
    assert (await embedder.embed([])).shape == (0, 0)
    with pytest.raises(ConfigurationError, match="document or query"):
        await embedder.embed(["a"], "passage")
    with pytest.raises(ConfigurationError, match="str is no LangChain"):
        LangChainEmbedder("openai")
    with pytest.raises(ConfigurationError, match="at least 1"):
        LangChainEmbedder(Counting(), batch_size=0)


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
