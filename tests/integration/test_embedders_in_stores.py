"""The core's embedders in stores of both frameworks."""

import pickle

import numpy as np
import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.stores import InMemoryByteStore
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import VectorStoreIndex

import langchain_sire
import llama_index_sire
from langchain_sire import SireEmbeddings
from llama_index_sire import SireEmbedding
from llama_index_sire.embedding import LlamaIndexEmbedder
from sire_core import Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, EmbedderMismatchError
from sire_core.testing.doubles import HashEmbedder
from support.tiny_onnx import write_tiny_embedder

TEXTS = [f"{document.title}\n{document.text}" for document in demo_documents()]
QUESTION = "Which ship sank in a gale?"


def test_a_langchain_store_searches_with_the_lexical_embedder(tmp_path):
    embeddings = SireEmbeddings()
    store = InMemoryVectorStore.from_texts(TEXTS, embeddings)
    found = store.similarity_search(QUESTION, k=2)
    assert any("Northern Wren" in document.page_content for document in found)
    embeddings.save(tmp_path / "lexical.npz")
    for copy in (SireEmbeddings.load(tmp_path / "lexical.npz"), pickle.loads(pickle.dumps(embeddings))):
        assert np.allclose(copy.embed_query(QUESTION), embeddings.embed_query(QUESTION))
    again = embeddings.embed_documents(["other words entirely"])
    assert embeddings.embed_documents(["other words entirely"]) == again  # frozen


async def test_a_llamaindex_index_searches_with_the_lexical_embedder(tmp_path):
    model = SireEmbedding()
    index = VectorStoreIndex.from_documents([LlamaDocument(text=text) for text in TEXTS], embed_model=model)
    retriever = index.as_retriever(similarity_top_k=2)
    names = [node.node_id for node in retriever.retrieve(QUESTION)]
    assert any("Northern Wren" in node.text for node in retriever.retrieve(QUESTION))
    assert [node.node_id for node in await retriever.aretrieve(QUESTION)] == names
    model.save(tmp_path / "lexical.npz")
    copy = SireEmbedding.load(tmp_path / "lexical.npz")
    assert np.allclose(copy.get_query_embedding(QUESTION), model.get_query_embedding(QUESTION))
    assert model.to_dict()["class_name"] == "SireEmbedding"


@pytest.mark.parametrize("kind", [SireEmbeddings, SireEmbedding])
def test_what_was_never_fitted_says_so(kind, tmp_path):
    model = kind()
    ask = model.embed_query if kind is SireEmbeddings else model.get_query_embedding
    with pytest.raises(ConfigurationError, match="Embed the documents first"):
        ask(QUESTION)
    with pytest.raises(ConfigurationError, match="nothing to save"):
        model.save(tmp_path / "x.npz")
    (tmp_path / "y.npz").write_text("no arrays")
    with pytest.raises(ConfigurationError, match="not a saved lexical embedder"):
        kind.load(tmp_path / "y.npz")
    fitted = kind(fit_on=TEXTS)
    assert len((fitted.embed_query if kind is SireEmbeddings else fitted.get_query_embedding)(QUESTION)) > 100


async def test_other_embedders_need_no_fit():
    ours, theirs = SireEmbeddings(HashEmbedder()), SireEmbedding(HashEmbedder())
    assert await ours.aembed_query("a") == ours.embed_query("a") == theirs.get_query_embedding("a")
    assert await ours.aembed_documents(["a", "b"]) == theirs.get_text_embedding_batch(["a", "b"])


HARBOUR = "Granite walls protect the harbour."
OPENED = {
    "core": lambda path, name: Index(path, embedder=name),
    "core, object": lambda path, name: Index(path, embedder=SireEmbeddings(name)),
    "folder": lambda path, _: Index(path),
    "LangChain": lambda path, name: langchain_sire.SireRetriever.load(path, name).index,
    "LangChain, object": lambda path, name: langchain_sire.SireRetriever.load(path, SireEmbeddings(name)).index,
    "LlamaIndex": lambda path, name: llama_index_sire.SireRetriever.from_persist_dir(path, embed_model=name).index,
    "LlamaIndex, object": lambda path, name: (
        llama_index_sire.SireRetriever.from_persist_dir(path, embed_model=SireEmbedding(name)).index
    ),
}


