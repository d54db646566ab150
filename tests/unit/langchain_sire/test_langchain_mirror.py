"""LangChain's own InMemoryVectorStore follows an index, and is searched by our recipes."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import SireRetriever, VectorStoreMirror, over_vector_store, pool_documents
from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.recipes import indexrag

PEOPLE = ["Mira Vale", "Anna Berg", "Tom Hale", "Ida Moor"]


def document(i, salt=""):
    text = f"{PEOPLE[i % 4]} was a painter{salt}. {PEOPLE[i % 4]} married {PEOPLE[(i + 1) % 4]} in Port {i}."
    return Document(f"d{i}", text, f"No. {i}", {"tenant": "a" if i % 2 else "b"})


@pytest.fixture
def store():
    return InMemoryVectorStore(DeterministicFakeEmbedding(size=32))


def content(store):
    return {name: (row["text"], row["metadata"]) for name, row in store.store.items()}


def expected(index):
    return {found.id: (found.page_content, found.metadata) for found in pool_documents(index)}


def test_the_store_is_what_pool_documents_says_after_every_change(store):
    index = Index(recipe=indexrag(), chunker=None, mirrors=[VectorStoreMirror(store)])
    index.build([document(i) for i in range(4)])
    assert content(store) == expected(index)
    index.add([document(5)])
    assert content(store) == expected(index)
    index.update([document(1, " of ships")])
    assert content(store) == expected(index)
    index.delete(["d0", "d5"])
    assert content(store) == expected(index)


async def test_async_changes_use_the_stores_async_methods(store):
    called = []

    class Noting(InMemoryVectorStore):
        async def aadd_documents(self, documents, **kwargs):
            called.append("aadd")
            return await super().aadd_documents(documents, **kwargs)

        async def adelete(self, ids=None, **kwargs):
            called.append("adelete")
            await super().adelete(ids, **kwargs)

    noting = Noting(DeterministicFakeEmbedding(size=32))
    index = Index(recipe="flat", chunker=None, mirrors=[VectorStoreMirror(noting)])
    await index.abuild([document(i) for i in range(3)])
    await index.adelete(["d0"])
    assert called == ["aadd", "adelete"]
    assert content(noting) == expected(index)


def test_a_store_that_cannot_be_asked_and_does_not_replace_is_served_too():
    class Plain(InMemoryVectorStore):
        def get_by_ids(self, ids):
            raise NotImplementedError

    store = Plain(DeterministicFakeEmbedding(size=32))
    index = Index(recipe="flat", chunker=None, mirrors=[VectorStoreMirror(store)])
    index.build([document(i) for i in range(3)])
    index.delete(["d0"])
    index.update([document(1, " again")])
    assert content(store) == expected(index)


def test_a_retriever_searches_the_mirrored_store(store, tmp_path):
    with Index(tmp_path / "i", recipe="flat", chunker=None, mirrors=[VectorStoreMirror(store)]) as index:
        index.build([document(i) for i in range(4)])
    retriever = SireRetriever(index=Index(tmp_path / "i", recipe=over_vector_store("flat", store)), k=4)
    found = retriever.invoke("Who was a painter?")
    assert {document.metadata["title"] for document in found} == {f"No. {i}" for i in range(4)}


def test_something_else_is_refused():
    with pytest.raises(ConfigurationError, match="no LangChain VectorStore"):
        VectorStoreMirror({})
