"""LlamaIndex's own SimpleVectorStore follows an index, and is searched as the index is."""

import pytest
from llama_index.core import MockEmbedding
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_fakes import as_llama_index
from llama_index_mirrors import AppendOnly, document, expected, held, make

from llama_index_sire import SireRetriever, VectorStoreMirror, VectorStoreSource, over_vector_store
from llama_index_sire.nodes import PROVENANCE_KEYS
from sire_core import Document, Index
from sire_core.data import demo_questions
from sire_core.errors import ConfigurationError
from sire_core.protocols import Mirror
from sire_core.recipes import indexrag
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import from_uuid, to_uuid

STORED = ("sire_kind", "sire_level", "sire_doc_ids", "sire_chunk_ids")


def test_it_is_a_mirror_that_can_be_asked_and_flushed():
    mirror: Mirror = VectorStoreMirror(SimpleVectorStore(), "mine")
    assert mirror.name == "mine"


def test_ids_are_uuids_and_come_back():
    import uuid

    index = make(SimpleVectorStore())
    index.build([document(i) for i in range(4)])
    for raw in index.view().ids.tolist():
        unit = raw.decode()
        assert str(uuid.UUID(to_uuid(unit))) == to_uuid(unit)
        assert from_uuid(to_uuid(unit)) == unit


def test_a_store_follows_builds_adds_updates_and_deletes():
    store = SimpleVectorStore()
    index = make(store)
    index.build([document(i) for i in range(4)])
    assert held(store) == expected(index)
    index.add([document(5)])
    index.update([document(1, " of ships"), document(2, tenant="b")])
    assert held(store) == expected(index)
    assert {row[1] for row in held(store).values()} == {"a", "b", None}
    index.delete(["d0", "d1"])
    assert held(store) == expected(index)
    index.delete(["d2", "d3", "d5"])
    assert held(store) == {}


async def test_async_changes():
    store = SimpleVectorStore()
    index = make(store)
    await index.abuild([document(i) for i in range(4)])
    await index.adelete(["d0"])
    assert held(store) == expected(index)
    assert await index.apush() == {"llama-index": 0}


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


async def test_search_over_the_store_is_the_dense_search_of_the_index():
    store = SimpleVectorStore()
    given_documents = [Document(d.id_, d.text, d.metadata["title"], d.metadata) for d in as_llama_index()]
    index = Index(recipe="flat", embedder=HashEmbedder(), mirrors=[VectorStoreMirror(store)])
    index.build(given_documents)
    source = VectorStoreSource(store)
    for question in demo_questions():
        hits = await index.asearch(question.question, 10)
        found = await source.scored(question.question, await index.view().embed_query(question.question), 10)
        assert [name for name, _ in found] == [hit.unit.id for hit in hits]
        assert [score for _, score in found] == pytest.approx([hit.score for hit in hits], abs=1e-5)


@pytest.mark.parametrize("where", [None, "kind=person", {"kind": {"in": ["person", "film"]}}])
def test_a_recipe_over_the_store_finds_what_the_recipe_finds(where):
    store = SimpleVectorStore()
    given_documents = [Document(d.id_, d.text, d.metadata["title"], d.metadata) for d in as_llama_index()]
    ours = Index(recipe="sirerag", embedder=HashEmbedder())
    over = Index(
        recipe=over_vector_store("sirerag", store), embedder=HashEmbedder(), mirrors=[VectorStoreMirror(store)]
    )
    for index in (ours, over):
        index.build(given_documents)
    for question in demo_questions():
        expected_hits = ours.search(question.question, 6, filter=where)
        assert [h.unit.id for h in over.search(question.question, 6, filter=where)] == [
            h.unit.id for h in expected_hits
        ]


def test_what_the_store_has_not_got_yet_stands_where_its_vector_says(tmp_path):
    store, new = SimpleVectorStore(), Document("new", "Zed Moss sailed to Orr in the Amber.")
    follows = {"recipe": over_vector_store("flat", store), "mirrors": [VectorStoreMirror(store)]}
    with (
        Index(tmp_path, embedder=HashEmbedder(), **follows) as over,
        Index(tmp_path, recipe="flat", embedder=HashEmbedder()) as own,
    ):
        over.build([Document(d.id_, d.text) for d in as_llama_index()])
        own.add([new])
        for question in ("Who sailed to Orr in the Amber?", *(asked.question for asked in demo_questions())):
            expected_hits = {hit.unit.id: hit.score for hit in own.search(question, 60)}
            hits = over.search(question, 60)
            assert {hit.unit.id for hit in hits} == set(expected_hits)
            scores = [expected_hits[hit.unit.id] for hit in hits]  # equal cosines have no order
            assert scores == pytest.approx(sorted(scores, reverse=True), abs=1e-5)
            assert [hit.score for hit in hits] == pytest.approx(scores, abs=1e-5)
        assert over.search("Who sailed to Orr in the Amber?", 1)[0].doc_ids == ("new",)


def test_what_waits_keeps_nothing_out_that_the_store_has(tmp_path):
    """More waits than is asked for."""
    store, question = SimpleVectorStore(), "Who commanded the Northern Wren?"
    follows = {"recipe": over_vector_store("flat", store), "mirrors": [VectorStoreMirror(store)]}
    with (
        Index(tmp_path, embedder=HashEmbedder(), **follows) as over,
        Index(tmp_path, recipe="flat", embedder=HashEmbedder()) as own,
    ):
        over.build([Document(d.id_, d.text) for d in as_llama_index()])
        own.add([Document(f"late{i}", f"Bananas and carrots number{i} grow.") for i in range(12)])
        hits = over.search(question, 5)
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in own.search(question, 5)], abs=1e-5)


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


def test_another_index_in_the_store_is_warned_of(caplog):
    store = SimpleVectorStore()
    Index(mirrors=[VectorStoreMirror(store)]).build([document(0), document(1)])
    assert "not of this index" not in caplog.text
    with Index(mirrors=[VectorStoreMirror(store)]) as index:
        index.build([Document("x", "Zed Moss was a sailor.")])
        index.add([Document("y", "Zed Moss sailed to Orr.")])
    assert caplog.text.count("not of this index") == 1


def test_a_store_with_vectors_of_another_length_is_warned_of(caplog):
    store = SimpleVectorStore()
    store.add([TextNode(text="Mira was a painter.", embedding=[1.0] * 8)])
    Index(mirrors=[VectorStoreMirror(store)]).build([document(0)])
    assert "cannot be searched" in caplog.text
    assert "vectors of another model" in caplog.text
