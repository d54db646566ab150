"""LlamaIndex's own SimpleVectorStore follows an index, and is searched as the index is."""

import pytest
from llama_index.core import MockEmbedding
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_mirrors import AppendOnly, document, expected, make

from llama_index_sire import SireRetriever, VectorStoreMirror, over_vector_store
from llama_index_sire.documents import PROVENANCE_KEYS
from sire_core import Index
from sire_core.errors import ConfigurationError
from sire_core.recipes import indexrag

STORED = ("sire_kind", "sire_level", "sire_doc_ids", "sire_chunk_ids")


def test_nodes_name_their_sources():
    store = AppendOnly()
    by_document = SimpleVectorStore()
    index = Index(recipe=indexrag(), chunker=None, mirrors=[VectorStoreMirror(by_document)])
    index.build([document(i) for i in range(4)])
    passages = {
        by_document.data.text_id_to_ref_doc_id[name]
        for name, row in by_document.data.metadata_dict.items()
        if row["sire_kind"] == "chunk"
    }
    assert passages == {f"d{i}" for i in range(4)}
    own = make(store)
    own.build([document(i) for i in range(4)])
    assert all(node.ref_doc_id == node.node_id for node in store._rows)
    assert all(set(STORED) <= set(node.metadata) for node in store._rows)


def test_a_store_with_the_least_interface_holds_every_node_once():
    store = AppendOnly()
    index = make(store)
    index.build([document(i) for i in range(4)])
    index.update([document(1, tenant="b")])
    index.push(full=True)
    index.delete(["d0"])
    assert sorted(node.node_id for node in store._rows) == sorted(expected(index))


def test_nodes_carry_excluded_keys_and_no_more_metadata(documents):
    store = AppendOnly()
    given_document = LlamaIndexDocument(
        id_="x", text="The lighthouse.", metadata={"path": "/x", "lang": "en"}, excluded_llm_metadata_keys=["path"]
    )
    SireRetriever.from_documents([given_document], recipe="flat", vector_store=store)
    (node,) = store._rows
    assert "path" in node.excluded_llm_metadata_keys
    assert set(node.metadata) == {"path", "lang", *STORED}
    assert set(PROVENANCE_KEYS) <= set(node.excluded_llm_metadata_keys)


def test_something_else_is_refused():
    with pytest.raises(ConfigurationError, match="no LlamaIndex vector store"):
        VectorStoreMirror({})
    with pytest.raises(ConfigurationError, match="no LlamaIndex vector store"):
        over_vector_store("flat", {})
    with pytest.raises(ConfigurationError, match="same name"):
        Index(mirrors=[VectorStoreMirror(SimpleVectorStore()), VectorStoreMirror(SimpleVectorStore())])


@pytest.mark.parametrize("filled", [True, False])
def test_a_store_that_is_filled_already_is_warned_of_once(filled, caplog):
    store, model = SimpleVectorStore(), MockEmbedding(embed_dim=8)
    if filled:
        store.add([TextNode(text="Mira was a painter.", embedding=[1.0] * 8)])
    retriever = SireRetriever.from_documents(
        [LlamaIndexDocument(text="Mira was a painter.")], embed_model=model, vector_store=store
    )
    retriever.insert([LlamaIndexDocument(text="Tom was a sailor.")])
    assert caplog.text.count("not of this index") == filled


def test_a_store_with_vectors_of_another_length_is_warned_of(caplog):
    store = SimpleVectorStore()
    store.add([TextNode(text="Mira was a painter.", embedding=[1.0] * 8)])
    Index(mirrors=[VectorStoreMirror(store)]).build([document(0)])
    assert "cannot be searched" in caplog.text
    assert "vectors of another model" in caplog.text
