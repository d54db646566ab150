"""Documents from and to LangChain's."""

import json

import pytest
from langchain_core.documents import Document

from langchain_sire import SireRetriever
from sire_core.errors import CorpusError


def made(*documents, **options):
    return SireRetriever.from_documents(list(documents), recipe="flat", **options)


def id_of(text, **metadata):
    """The id of a document that was given without one."""
    return made(Document(text, metadata=metadata)).index.documents()[0].id


def test_a_title_that_is_no_string_stays_metadata():
    (document,) = made(Document("x", id="a", metadata={"title": 7})).index.documents()
    assert (document.title, document.metadata) == ("", {"title": 7})


def test_content_ids_are_the_same_in_every_run_and_depend_on_content_and_metadata():
    assert id_of("a", x=1, y=2) == id_of("a", y=2, x=1) == "6226e44961ecc59a54aec88d"
    assert len({id_of("a"), id_of("b"), id_of("a", x=1), id_of("a", x=2)}) == 4
    assert id_of("x", t=set("abc")) == id_of("x", t=set("cba"))
    assert len(made(Document("Same."), Document("Same.")).index.documents()) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("text", "list"),
        (Document("x"), "list"),
        ([Document("x"), "x"], r"list of langchain_core\.documents\.Document objects; number 1 is str"),
        ([Document("x", id="a", metadata={"price": [object()]})], "'a'.*price.*JSON"),
        ([Document("x", metadata={"price": object()})], "JSON"),
    ],
)
def test_what_is_no_list_of_documents_is_refused(given, words):
    with pytest.raises(CorpusError, match=words):
        SireRetriever.from_documents(given, recipe="flat")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"texts": ["a", "b"], "metadatas": [{}]}, "2 texts but 1 metadatas"),
        ({"texts": ["a"], "ids": ["x", "y"]}, "1 texts but 2 ids"),
        ({"texts": "abc"}, "list of texts"),
    ],
)
def test_from_texts_refuses_lists_that_do_not_fit(arguments, words):
    with pytest.raises(CorpusError, match=words):
        SireRetriever.from_texts(**arguments)


def test_what_a_search_says_of_a_document_is_plain_json_and_moves_no_value_of_the_user():
    mine = {"sire": "mine", "kind": "ship", "score": 9, "title": "Mine", "year": 1990}
    (found,) = made(Document("The text.", id="a", metadata=mine)).invoke("text")
    about = found.metadata["sire"]
    assert found.metadata == {**mine, "sire": about, "user_sire": "mine"}
    assert [type(about[key]) for key in ("score", "level", "kind")] == [float, int, str]
    assert set(about) == {"score", "kind", "level", "doc_ids", "chunk_ids", "path", "title"}
    assert (about["kind"], about["doc_ids"], about["title"]) == ("chunk", ["a"], "Mine")
    assert json.loads(json.dumps(found.metadata)) == found.metadata


@pytest.mark.default_recipe
@pytest.mark.parametrize("source", ["phones.csv", "phones.txt"])
def test_a_chunk_of_plain_csv_is_reached_over_the_name_in_a_row(source):
    lines = [
        f"{name},{4100 + number},Quay House" for number, name in enumerate(("Oda Brandvik", "Lech Wojda", "Ulf Tangen"))
    ]
    phones = Document("\n".join(["Name,Extension,Office", *lines]), metadata={"source": source})
    areas = Document("The log collectors are looked after by Ulf Tangen.")
    others = [Document(f"House number {number} was built in 19{number}.") for number in range(10, 40)]
    retriever = SireRetriever.from_documents([areas, phones, *others], k=4)
    hits = retriever.invoke("What is the extension of the person who looks after the log collectors?")
    (hit,) = (one for one in hits if one.page_content == phones.page_content)
    assert "names Ulf Tangen" in hit.metadata["sire"]["path"][0]
