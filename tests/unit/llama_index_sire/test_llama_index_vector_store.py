"""The user's own vector store holds the pool and ranks it; everything else is as with our own matrix."""

import json

import pytest
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import Document
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult
from llama_index_fakes import AsyncEmbedding, WordEmbedding

from llama_index_sire import SireRetriever
from sire_core.data import demo_questions
from sire_core.recipes import REGISTRY
from sire_core.types import to_uuid

RECIPES = sorted(REGISTRY)


class LeastStore(BasePydanticVectorStore):
    """Only what every store guarantees: `add`, `delete(ref_doc_id)`, `query`; adding an id twice is an error."""

    stores_text: bool = True
    broken: bool = False
    _inner: SimpleVectorStore = PrivateAttr(default_factory=SimpleVectorStore)
    _nodes: dict = PrivateAttr(default_factory=dict)

    @property
    def client(self):
        return None

    def add(self, nodes, **kwargs):
        if self.broken:
            raise ConnectionError("the store is away")
        for node in nodes:
            assert node.node_id not in self._inner.data.embedding_dict
            assert node.embedding is not None
            self._nodes[node.node_id] = json.loads(node.to_json())
        return self._inner.add(nodes)

    def delete(self, ref_doc_id, **kwargs):
        self._inner.delete(ref_doc_id)

    def query(self, query, **kwargs):
        found = self._inner.query(query)
        from llama_index.core.schema import TextNode

        nodes = [TextNode(id_=name, text="") for name in found.ids]
        return VectorStoreQueryResult(nodes=nodes, similarities=found.similarities, ids=None)

    @property
    def ids(self):
        return set(self._inner.data.embedding_dict)


def ids_of(retriever):
    return {to_uuid(name.decode()) for name in retriever.index.view().ids.tolist()}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("store", [SimpleVectorStore, LeastStore])
async def test_same_nodes_as_with_our_own_vectors(recipe, store, documents):
    own = SireRetriever.from_documents(documents, recipe=recipe, vector_store=store(), similarity_top_k=8)
    ours = SireRetriever.from_documents(documents, recipe=recipe, similarity_top_k=8)
    assert "(yours) + local 8-bit scores" in own.index.stats()["vectors"]
    for question in demo_questions():
        expected = [node.node_id for node in ours.retrieve(question.question)]
        assert [node.node_id for node in own.retrieve(question.question)] == expected
        assert [node.node_id for node in await own.aretrieve(question.question)] == expected


def test_filters_hold_whatever_the_store_does(documents, question):
    own = SireRetriever.from_documents(
        documents, recipe="sirerag", vector_store=LeastStore(), filters="kind=person", similarity_top_k=50
    )
    ours = SireRetriever.from_documents(documents, recipe="sirerag", filters="kind=person", similarity_top_k=50)
    found = own.retrieve(question)
    assert found
    assert [node.node_id for node in found] == [node.node_id for node in ours.retrieve(question)]


@pytest.mark.parametrize("recipe", RECIPES)
async def test_the_store_follows_every_change(recipe, documents):
    store = LeastStore()
    retriever = SireRetriever.from_documents(documents[:20], recipe=recipe, vector_store=store)
    assert store.ids == ids_of(retriever)
    retriever.insert(documents[20:24])
    assert store.ids == ids_of(retriever)
    await retriever.arefresh([Document(id_=documents[3].id_, text="The Zorbleflux sank."), documents[5]])
    assert store.ids == ids_of(retriever)
    await retriever.adelete([documents[3].id_, documents[4].id_])
    assert store.ids == ids_of(retriever)
    live = [store._nodes[name] for name in store.ids]
    assert "Zorbleflux" not in json.dumps(live)


def test_passages_that_two_documents_share_change_hands():
    store = LeastStore()
    same = "The lighthouse stands on a rock."
    a, b = Document(id_="a", text=same), Document(id_="b", text=same)
    retriever = SireRetriever.from_documents(
        [a, b, Document(id_="c", text="A third one.")], recipe="flat", vector_store=store
    )
    assert len(store.ids) == 2
    retriever.refresh(Document(id_="b", text="Not a rock at all."))
    (kept,) = [store._nodes[name] for name in store.ids if store._nodes[name]["text"] == same]
    assert json.loads(kept["metadata"]["sire_doc_ids"]) == ["a"]
    retriever.refresh(Document(id_="b", text=same))
    retriever.delete("a")
    assert store.ids == ids_of(retriever)
    assert json.loads(retriever.retrieve("lighthouse rock")[0].metadata["sire_doc_ids"]) == ["b"]


def test_a_change_of_metadata_alone_reaches_derived_nodes():
    """Their ids do not change, but a store filter on the old tenant must not find them."""
    store = LeastStore()
    documents = [
        Document(id_=f"d{i}", text=f"Mara Smith built harbour {i}.", metadata={"tenant": "a"}) for i in range(4)
    ]
    retriever = SireRetriever.from_documents(documents, recipe="sirerag", vector_store=store)
    derived = [name for name in store.ids if store._nodes[name]["metadata"]["sire_kind"] != "chunk"]
    assert derived
    assert all(store._nodes[name]["metadata"]["tenant"] == "a" for name in derived)
    retriever.refresh(Document(id_="d0", text=documents[0].text, metadata={"tenant": "b"}))
    for name in store.ids & set(derived):
        node = store._nodes[name]["metadata"]
        assert ("tenant" in node) == ("d0" not in json.loads(node["sire_doc_ids"]))


def test_nothing_is_embedded_twice(documents):
    model = WordEmbedding()
    SireRetriever.from_documents(documents[:6], recipe="flat", embed_model=model, vector_store=LeastStore())
    assert len(model._calls) == 6


def test_refitted_vectors_are_put_anew(documents):
    """The core's default embedder fits again when the corpus has doubled: every vector changes."""
    store = SimpleVectorStore()
    retriever = SireRetriever.from_documents(documents[:10], recipe="flat", vector_store=store)
    retriever.insert(documents[10:40])
    view = retriever.index.view()
    for position, name in enumerate(view.ids.tolist()):
        assert store.data.embedding_dict[to_uuid(name.decode())] == pytest.approx(view.matrix[position].tolist())


async def test_a_truly_async_store_is_used_natively(documents, question):
    class AsyncStore(LeastStore):
        _used: list = PrivateAttr(default_factory=list)

        async def aquery(self, query, **kwargs):
            import asyncio

            await asyncio.sleep(0)
            self._used.append("async")
            return self.query(query)

    store = AsyncStore()
    retriever = await SireRetriever.afrom_documents(
        documents[:6], recipe="flat", vector_store=store, embed_model=AsyncEmbedding()
    )
    looked = list(store._used)  # before the first write, for entries that are not ours
    await retriever.aretrieve(question)
    assert store._used == [*looked, "async"]
    assert set(looked) <= {"async"}
    retriever.retrieve(question)
    assert store._used == [*looked, "async"], "sync calls use sync methods"
