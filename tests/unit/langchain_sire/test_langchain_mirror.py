"""LangChain's own InMemoryVectorStore follows an index, and is searched by our recipes."""

from dataclasses import replace

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import SireRetriever, VectorStoreMirror, pool_documents
from sire_core import Document
from sire_core.errors import EmbedderMismatchError
from sire_core.recipes import indexrag, recipe_by_name
from support.indexes import indexed

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


def test_the_store_and_its_file_are_what_pool_documents_says_after_every_change(store, tmp_path):
    file = str(tmp_path / "store.json")
    mirror = VectorStoreMirror(store, save=lambda: store.dump(file))
    index = indexed([document(i) for i in range(4)], recipe=indexrag(), chunker=None, mirrors=[mirror])
    assert content(store) == expected(index)
    index.add([document(5)])
    assert content(store) == expected(index)
    index.update([document(1, " of ships")])
    assert content(store) == expected(index)
    index.delete(["d0", "d5"])
    assert content(store) == content(InMemoryVectorStore.load(file, store.embedding)) == expected(index)


def test_a_store_that_cannot_be_asked_and_does_not_replace_is_served_too():
    class Plain(InMemoryVectorStore):
        def get_by_ids(self, ids):
            raise NotImplementedError

    store = Plain(DeterministicFakeEmbedding(size=32))
    index = indexed([document(i) for i in range(3)], recipe="flat", chunker=None, mirrors=[VectorStoreMirror(store)])
    index.delete(["d0"])
    index.update([document(1, " again")])
    assert content(store) == expected(index)


def test_a_recipe_that_this_process_was_given_is_known_over_a_store_too(store, tmp_path):
    recipe = replace(recipe_by_name("flat"), name="of-mine")
    SireRetriever.from_texts(["Mira painted."], path=tmp_path / "i", recipe=recipe, vector_store=store).index.close()
    with pytest.raises(EmbedderMismatchError, match=r"vector_store=\.\.\. instead"):
        SireRetriever.load(tmp_path / "i").invoke("Who?")
    opened = SireRetriever.load(tmp_path / "i", vector_store=store)
    assert [document.page_content for document in opened.invoke("Who?")] == ["Mira painted."]


def test_a_store_that_is_away_does_not_keep_an_index_from_being_opened(tmp_path, caplog):
    class Away(InMemoryVectorStore):
        def get_by_ids(self, ids):
            raise ConnectionError("the store is away")

    SireRetriever.from_texts(["Mira painted."], path=tmp_path / "i").index.close()
    for _ in range(2):
        mirror = VectorStoreMirror(Away(DeterministicFakeEmbedding(size=32)))
        retriever = SireRetriever.load(tmp_path / "i", mirrors=[mirror])
        assert retriever.invoke("Who?")
        assert "behind the index: ConnectionError: the store is away" in caplog.text
        retriever.index.close()


class Picky(InMemoryVectorStore):
    """Takes single values only, as Chroma does, and no text with a bad word."""

    def add_documents(self, documents, ids=None, **kwargs):
        for found in documents:
            for key, value in found.metadata.items():
                if not isinstance(value, (str, int, float, bool)):
                    raise TypeError(f"Expected metadata value of {key} to be a str, int, float or bool")
            if "unlucky" in found.page_content:
                raise ValueError("a text that the store cannot take")
        return super().add_documents(documents, ids=ids, **kwargs)

    async def aadd_documents(self, documents, ids=None, **kwargs):
        return self.add_documents(documents, ids=ids, **kwargs)


def text(content, name, **metadata):
    return LangChainDocument(content, id=name, metadata=metadata)


def test_nested_metadata_becomes_fit_and_this_is_said_once(caplog):
    store = Picky(DeterministicFakeEmbedding(size=32))
    documents = [text("A plain one.", "a", n=1), text("A nested one.", "b", deep={"a": [1]}, none=None)]
    retriever = SireRetriever.from_documents(documents, vector_store=store, recipe="flat")
    retriever.add_documents([text("Another.", "c", tags=["x"])])
    retriever.delete_documents("a")
    rows = {row["text"]: row["metadata"] for row in store.store.values()}
    assert set(rows) == {"A nested one.", "Another."}
    assert (rows["A nested one."]["deep"], rows["Another."]["tags"]) == ('{"a": [1]}', '["x"]')
    assert "none" not in rows["A nested one."]
    assert caplog.text.count("single values") == 1
    (found,) = [d for d in retriever.invoke("nested") if d.id == "b"]
    assert found.metadata["deep"] == {"a": [1]}


def test_a_unit_that_is_refused_holds_up_no_other():
    store = Picky(DeterministicFakeEmbedding(size=32))
    texts = [*(f"Text {n}." for n in range(9)), "An unlucky one.", *(f"More {n}." for n in range(9))]
    retriever = SireRetriever.from_texts(texts, ids=[f"d{n}" for n in range(19)], vector_store=store, recipe="flat")
    assert {row["text"] for row in store.store.values()} == {text for text in texts if "unlucky" not in text}
    stats = retriever.index.stats()
    assert stats["waiting"] == {"langchain": 1}
    assert len(stats["waiting_ids"]["langchain"]) == 1
    retriever.delete_documents("d0")
    retriever.add_documents([text("Late.", "late")])
    assert {"Late.", "Text 0."} & {row["text"] for row in store.store.values()} == {"Late."}
    assert "d9" in {d.id for d in retriever.invoke("unlucky", k=30)}
    retriever.delete_documents("d9")
    assert retriever.index.stats()["waiting"] == {"langchain": 0}


def test_a_store_that_is_out_of_order_is_not_asked_for_each_unit():
    class Down(InMemoryVectorStore):
        asked = 0

        def add_documents(self, documents, ids=None, **kwargs):
            Down.asked += 1
            raise RuntimeError("out of order")

        async def aadd_documents(self, documents, ids=None, **kwargs):
            return self.add_documents(documents)

    with pytest.raises(RuntimeError, match="out of order"):
        SireRetriever.from_texts(
            [f"Text {n}." for n in range(200)], vector_store=Down(DeterministicFakeEmbedding(size=32)), recipe="flat"
        )
    assert Down.asked < 60
