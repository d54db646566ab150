"""Headings that a splitter put into the metadata, under keys of the user."""

import pytest
from langchain_core.documents import Document

from langchain_sire import SireRetriever
from sire_core import Document as CoreDocument
from sire_core import Index

pytestmark = pytest.mark.default_recipe


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


def _part(name, text, source="a.md"):
    return Document(page_content=text, metadata={"source": source}, id=name)


def test_titles_follow_what_is_handed_in_before_a_search():
    def titles():
        retriever.flush()
        return {document.id: document.title for document in retriever.index.documents()}

    retriever = SireRetriever.open(recipe="flat")
    retriever.upsert([_part("1", "---\ntitle: The queue\n---\nFirst words."), _part("2", "Second words.")])
    assert titles() == {"1": "The queue", "2": "The queue"}
    retriever.upsert([_part("1", "---\ntitle: The list\n---\nFirst words.")])
    assert titles()["2"] == "The list"
    retriever.delete(["1"])
    assert titles() == {"2": ""}


def test_titles_that_come_from_elsewhere_stay(tmp_path):
    """A document of the core has a title of its own, whatever its `source` says."""
    with Index(tmp_path / "i", recipe="flat") as index:
        index.build([CoreDocument("page", "Words.", "From the page", {"source": "a.md"})])
    retriever = SireRetriever.open(tmp_path / "i", chunker=None)
    retriever.add_documents([_part("1", "---\ntitle: The queue\n---\nFirst."), _part("2", "Second.")])
    retriever.delete_documents(["1"])
    assert {d.id: d.title for d in retriever.index.documents()} == {"page": "From the page", "2": ""}
