"""Headings that stand in the metadata of nodes, under keys of the user."""

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_sire import SireRetriever
from sire_core import Index

pytestmark = pytest.mark.default_recipe

CLUSTERS = {"Heron": "green", "Gull": "blue", "Tern": "red"}
KEYS = ["page", "section"]


def nodes(name, cluster):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"{name}.md")}
    texts = {"Production": f"Production runs on the cluster {cluster}.", "Staging": "Staging runs beside it."}
    return [
        TextNode(text=text, metadata={"page": name, "section": section}, relationships=source)
        for section, text in texts.items()
    ]


def found(retriever):
    return [
        cluster
        for name, cluster in CLUSTERS.items()
        if cluster in retriever.retrieve(f"On which cluster does production of {name} run?")[0].node.text
    ]


def test_headings_under_any_keys_are_searched_and_a_folder_remembers_the_keys(tmp_path):
    place = tmp_path / "i"
    options = {"persist_dir": place, "similarity_top_k": 1}
    made = SireRetriever.from_documents(nodes("Heron", "green"), title_key=KEYS, **options)
    made.insert(nodes("Gull", "blue"))
    made.index.close()
    retriever = SireRetriever.from_persist_dir(place)
    retriever.insert(nodes("Tern", "red"))
    assert found(retriever) == list(CLUSTERS.values())
    assert {hit.unit.title for hit in retriever.index.search("production", 9)} >= {"Tern > Production"}
    retriever.index.close()
    again = SireRetriever.from_documents(nodes("Wren", "grey"), **options)
    assert "Wren > Staging" in {hit.unit.title for hit in again.index.search("Wren", 9)}
    again.index.close()


def test_a_retriever_over_an_index_saves_the_keys_with_its_first_write(tmp_path):
    with Index(tmp_path / "i") as index:
        retriever = SireRetriever(index, title_key=tuple(KEYS))
        retriever.insert(nodes("Heron", "green"))
        retriever.insert(nodes("Gull", "blue"))
    again = SireRetriever.from_persist_dir(tmp_path / "i")
    again.insert(nodes("Tern", "red"))
    assert "Tern > Production" in {hit.unit.title for hit in again.index.search("Tern production", 9)}
    again.index.close()
    with Index(tmp_path / "i") as index:
        SireRetriever(index, title_key="page").insert(nodes("Wren", "grey"))
        assert SireRetriever(index).title_key == KEYS
    other = SireRetriever.from_persist_dir(tmp_path / "i")
    assert other.title_key == KEYS
    other.index.close()


def part(name, text, file="a.md"):
    return Document(id_=name, text=text, metadata={"file_path": file})


def test_all_documents_of_a_file_follow_its_title(tmp_path):
    def titles():
        return {document.id: document.title for document in retriever.index.documents()}

    first = part("1", "---\ntitle: The queue\n---\nFirst words.")
    given = [first, part("2", "Second words."), part("b", "Other.", "b.md")]
    retriever = SireRetriever.from_documents(given, persist_dir=tmp_path / "i", recipe="flat")
    assert titles() == {"1": "The queue", "2": "The queue", "b": ""}
    other = SireRetriever.from_persist_dir(tmp_path / "i")
    other.update_ref_doc(part("1", "---\ntitle: The list\n---\nFirst words."))
    assert titles()["2"] == "The list"
    retriever.insert(part("3", "Third words."))
    assert titles()["3"] == "The list"
    retriever.delete_ref_doc("1")
    assert titles() == {"2": "", "3": "", "b": ""}
    retriever.replace_all([part("3", "Third words."), part("4", "---\ntitle: Last\n---\nWords.")])
    assert titles() == {"3": "Last", "4": "Last"}


def test_parts_that_stay_unchanged_in_a_replacement_are_retitled(tmp_path):
    splitter = SentenceSplitter(chunk_size=50, chunk_overlap=0)
    given = [part("1", "---\ntitle: The queue\n---\nFirst words."), part("2", "Second words."), part("3", "Third.")]
    retriever = SireRetriever.from_documents(given, recipe="flat", transformations=[splitter])
    retriever.replace_all([part("1", "---\ntitle: The list\n---\nFirst words."), given[1]])
    assert {d.id: d.title for d in retriever.index.documents()} == {"1": "The list", "2": "The list"}
