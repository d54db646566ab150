"""Documents that LlamaIndex's splitters cut: unchanged ones are told, and nothing is cut otherwise without a word."""

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document

from llama_index_sire import SireRetriever
from sire_core.errors import ConfigurationError, IndexMissingError, KnownDocumentError


def splitter(size=30):
    return SentenceSplitter(chunk_size=size, chunk_overlap=0)


def documents():
    text = "Sentence number one speaks of the lemur island. The second speaks of the harbour. The third of its pier."
    return [Document(text=f"Page {n}. {text}", id_=f"d{n}", metadata={"file_name": f"{n}.md"}) for n in range(3)]


def passages(retriever):
    return {document.id: document.chunks for document in retriever.index.documents()}


def test_refresh_says_what_a_vector_store_index_says_of_split_documents():
    ours = SireRetriever.from_documents(documents(), transformations=[splitter()], recipe="flat")
    theirs = VectorStoreIndex.from_documents(
        documents(), embed_model=MockEmbedding(8), transformations=[splitter()], show_progress=False
    )
    before = passages(ours)
    assert len(before["d0"]) > 1
    assert ours.refresh_ref_docs(documents()) == theirs.refresh_ref_docs(documents()) == [False] * 3
    assert passages(ours) == before
    changed = documents()
    changed[1].set_content("Another page. " + changed[1].text)
    changed[2].metadata["year"] = 1931
    assert ours.refresh_ref_docs(changed) == theirs.refresh_ref_docs(changed) == [False, True, True]
    assert ours.refresh_ref_docs(changed) == [False] * 3
    ours.insert(changed)  # there already, and the same
    ours.replace_all(changed)
    assert passages(ours)["d0"] == before["d0"]


def test_a_folder_knows_what_cut_its_documents(tmp_path):
    place, new = tmp_path / "i", Document(text="A new page. It is long. " * 20, id_="new")
    SireRetriever.from_documents(documents(), transformations=[splitter()], persist_dir=place, recipe="flat")
    forgetful = SireRetriever.from_persist_dir(place)
    before = passages(forgetful)
    for change in (forgetful.insert, forgetful.refresh_ref_docs, forgetful.update_ref_doc, forgetful.replace_all):
        with pytest.raises(ConfigurationError, match=r"SentenceSplitter.*from_persist_dir\(folder, transformations="):
            change([*documents(), new])
    SireRetriever.from_documents([], persist_dir=place)  # does not make it forget
    with pytest.raises(ConfigurationError, match="other settings"):
        SireRetriever.from_documents([new], persist_dir=place, transformations=[splitter(60)])
    assert passages(forgetful) == before
    again = SireRetriever.from_persist_dir(place, transformations=[splitter()])
    assert again.refresh_ref_docs([*documents(), new]) == [False, False, False, True]
    again.persist(tmp_path / "copy")
    with pytest.raises(ConfigurationError, match="SentenceSplitter"):
        SireRetriever.from_persist_dir(tmp_path / "copy").insert(new)
    SireRetriever.from_persist_dir(place, transformations=[]).replace_all([new])  # said in so many words
    SireRetriever.from_persist_dir(place).insert(documents())


def test_a_document_that_was_given_in_nodes_is_not_cut_again():
    retriever = SireRetriever.from_documents(splitter().get_nodes_from_documents(documents()), recipe="flat")
    before = passages(retriever)
    for change in (retriever.insert, retriever.refresh_ref_docs):
        with pytest.raises(ConfigurationError, match=r"as nodes that were cut before: d1.*Give its nodes"):
            change([documents()[1]])
    assert passages(retriever) == before
    retriever.insert(Document(text="Whole.", id_="whole"))
    assert "whole" in passages(retriever)


def test_unknown_ids_missing_folders_and_filters_on_ids(tmp_path, caplog):
    retriever = SireRetriever.from_documents(documents(), recipe="flat")
    retriever.delete_ref_doc("d0")
    retriever.delete_ref_doc("d0")  # LlamaIndex's own index mentions it, too
    assert "ref_doc_id d0 not found" in caplog.text
    with pytest.raises(
        KnownDocumentError, match=r"text: d1. To replace.*update_ref_doc\(document\) or refresh_ref_docs"
    ):
        retriever.insert(Document(text="Another.", id_="d1"))
    retriever.as_retriever(filters="ref_doc_id=d7").retrieve("island")
    assert "No document has the id 'd7'." in caplog.text
    with pytest.raises(IndexMissingError, match=r"SireRetriever.from_documents\(documents, persist_dir="):
        SireRetriever.from_persist_dir(tmp_path / "none")
