"""Deleting by filter, and what a folder remembers of a LangChain retriever."""

import pytest
from langchain_core.documents import Document

from langchain_sire import SireDocumentIndex, SireRetriever
from sire_core.errors import ConfigurationError, CorpusError, IndexMissingError


def chunks(*texts, source="m.md"):
    return [Document(text, metadata={"source": source, "year": 2024}) for text in texts]


def texts(retriever):
    return sorted(found.page_content for found in retriever.invoke("text", k=50))


@pytest.mark.parametrize("make", [SireRetriever, SireDocumentIndex])
def test_the_chunks_of_one_source_are_replaced(make, caplog):
    retriever = make.from_documents(chunks("One.", "Two.") + chunks("Other.", source="o.md"), recipe="flat")
    retriever.delete_documents(filter="source=m.md")
    retriever.add_documents(chunks("Three."))
    assert texts(retriever) == ["Other.", "Three."]
    retriever.delete_documents(filter={"year": {"gt": 2030}})
    narrow = make(index=retriever.index, filter="source=o.md")
    narrow.delete_documents(filter="year=2024")
    assert texts(retriever) == ["Three."], "a retriever deletes nothing that it cannot find"
    with pytest.raises(ConfigurationError, match=r"Nothing was deleted.*'sorce'.*did you mean 'source'"):
        retriever.delete_documents(filter="sorce=m.md")
    retriever.delete_documents(filter="source=new.md")  # a first version replaces nothing
    assert "Nothing was deleted. No passage has 'new.md'" in caplog.text
    retriever.delete_documents(filter={"id": retriever.index.documents()[0].id})
    assert texts(retriever) == []


@pytest.mark.parametrize(
    "where", ["tenat!=a", {"tenat": {"nin": ["a"]}}, {"not": {"tenat": "a"}}, {"tenat": {"exists": False}}]
)
def test_a_mistyped_key_never_deletes_what_it_does_not_name(where):
    given = [Document(f"Text {name}.", id=name, metadata={"tenant": name[0]}) for name in ("a0", "b0")]
    retriever = SireRetriever.from_documents(given, recipe="flat")
    with pytest.raises(ConfigurationError, match=r"Nothing was deleted.*'tenat'.*did you mean 'tenant'"):
        retriever.delete_documents(filter=where)
    assert texts(retriever) == ["Text a0.", "Text b0."]
    retriever.delete_documents(filter="tenant!=a")
    assert texts(retriever) == ["Text a0."]


async def test_ids_or_a_filter():
    retriever = SireRetriever.from_texts(["One.", "Two."], ids=["a", "b"], recipe="flat")
    for wrong in ({}, {"ids": ["a"], "filter": "x=1"}, {"ids": None}):
        with pytest.raises(ConfigurationError, match="takes ids or a filter, one of the two"):
            await retriever.adelete_documents(**wrong)
    with pytest.raises(CorpusError, match="Not in the index"):
        retriever.delete_documents(["a", "z"])
    await retriever.adelete_documents(["a", "z"], missing_ok=True)
    retriever.delete_documents(["z"], missing_ok=True)
    assert texts(retriever) == ["Two."]


def test_a_folder_remembers_k(tmp_path):
    SireRetriever.from_documents(chunks("One."), path=tmp_path / "i", recipe="flat", k=5)
    assert SireRetriever.load(tmp_path / "i").k == 5
    assert SireRetriever.load(tmp_path / "i", k=2).k == 2
    assert SireRetriever.from_documents(chunks("Two."), path=tmp_path / "i").k == 5
    SireRetriever.load(tmp_path / "i", search_kwargs={"k": 7}).save(tmp_path / "copy")
    assert SireRetriever.load(tmp_path / "copy").k == 7
    with pytest.raises(IndexMissingError, match=r"SireRetriever.from_documents\(documents, path="):
        SireRetriever.load(tmp_path / "none")


def test_metadata_keep_the_order_of_their_keys(tmp_path):
    given = {"file_name": "a.md", "year": 2000, "authors": ["x"], "place": {"z": 1, "a": 2}}
    SireRetriever.from_documents([Document("Text.", id="a", metadata=given)], path=tmp_path / "i", recipe="flat")
    retriever = SireRetriever.load(tmp_path / "i")
    (found,) = retriever.invoke("text")
    assert str({key: value for key, value in found.metadata.items() if key != "sire"}) == str(given)
    other = Document("Text.", id="a", metadata=dict(reversed(given.items())))
    before = retriever.index.stats()["generation"]
    retriever.add_documents([other])
    assert retriever.index.stats()["generation"] == before, "in another order they are the same"
