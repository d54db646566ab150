"""Headings that a splitter put into the metadata, under keys of the user."""

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import MarkdownHeaderTextSplitter

from langchain_sire import SireRetriever, SireVectorStore
from sire_core import Document as CoreDocument
from sire_core import Index

pytestmark = pytest.mark.default_recipe

CLUSTERS = {"Heron": "green", "Gull": "blue", "Tern": "red", "Plover": "white"}


@pytest.fixture
def chunks():
    splitter = MarkdownHeaderTextSplitter([("#", "page"), ("##", "section")])
    return [
        chunk
        for name, cluster in CLUSTERS.items()
        for chunk in splitter.split_text(
            f"# {name}\n\n## Production\n\nProduction runs on the cluster {cluster}. It has twelve nodes and is off at "
            "night.\n\n## Staging\n\nStaging runs on a small cluster of two nodes beside it.\n"
        )
    ]


def found(retriever):
    return [
        cluster
        for name, cluster in CLUSTERS.items()
        if cluster in retriever.invoke(f"On which cluster does production of {name} run?")[0].page_content
    ]


def test_headings_under_any_keys_are_searched_when_they_are_named(chunks):
    retriever = SireRetriever.from_documents(chunks, title_key=["page", "section"], k=1)
    assert found(retriever) == list(CLUSTERS.values())
    assert {hit.unit.title for hit in retriever.index.search("production", 9)} >= {"Heron > Production"}
    assert retriever.invoke("Heron")[0].metadata["page"] == "Heron"


@pytest.mark.parametrize(
    ("keys", "title"),
    [
        (["Header 1", "Header 2"], "Guide > Install"),
        (["title", "Header 1"], "Manual > Guide > Install"),
        ("title", "Manual > Guide > Install"),
    ],
)
def test_headings_that_are_named_and_known_stand_in_a_title_once(keys, title):
    metadata = {"title": "Manual", "Header 1": "Guide", "Header 2": "Install"}
    made = SireRetriever.from_documents([Document(page_content="Run it.", metadata=metadata)], title_key=keys)
    assert made.index.search("run", 1)[0].unit.title == title


@pytest.mark.parametrize(
    "opened",
    [
        SireRetriever.open,
        lambda path, **given: SireVectorStore(path=path, **given).documents,
        lambda path, **given: SireRetriever(index=Index(path, chunker=None), **given),
    ],
)
def test_a_folder_remembers_the_keys_of_its_first_write(chunks, tmp_path, opened):
    first = opened(tmp_path / "i", title_key=["page", "section"])
    first.add_documents(chunks[:2])
    assert first.index.search("Heron", 1)[0].unit.title.startswith("Heron > ")
    first.index.close()
    again = SireRetriever.open(tmp_path / "i")
    again.add_documents(chunks[2:4])
    assert {hit.unit.title for hit in again.index.search("cluster", 9)} >= {"Gull > Production", "Gull > Staging"}
    again.index.close()
    other = SireRetriever.open(tmp_path / "i", title_key="page", k=2)
    other.add_documents(chunks[4:])
    assert other.title_key == "page"
    other.index.close()
    assert SireRetriever.load(tmp_path / "i").title_key == ["page", "section"]


def _part(name, text, source="a.md"):
    return Document(page_content=text, metadata={"source": source}, id=name)


@pytest.mark.parametrize("way", ["add", "upsert", "another process"])
def test_all_chunks_of_a_file_follow_its_title(tmp_path, way):
    """After any change the titles are those of an index that is made anew from the same documents."""
    documents = {
        "1": _part("1", "---\ntitle: The queue\n---\nFirst words."),
        "2": _part("2", "Second words."),
        "own": Document(page_content="Third.", metadata={"source": "a.md", "title": "Mine"}, id="own"),
        "b": _part("b", "Other words.", "b.md"),
    }

    def same(retriever):
        retriever.flush()
        expected = SireRetriever.from_documents(list(documents.values()), recipe="flat").index.documents()
        assert {d.id: d.title for d in retriever.index.documents()} == {d.id: d.title for d in expected}
        return {d.id: d.title for d in expected}

    def change(put=(), delete=()):
        documents.update({d.id: d for d in put})
        for name in delete:
            del documents[name]
        on = SireRetriever.open(tmp_path / "i") if way == "another process" else retriever
        if way == "add":
            (on.add_documents(list(put)) if put else on.delete_documents(list(delete)))
        else:
            (on.upsert(list(put)) if put else on.delete(list(delete)))

    retriever = SireRetriever.from_documents(list(documents.values()), path=tmp_path / "i", recipe="flat")
    assert same(retriever) == {"1": "The queue", "2": "The queue", "own": "Mine", "b": ""}
    change([_part("1", "---\ntitle: The list\n---\nFirst words.")])
    assert same(retriever)["2"] == "The list"
    change([_part("b", "+++\ntitle = 'B'\n+++\nOther.", "b.md"), _part("b2", "More.", "b.md")])
    assert same(retriever)["b2"] == "B"
    change([_part("2", "Second words.", "b.md")])
    assert same(retriever)["2"] == "B"
    change([_part("1", "No title any more.")])
    change([_part("2", "Second words.")])
    assert same(retriever)["2"] == ""
    change(delete=["b"])
    assert same(retriever)["b2"] == ""


def test_titles_that_come_from_elsewhere_stay(tmp_path):
    """A document of the core has a title of its own, whatever its `source` says."""
    with Index(tmp_path / "i", recipe="flat") as index:
        index.build([CoreDocument("page", "Words.", "From the page", {"source": "a.md"})])
    retriever = SireRetriever.open(tmp_path / "i", chunker=None)
    retriever.add_documents([_part("1", "---\ntitle: The queue\n---\nFirst."), _part("2", "Second.")])
    retriever.delete_documents(["1"])
    assert {d.id: d.title for d in retriever.index.documents()} == {"page": "From the page", "2": ""}
