"""`SireRetriever`: documents in and out, by id and by filter, never lost."""

import shutil
import sqlite3
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from multiprocessing import get_context

import pytest
from langchain_core.documents import Document

from langchain_sire import SireRetriever
from sire_core import Index
from sire_core.errors import BuildError, ConfigurationError, CorpusError, StorageError
from sire_core.storage.check import check_folder
from sire_core.testing.doubles import HashEmbedder


def doc(name, text, **metadata):
    return Document(id=name, page_content=text, metadata=metadata)


PETRA = doc("petra", "Petra Quillon was born in Varn Harbour. Petra Quillon directed The Salt Lantern.")
OTTO = doc("otto", "Otto Brack commanded a steamship. Otto Brack was born in Lindlemouth.")


def generation(documents):
    try:
        return documents.index.stats()["generation"]
    except StorageError:
        return 0


def test_trap_slices_are_indexed_together_before_the_next_search():
    index = SireRetriever(index=Index(recipe="flat", chunker=None))
    for start in range(0, 300, 100):
        index.upsert([doc(str(n), f"Passage number {n}.") for n in range(start, start + 100)])
    index.delete(["0", "1"])
    assert generation(index) == 0
    index.invoke("Which passage?")
    assert generation(index) == 1
    assert index.index.stats()["documents"] == 298
    index.invoke("Which passage?")
    assert generation(index) == 1


def test_bulk_indexes_once_at_its_end():
    index = SireRetriever(index=Index(recipe="flat"))
    with index.bulk():
        index.upsert([PETRA])
        index.upsert([OTTO])
        assert generation(index) == 0
    assert generation(index) == 1
    assert index.index.stats()["documents"] == 2


def test_trap_delete_without_arguments_is_an_error():
    with pytest.raises(ValueError, match="Name the ids"):
        SireRetriever.open().delete()


def test_bad_documents_are_refused_and_nothing_is_added():
    index = SireRetriever.open()
    with pytest.raises(CorpusError, match="JSON"):
        index.upsert([OTTO, doc("a", "x", tags=object())])
    with pytest.raises(CorpusError, match="'a'"):
        index.upsert([OTTO, doc("a", "x"), doc("a", "y")])
    assert index.get(["otto", "a"]) == []


def test_a_reader_that_sees_less_indexes_every_change(tmp_path):
    writer = SireRetriever.open(tmp_path / "i", recipe="flat")
    writer.upsert([doc("a0", "Text of a.", tenant="a"), doc("b0", "Text of b.", tenant="b")])
    writer.flush()
    writer.delete(["b0"])
    reader = SireRetriever.open(tmp_path / "i", allow="tenant=a")
    assert [d.id for d in reader.invoke("Text")] == ["a0"]
    assert [d.id for d in SireRetriever.open(tmp_path / "i").invoke("Text")] == ["a0"]
    writer.upsert([doc("b1", "Text of b.", tenant="b")])
    writer.flush()
    reader.delete_documents(["b1", "never"], missing_ok=True)
    assert sorted(d.id for d in SireRetriever.open(tmp_path / "i").invoke("Text")) == ["a0", "b1"]


@pytest.mark.parametrize("allow", ["title!=Secret", "doc_id!=b0", "id in [a0]"])
def test_what_waits_is_hidden_by_ids_and_titles_as_what_is_stored(tmp_path, allow):
    SireRetriever.open(tmp_path / "i", recipe="flat", title_key="about").upsert(
        [doc("a0", "Text of a.", about="Open"), doc("b0", "Text of b.", about="Secret")]
    )
    reader = SireRetriever.open(tmp_path / "i", allow=allow)
    assert [d.id for d in reader.get(["a0", "b0"])] == ["a0"]
    assert [d.id for d in reader.invoke("Text")] == ["a0"]
    assert [d.id for d in reader.get(["a0", "b0"])] == ["a0"]


def test_a_deletion_where_nothing_was_built_makes_no_index(tmp_path):
    index = SireRetriever.open(tmp_path / "i", recipe="flat")
    assert index.delete(["petra"])["num_deleted"] == 0
    assert index.invoke("Petra?") == []
    assert not (tmp_path / "i" / "index.sqlite").exists()
    index = SireRetriever.open(recipe="flat")
    index.upsert([PETRA])
    index.delete(["petra"])
    assert index.invoke("Petra?") == []


def _add(path, name):
    store = SireRetriever.open(path, recipe="flat")
    for number in range(20):
        store.upsert([doc(f"{name}{number}", f"Text {name} {number}.")])


_PROCESSES = partial(ProcessPoolExecutor, mp_context=get_context("spawn"))


