"""Mistakes are said where they are made, not at the first search."""

import pytest
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import TextNode

import llama_index_sire
from sire_core.errors import EmbedderMismatchError
from sire_core.index import Index
from sire_core.types import Document as SireDocument


def test_another_length_of_vectors_under_the_same_name_is_said_when_a_folder_is_opened(tmp_path):
    nodes, short, long = [TextNode(text="Petra sails.")], MockEmbedding(16), MockEmbedding(32)
    kept = llama_index_sire.LlamaIndexEmbedder(short, fingerprint="llama-index:mine")
    llama_index_sire.SireRetriever.from_documents(nodes, embed_model=kept, persist_dir=tmp_path / "b", recipe="flat")
    other = llama_index_sire.LlamaIndexEmbedder(long, fingerprint="llama-index:mine")
    with pytest.raises(EmbedderMismatchError, match=r"length 32.*length 16"):
        llama_index_sire.SireRetriever.from_persist_dir(tmp_path / "b", embed_model=other)


def test_documents_have_their_text():
    index = Index(recipe="flat")
    long = " ".join(f"Sentence number {n} is here." for n in range(200))
    given = [SireDocument("a", long), SireDocument("b", "", chunks=("One.", "Two.")), SireDocument("c", "")]
    index.build(given)
    texts = {document.id: document.text for document in index.documents()}
    assert texts == {"a": long, "b": "One.\n\nTwo.", "c": ""}
    assert index.update(index.documents(["b"])).unchanged == 1
