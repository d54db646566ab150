"""The core's embedders in stores of both frameworks."""

import pickle

import numpy as np
import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import VectorStoreIndex

from langchain_sire import SireEmbeddings
from llama_index_sire import SireEmbedding
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.testing.doubles import HashEmbedder

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
