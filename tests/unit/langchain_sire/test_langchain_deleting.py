"""Deleting by filter, and what a folder remembers of a LangChain retriever."""

import pytest
from langchain_core.documents import Document

from langchain_sire import SireRetriever, SireVectorStore
from sire_core import types
from sire_core.errors import ConfigurationError, CorpusError, IndexMissingError
from sire_core.index import Index
from sire_core.types import Passage


def chunks(*texts, source="m.md"):
    return [Document(text, metadata={"source": source, "year": 2024}) for text in texts]


def texts(retriever):
    return sorted(found.page_content for found in retriever.invoke("text", k=50))


@pytest.mark.parametrize("make", [SireRetriever])
def test_the_chunks_of_one_source_are_replaced(make, caplog):
    retriever = make.from_documents(chunks("One.", "Two.") + chunks("Other.", source="o.md"), recipe="flat")
    assert retriever.delete_documents(filter="source=m.md").removed == 2
    retriever.add_documents(chunks("Three."))
    assert texts(retriever) == ["Other.", "Three."]
    retriever.delete_documents(filter={"year": {"gt": 2030}})
    narrow = make(index=retriever.index, filter="source=o.md")
    narrow.delete_documents(filter="year=2024")
    assert texts(retriever) == ["Three."], "a retriever deletes nothing that it cannot find"
    with pytest.raises(ConfigurationError, match=r"Nothing was deleted.*'sorce'.*did you mean 'source'"):
        retriever.delete_documents(filter="sorce=m.md")
    assert retriever.delete_documents(filter="source=new.md").removed == 0  # a first version replaces nothing
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


@pytest.fixture
def part_hidden(tmp_path):
    """A folder whose first document has a passage that few may see, whose second nobody else may."""
    marks = {"d": {"d1": "public", "d2": "private"}, "e": {"e1": "private"}, "f": {"f1": "public", "f2": "public"}}
    given = [
        types.Document(
            name, chunks=tuple(Passage(f"Text {own}.", own, metadata={"level": m}) for own, m in own.items())
        )
        for name, own in marks.items()
    ]
    with Index(tmp_path / "i", recipe="flat", chunker=None) as index:
        index.build(given)
    return tmp_path / "i"


def passages(folder):
    with Index(folder) as index:
        return [own for _, own in index.snapshot().passage_ids()]


async def test_what_a_reader_may_not_see_outlives_his_deletions(part_hidden):
    reader = SireRetriever.load(part_hidden, allow="level=public")
    reader.delete_documents(filter="level=public")
    assert passages(part_hidden) == ["d2", "e1"]
    await reader.adelete_documents(filter={"doc_id": {"in": ["d", "e"]}})
    assert passages(part_hidden) == ["d2", "e1"], "he sees nothing of them"


@pytest.mark.parametrize("make", [lambda documents: documents, lambda documents: SireVectorStore(documents=documents)])
def test_by_id_a_store_deletes_what_its_reader_sees(part_hidden, make):
    reader = SireRetriever.open(part_hidden, allow="level=public")
    reader.upsert([Document("Text g.", id="g", metadata={"level": "public"})])
    make(reader).delete(["d", "e", "g", "never"])
    assert passages(part_hidden) == ["d2", "e1", "f1", "f2"]


def test_only_shown_takes_hidden_documents_for_unknown_ones(part_hidden):
    with Index(part_hidden, allow="level=public") as index:
        with pytest.raises(CorpusError, match=r"Not in the index: 1 id to delete \(e\).*Nothing was deleted") as error:
            index.delete(["d", "e"], visible_only=True)
        assert "similar" not in str(error.value)
        report = index.delete(["d", "e", "f"], visible_only=True, missing_ok=True)
        assert (report.updated, report.removed) == (1, 1)
        index.delete(["d"])
    assert passages(part_hidden) == ["e1"], "by id alone changes are not limited"


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