def langchain_folder(path, embedding):
    documents = [Document(HARBOUR, id="wall"), Document("Ferries leave at noon.", id="ferry")]
    return langchain_sire.SireRetriever.from_documents(documents, embedding, path=path, recipe="flat").index


def llama_index_folder(path, embedding):
    documents = [LlamaDocument(id_="wall", text=HARBOUR), LlamaDocument(id_="ferry", text="Ferries leave at noon.")]
    made = llama_index_sire.SireRetriever.from_documents(
        documents, embed_model=embedding, persist_dir=path, recipe="flat"
    )
    return made.index


def onnx_name(folder):
    words = {word: [float(n == row) for n in range(4)] for row, word in enumerate(("granite", "harbour", "noon", "at"))}
    return f"onnx:{write_tiny_embedder(folder / 'model', words)}"


@pytest.fixture(params=["lexical", "onnx"])
def name(request, tmp_path):
    return "lexical" if request.param == "lexical" else onnx_name(tmp_path)


@pytest.mark.parametrize(
    "build",
    [
        lambda path, name: langchain_folder(path, SireEmbeddings(name)),
        lambda path, name: llama_index_folder(path, SireEmbedding(name)),
        langchain_folder,
    ],
)
def test_an_embedder_has_one_identity_through_all_doors(tmp_path, name, build):
    with build(tmp_path / "index", name) as built:
        identity = built.stats()["embedder"]
    for opened in OPENED.values():
        with opened(tmp_path / "index", name) as index:
            assert index.stats()["embedder"] == identity
            assert index.search("granite harbour", 1)[0].doc_ids == ("wall",)


def test_a_cache_around_an_embedder_of_ours_builds_an_index(tmp_path, name):
    cached = CacheBackedEmbeddings.from_bytes_store(
        SireEmbeddings(name, fit_on=[HARBOUR, "Noon."]), InMemoryByteStore(), namespace="n", key_encoder="sha256"
    )
    with langchain_folder(tmp_path / "index", cached) as index:
        assert index.search("granite harbour", 1)[0].doc_ids == ("wall",)


class OldEmbeddings(Embeddings):
    """As in folders of early versions, whose embedder was the wrapper itself, without a model's name."""

    def __init__(self, name):
        self.wrapper = [SireEmbeddings(name)]

    def embed_documents(self, texts):
        return self.wrapper[0].embed_documents(texts)

    def embed_query(self, text):
        return self.wrapper[0].embed_query(text)


@pytest.mark.parametrize("framework", ["LangChain", "LlamaIndex"])
async def test_folders_of_early_versions_open_as_they_were_built(tmp_path, framework):
    name, folder = onnx_name(tmp_path), tmp_path / "index"
    if framework == "LangChain":
        OldEmbeddings.__name__ = "SireEmbeddings"
        documents = [Document(HARBOUR, id="wall"), Document("Ferries leave at noon.", id="ferry")]
        old = OldEmbeddings(name)
        made = await langchain_sire.SireRetriever.afrom_documents(documents, old, path=folder, recipe="flat")
        built = made.index
    else:
        built = llama_index_folder(folder, LlamaIndexEmbedder(SireEmbedding(name)))
    identity = built.stats()["embedder"]
    built.close()
    assert "SireEmbedding" in identity
    for door in ("", ", object"):
        with OPENED[framework + door](folder, name) as index:
            assert index.stats()["embedder"] == identity
            assert index.search("granite harbour", 1)[0].doc_ids == ("wall",)
            index.reembed(tmp_path / f"new{door}", SireEmbeddings(name))
        with Index(tmp_path / f"new{door}") as index:
            assert index.stats()["embedder"].startswith("onnx:")
    with pytest.raises(EmbedderMismatchError):
        OPENED["core"](folder, name).search("granite")
