"""Documents from and to LangChain's."""

import json

import numpy as np
import pytest
from langchain_core.documents import Document as LangChainDocument

from langchain_sire.documents import document_id, from_langchain, from_texts, hit_to_langchain
from sire_core.errors import CorpusError
from sire_core.index import Index
from sire_core.types import Document, Hit, Passage, PathStep, Unit, UnitKind, digest


def test_id_title_text_and_metadata_are_taken_over():
    given = LangChainDocument(id="a", page_content="Text.", metadata={"title": "T", "year": 1990, "tags": ["x"]})
    assert from_langchain([given]) == [
        Document("a", "", "T", {"title": "T", "year": 1990, "tags": ["x"]}, (Passage("Text.", id="a"),))
    ]
    (uncut,) = from_langchain([given], "year", whole=False)
    assert (uncut.text, uncut.title, uncut.chunks) == ("Text.", "", ())
    assert from_langchain([LangChainDocument(page_content="x", metadata={"name": "N"})], "name")[0].title == "N"


def test_a_title_that_is_no_string_stays_metadata():
    (document,) = from_langchain([LangChainDocument(id="a", page_content="x", metadata={"title": 7})])
    assert (document.title, document.metadata) == ("", {"title": 7})


def test_content_ids_are_the_same_in_every_run_and_depend_on_content_and_metadata():
    def made(text, **metadata):
        return document_id(LangChainDocument(page_content=text, metadata=metadata))

    assert made("a", x=1, y=2) == made("a", y=2, x=1) == "6226e44961ecc59a54aec88d"
    assert len({made("a"), made("b"), made("a", x=1), made("a", x=2)}) == 4


def test_identical_documents_without_ids_are_one():
    index = Index(recipe="flat")
    index.build(from_langchain([LangChainDocument(page_content="Same."), LangChainDocument(page_content="Same.")]))
    assert index.stats()["documents"] == 1


def test_trap_metadata_without_a_form_in_json_is_refused():
    bad = LangChainDocument(id="a", page_content="x", metadata={"price": object()})
    with pytest.raises(CorpusError, match=r"'a'.*price.*JSON"):
        Index(recipe="flat").build(from_langchain([bad]))
    with pytest.raises(CorpusError, match="JSON"):
        Index(recipe="flat").build(
            from_langchain([LangChainDocument(page_content="x", metadata={"price": [object()]})])
        )


def test_an_id_made_from_content_does_not_depend_on_the_order_of_a_set():
    names = [document_id(LangChainDocument(page_content="x", metadata={"t": set(order)})) for order in ("abc", "cba")]
    assert names[0] == names[1]
    plain = LangChainDocument(page_content="x", metadata={"t": 1})
    assert document_id(plain) == digest("langchain", "x", '{"t": 1}')


@pytest.mark.parametrize("given", ["text", LangChainDocument(page_content="x")])
def test_a_single_thing_is_no_list(given):
    with pytest.raises(CorpusError, match="list"):
        from_langchain(given)


def test_other_objects_are_named():
    with pytest.raises(CorpusError, match=r"number 1 is a str; pass langchain_core"):
        from_langchain([LangChainDocument(page_content="x"), "x"])


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
        from_texts(**arguments)


def _hit(kind=UnitKind.CHUNK, **metadata):
    unit = Unit("u1", kind, "The text.", ("c1", "c2"), level=0, title="Title", metadata={"ours": 1})
    return Hit(unit, np.float32(0.5), ("d1", "d2"), (PathStep("vector", (), "why"),), metadata)


def test_trap_score_is_a_python_float_and_everything_is_json():
    document = hit_to_langchain(_hit(year=1990))
    assert document.id == "u1"
    about = document.metadata["sire"]
    assert [type(about[key]) for key in ("score", "level", "kind")] == [float, int, str]
    assert json.loads(json.dumps(document.metadata)) == {
        "year": 1990,
        "title": "Title",
        "sire": {
            "score": 0.5,
            "kind": "chunk",
            "level": 0,
            "doc_ids": ["d1", "d2"],
            "chunk_ids": ["c1", "c2"],
            "path": ["why"],
        },
    }
    assert hit_to_langchain(_hit(year=1990), plain=True).metadata == {"year": 1990}


def test_a_users_value_under_our_key_is_moved_not_lost():
    unit = Unit("u", UnitKind.CHUNK, "t", ("c",))
    mine = {"sire": "mine", "kind": "ship", "score": 9, "title": "Mine"}
    metadata = hit_to_langchain(Hit(unit, 0.1, ("d",), metadata=mine)).metadata
    assert (metadata["kind"], metadata["score"], metadata["title"]) == ("ship", 9, "Mine")
    assert metadata["user_sire"] == "mine"
    assert metadata["sire"]["kind"] == "chunk"