@pytest.mark.parametrize("workers", [ThreadPoolExecutor, pytest.param(_PROCESSES, marks=pytest.mark.slow)])
def test_trap_no_document_is_lost_where_several_write_to_one_folder(tmp_path, workers):
    SireRetriever.open(tmp_path / "i", recipe="flat").flush()
    with workers(2) as pool:
        for done in [pool.submit(_add, tmp_path / "i", name) for name in "ab"]:
            done.result()
    names = [f"{name}{number}" for name in "ab" for number in range(20)]
    index = SireRetriever.open(tmp_path / "i", recipe="flat", k=50)
    assert {d.id for d in index.get(names)} == set(names)
    assert {d.id for d in index.invoke("Text")} == set(names)


def test_a_deleted_folder_takes_what_waited_along(tmp_path):
    with SireRetriever.open(tmp_path / "i", recipe="flat").index as index:
        SireRetriever(index=index).upsert([PETRA])
    shutil.rmtree(tmp_path / "i")
    assert SireRetriever.open(tmp_path / "i", recipe="flat").get(["petra"]) == []


def test_a_failed_build_loses_nothing():
    class Failing(HashEmbedder):
        broken = True

        async def embed(self, texts, kind="document"):
            if self.broken:
                raise BuildError("out of quota")
            return await super().embed(texts, kind)

    embedder = Failing()
    index = SireRetriever.open(embedding=embedder, recipe="flat")
    index.upsert([PETRA])
    with pytest.raises(BuildError):
        index.invoke("Petra?")
    embedder.broken = False
    assert index.invoke("Petra?")[0].metadata["sire"]["doc_ids"] == ["petra"]


def test_damage_to_what_waits_is_an_error_that_says_what_to_do(tmp_path):
    with SireRetriever.open(tmp_path / "i", recipe="flat").index as index:
        documents = SireRetriever(index=index)
        documents.upsert([PETRA])
        documents.flush()
        documents.upsert([OTTO])
        documents.delete(["petra"])
    with closing(sqlite3.connect(tmp_path / "i" / "calls.sqlite")) as calls, calls:
        calls.execute("UPDATE pending SET body='null' WHERE id='otto'")
    with SireRetriever.open(tmp_path / "i").index as index:
        documents = SireRetriever(index=index)
        for ask in (documents.flush, lambda: documents.invoke("Who?"), lambda: documents.get(["otto"])):
            with pytest.raises(StorageError, match="hand in again the documents"):
                ask()
        (finding,) = check_folder(tmp_path / "i")
        assert (finding.file, "handed in again" in finding.advice) == ("calls.sqlite", True)
    (tmp_path / "i" / "calls.sqlite").unlink()
    with SireRetriever.open(tmp_path / "i").index as index:
        SireRetriever(index=index).upsert([OTTO])
        assert {hit.doc_ids[0] for hit in index.search("Who?")} == {"otto", "petra"}


def test_a_file_that_cannot_be_written_is_a_clear_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(StorageError, match="Name another place"):
        SireRetriever.open(blocked / "i").upsert([PETRA])


def chunks(*texts, source="m.md"):
    return [Document(text, metadata={"source": source, "year": 2024}) for text in texts]


def texts(retriever):
    return sorted(found.page_content for found in retriever.invoke("text", k=50))


def test_the_chunks_of_one_source_are_replaced(caplog):
    retriever = SireRetriever.from_documents(chunks("One.", "Two.") + chunks("Other.", source="o.md"), recipe="flat")
    assert retriever.delete_documents(filter="source=m.md").removed == 2
    retriever.add_documents(chunks("Three."))
    assert texts(retriever) == ["Other.", "Three."]
    retriever.delete_documents(filter={"year": {"gt": 2030}})
    narrow = SireRetriever(index=retriever.index, filter="source=o.md")
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


def test_documents_that_were_cut_come_back_whole():
    index = SireRetriever.open(chunker="sentences", recipe="flat")
    long = " ".join(f"Sentence number {n} says nothing new at all." for n in range(120))
    index.upsert([doc("long", long)])
    index.flush()
    assert index.index.stats()["passages"] > 1
    (back,) = index.get(["long"])
    assert all(f"Sentence number {n} says" in back.page_content for n in range(120))


def test_an_index_begins_without_documents_in_any_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "new" / "i"):
        index = SireRetriever.from_documents([], path=place, recipe="flat", k=7)
        index.add_documents([PETRA])
        assert [d.id for d in SireRetriever.open(place).invoke("Petra?")] == ["petra"]
        assert SireRetriever.open(place).k == 7
