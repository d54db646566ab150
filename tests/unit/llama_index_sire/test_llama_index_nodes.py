"""Documents in, nodes out: fields, cutting, titles."""

import json
import pickle

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter
from llama_index.core.schema import MetadataMode, NodeRelationship, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
from llama_index_mirrors import AppendOnly

from llama_index_sire import SireRetriever, to_documents
from sire_core import Document as CoreDocument
from sire_core import Index
from sire_core.documents.chunker import SentenceChunker
from sire_core.errors import ConfigurationError, CorpusError, IndexMissingError, KnownDocumentError

pytestmark = pytest.mark.default_recipe


def test_whole_documents_are_cut_as_the_core_cuts_them_and_nodes_know_where_they_stand():
    sections = [f"## Part {n}\n\n" + f"Pump {n} needs oil every day of the year. " * 30 for n in range(4)]
    rows = "".join(f"| pump {n} | every {n} days it needs much oil |\n" for n in range(40))
    text = "# Pumps\n\n" + "\n\n".join(sections) + f"\n\n| what | when |\n| --- | --- |\n{rows}"
    retriever = SireRetriever.from_documents([Document(id_="d", text=text)], chunker=SentenceChunker(128))
    index = Index(recipe="flat", chunker=SentenceChunker(128))
    index.build([CoreDocument("d", text)])
    mine, theirs = (each.documents()[0].passages for each in (retriever.index, index))
    assert [(passage.text, passage.title) for passage in mine] == [(passage.text, passage.title) for passage in theirs]
    assert {passage.title.split(" > ")[-1] for passage in mine} >= {"Part 0", "Part 3"}
    nodes = retriever.get_by_ids("d")
    assert len(nodes) == len(mine) > 8
    for node in nodes:  # rows of a table stand below its head
        assert node.text.endswith(text[node.start_char_idx : node.end_char_idx])
        assert node.text == text[node.start_char_idx : node.end_char_idx] or node.text.startswith("| what | when |")


def test_nodes_of_a_splitter_are_passages_of_their_document():
    document = Document(
        id_="d1", text="One sentence here. Another sentence there. A third one.", metadata={"title": "T"}
    )
    nodes = TokenTextSplitter(chunk_size=5, chunk_overlap=0, tokenizer=str.split)([document])
    assert len(nodes) > 2
    nodes[0].metadata["header"] = "only here"
    (found,) = to_documents(nodes)
    assert found.id == "d1"
    assert [(passage.text, passage.id) for passage in found.passages] == [(node.text, node.node_id) for node in nodes]
    assert [passage.metadata.get("header") for passage in found.passages[:2]] == ["only here", None]
    assert found.metadata == {"title": "T"}


def test_something_else_is_refused():
    with pytest.raises(CorpusError, match="number 0 is str"):
        to_documents(["text"])


def test_trap_nodes_in_a_store_are_flat_have_a_source_and_hide_our_bookkeeping():
    """Without SOURCE a node is stored under "None" and no delete reaches it; metadata are printed into prompts."""
    store = AppendOnly()
    given = [Document(id_=f"d{n}", text=f"Petra Quillon saw ship {n}.", metadata={"tenant": "a"}) for n in range(4)]
    retriever = SireRetriever.from_documents(given, recipe="sirerag", vector_store=store)
    assert retriever.retrieve("Who saw ship 2?")[0].node.ref_doc_id == "d2"
    assert {node.metadata["sire_kind"] for node in store._rows} > {"chunk"}
    for node in store._rows:
        assert node.ref_doc_id == node.node_id
        assert {"sire_level", "sire_chunk_ids"} <= set(node.metadata)
        assert not isinstance(node.relationships[NodeRelationship.SOURCE], list)
        assert set(json.loads(node.metadata["sire_doc_ids"])) <= {"d0", "d1", "d2", "d3"}
        back = metadata_dict_to_node(json.loads(json.dumps(node_to_metadata_dict(node, flat_metadata=True))))
        assert (back.hash, back.metadata) == (node.hash, node.metadata)
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert "sire_" not in node.get_content(mode)
            assert "tenant: a" in node.get_content(mode)


def test_the_users_excluded_keys_stay_excluded():
    """Readers exclude file paths and dates; without this they would be printed into every prompt."""
    given = Document(
        id_="d",
        text="Some text.",
        metadata={"file_path": "/x", "title": "T"},
        excluded_llm_metadata_keys=["file_path"],
        excluded_embed_metadata_keys=["file_path"],
    )
    retriever = SireRetriever.from_documents([given], recipe="flat")
    (found,) = retriever.retrieve("text")
    assert "/x" not in found.node.get_content(MetadataMode.LLM)
    assert "/x" not in found.node.get_content(MetadataMode.EMBED)
    assert found.node.metadata["file_path"] == "/x"
    assert "sire_node" not in found.node.metadata


def test_a_hit_says_why_and_is_the_same_node_for_every_question():
    documents = [
        Document(id_="film", text="The Salt Lantern was directed by Petra Quillon."),
        Document(id_="person", text="Petra Quillon was born in Varn Harbour."),
    ]
    retriever = SireRetriever.from_documents(documents, similarity_top_k=2, recipe="sire")
    answers = [retriever.retrieve(q) for q in ("Where was the director of The Salt Lantern born?", "Varn Harbour")]
    one, other = ({found.node.ref_doc_id: found.node for found in nodes}["person"] for nodes in answers)
    assert "Petra Quillon" in str(one.metadata["sire_path"])
    assert len(one.metadata["sire_path"]) > 1
    assert str(one.metadata["sire_path"]) != str(other.metadata["sire_path"])
    assert one.hash == other.hash
    assert one == other
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "sire_path" not in one.get_content(mode)
    copies = [one.model_copy(deep=True), pickle.loads(pickle.dumps(one))]
    assert [copied.hash for copied in copies] == [one.hash] * 2
    assert copies[0].metadata["sire_path"] == one.metadata["sire_path"]
    back = TextNode.from_dict(json.loads(one.to_json()))
    assert back.hash == one.hash
    both = [found for nodes in answers for found in nodes]
    again = to_documents([found.node for found in both])
    assert {found.id for found in again} == {"film", "person"}
    assert not any("sire_path" in found.metadata for document in again for found in (document, *document.passages))


def test_trap_a_score_of_zero_is_read_as_one():
    """`score = n.score or 1.0`."""
    given = [Document(id_=name, text=text) for name, text in (("a", "A lighthouse."), ("b", "Rye bread."))]
    retriever = SireRetriever.from_documents(given, recipe="flat", ranker="bm25")
    scores = {found.node.ref_doc_id: found.score for found in retriever.retrieve("lighthouse")}
    assert {type(score) for score in scores.values()} == {float}
    assert 0 < scores["b"] < 0.001 < scores["a"]


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


def part(name, text, file="a.md"):
    return Document(id_=name, text=text, metadata={"file_path": file})


def test_parts_that_stay_unchanged_in_a_replacement_are_retitled(tmp_path):
    splitter = SentenceSplitter(chunk_size=50, chunk_overlap=0)
    given = [part("1", "---\ntitle: The queue\n---\nFirst words."), part("2", "Second words."), part("3", "Third.")]
    retriever = SireRetriever.from_documents(given, recipe="flat", transformations=[splitter])
    retriever.replace_all([part("1", "---\ntitle: The list\n---\nFirst words."), given[1]])
    assert {d.id: d.title for d in retriever.index.documents()} == {"1": "The list", "2": "The list"}
