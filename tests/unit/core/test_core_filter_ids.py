"""Filters on ids, titles and metadata, and the values that metadata may have."""

import logging
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from pydantic import BaseModel

from sire_core import Document, Index, Passage
from sire_core.errors import CorpusError
from sire_core.metadata_values import lost_types, plain_value, restored, with_types
from sire_core.testing.doubles import HashEmbedder
from support.indexes import indexed


def corpus():
    texts = ("The Gull was built by Ann Hask.", "Ann Hask was born in Orr.", "Orr is a town with a pier.")
    pieces = (Passage("Ann Hask drew ships.", "p1"), Passage("Ann Hask sold the pier of Orr.", "p2"))
    return [
        *(Document(name, text, metadata={"n": n}) for n, (name, text) in enumerate(zip("abc", texts, strict=True))),
        Document("pieces", "", chunks=pieces),
        Document("own", "The pier of Orr burnt down.", metadata={"id": "x7", "doc_id": 3}),
    ]


@pytest.mark.parametrize("recipe", ["sire", "sirerag"])
def test_only_passages_of_some_documents(recipe):
    index = indexed(corpus(), recipe=recipe, chunker=None)
    question = "Who built the Gull and the pier of Orr?"
    for where, expected in (
        ("doc_id in [a, pieces]", {"a", "pieces"}),
        ("ref_doc_id=b or document_id=c", {"b", "c"}),
        ("not id=a and n<2", {"b"}),
        ({"id": "x7"}, {"own"}),  # metadata of its own keep their meaning
        ({"doc_id": 3}, {"own"}),
        ("ref_doc_id=own", {"own"}),
        ("node_id=p2", {"pieces"}),
    ):
        for returns in ("passages", "units"):
            hits = index.search(question, 20, filter=where, returns=returns)
            assert {name for hit in hits for name in hit.doc_ids} == expected, (where, returns)
    (hit,) = index.search(question, 20, filter="passage_id=p2")
    assert hit.unit.text == "Ann Hask sold the pier of Orr."
    own = index.search("Gull", 1, filter="id=a")[0].unit
    assert [h.unit.id for h in index.search("Gull", filter={"passage_id": own.id})] == [own.id]


def test_ids_bound_what_may_be_seen(tmp_path):
    Index(tmp_path, recipe="sirerag", chunker=None).build(corpus())
    with Index(tmp_path, allow="doc_id in [a, b]") as tenant:
        assert [document.id for document in tenant.documents()] == ["a", "b"]
        assert tenant.stats()["documents"] == 2
        assert {name for hit in tenant.search("Ann Hask", 20) for name in hit.doc_ids} == {"a", "b"}
        assert tenant.search("Ann Hask", filter="doc_id=c") == []


def test_ids_that_nobody_has_are_named(caplog):
    index = indexed([*corpus(), Document("manual.md", "A page.")], recipe="flat", chunker=None)
    caplog.set_level(logging.WARNING)
    assert index.search("page", filter="ref_doc_id=manuel.md") == []
    assert "No document has the id 'manuel.md'. Did you mean 'manual.md'?" in caplog.text
    assert "metadata key" not in caplog.text


@pytest.fixture(scope="module")
def pool():
    index = Index(recipe="flat", chunker=None)
    index.build([Document("a", "A pool.", metadata={"source": "docs/pool.md", "lang": "en", "tags": ["red"], "n": 1})])
    return index


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("source=pool.md", "No passage has 'pool.md' under the metadata key 'source'. Did you mean 'docs/pool.md'?"),
        ("source in [x, y]", "No passage has 'x' under the metadata key 'source'. No passage has 'y' under"),
        ("tags contains read", ""),
        ("source=team/*", "No passage has 'team/*' under the metadata key 'source'. To match a folder or a part of a"),
        ("lang=english", "No passage has 'english' under the metadata key 'lang'. Its values are 'en'."),
        ("lang=en and source=docs/pool.md and n>4", "Values of the metadata key 'n' go from 1 to 1."),
        ("n=4", "Values of the metadata key 'n' go from 1 to 1."),
        ('{"n": "1"}', "Values of the metadata key 'n' are numbers, and the filter compares with texts."),
        (
            "lnag=en and n=1",
            "No passage has the metadata key 'lnag'; did you mean 'lang'? The keys are lang, n, source",
        ),
        ("lang<=de", "Values of the metadata key 'lang' go from 'en' to 'en'."),
        ("n>0 and n!=1", ""),
    ],
)
def test_values_that_no_passage_has_are_named(pool, caplog, where, hint):
    caplog.set_level(logging.WARNING)
    assert pool.search("pool", filter=where) == []
    assert caplog.messages == [] if not hint else caplog.messages[0].startswith(hint)


def test_a_wildcard_is_answered_with_the_operator_for_it(caplog):
    index = indexed([Document("team/a.md", "A pool."), Document("b.md", "A pool, too.")], recipe="flat", chunker=None)
    assert index.search("pool", filter="doc_id=team/*") == []
    assert caplog.messages[0].endswith("To match a folder or a part of a text write: doc_id contains team/")
    assert [hit.doc_ids for hit in index.search("pool", filter="doc_id contains team/")] == [("team/a.md",)]


def titled():
    pieces = (Passage("It has a pier.", title="Orr, the pier"), Passage("It has a mill."))
    return [
        Document("gull", "The Gull was built by Ann Hask.", "The Gull"),
        Document("orr", "", "Orr", chunks=pieces),
        Document("hask", "Ann Hask was born in Orr.", "Ann Hask", metadata={"title": "Shipwright"}),
        Document("bare", "The pier of Orr burnt down."),
        Document("quay", "", chunks=(Passage("It burnt down.", title="The quay"),)),
    ]


@pytest.mark.parametrize("recipe", ["sire", "sirerag"])
def test_titles_can_be_filtered_on(recipe):
    index = indexed(titled(), recipe=recipe, chunker=None)
    for where, expected in (
        ("title=Orr", {"It has a mill.", "It has a pier."}),  # the document's stands for all of it
        ("title='Orr, the pier'", set()),
        ({"title": {"text_match_insensitive": "ORR"}}, {"It has a mill.", "It has a pier."}),
        ("title='The quay'", {"It burnt down."}),  # its own, where the document has none
        ({"title": ["The Gull", "Shipwright"]}, {"The Gull was built by Ann Hask.", "Ann Hask was born in Orr."}),
        ("title='Ann Hask'", set()),  # metadata of its own keep their meaning
        ("not title exists", {"The pier of Orr burnt down."}),
    ):
        hits = index.search("Who built the Gull and the pier of Orr?", 20, filter=where)
        assert {hit.unit.text for hit in hits} == expected, where
        for hit in index.search("Gull and pier", 20, filter=where, returns="units"):
            texts = {passage.unit.text for passage in hits}
            assert hit.unit.text in texts or hit.unit.kind.value != "chunk"


def test_titles_bound_what_may_be_seen_and_are_suggested(tmp_path, caplog):
    Index(tmp_path, recipe="flat", chunker=None).build(titled())
    with Index(tmp_path, allow="title in [Orr, 'The Gull']") as tenant:
        assert [(d.id, len(d.chunks)) for d in tenant.documents()] == [("gull", 1), ("orr", 2)]
        caplog.set_level(logging.WARNING)
        assert tenant.search("pier", filter="title='The Gul'") == []
        assert tenant.search("pier", filter="title='Shipwrigth'") == []
        assert tenant.search("pier", filter="titel=Orr") == []
    assert "No passage has the title 'The Gul'. Did you mean 'The Gull'?" in caplog.text
    assert "Shipwright'" not in caplog.text.replace("Shipwrigth", "")  # what `allow` hides is not told
    assert "No passage has the metadata key 'titel'; did you mean 'title'?" in caplog.text


def test_the_title_of_a_document_keeps_out_the_passages_that_were_cut_at_its_headings(tmp_path):
    text = "# Plan\n\nBoris Veld wrote notes.\n\n## Costs\n\nBoris Veld sold the pier.\n"
    documents = [Document("pub", "Boris Veld wrote books.", "Public"), Document("sec", text, "Secret")]
    Index(tmp_path, recipe="flat").build(documents)
    with Index(tmp_path) as index:
        assert {hit.unit.title for hit in index.search("Boris", 9)} == {"Public", "Secret > Plan"}
        for where, expected in (("title=Secret", {"sec"}), ("title!=Secret", {"pub"}), ("not title=Secret", {"pub"})):
            assert {name for hit in index.search("Boris", 9, filter=where) for name in hit.doc_ids} == expected
            with Index(tmp_path, allow=where) as tenant:
                assert {document.id for document in tenant.documents()} == expected
                assert {name for hit in tenant.search("Boris", 9) for name in hit.doc_ids} == expected
        index.update([Document("sec", text, "Open")])
        assert index.search("Boris", 9, filter="title=Secret") == []
        assert len(index.search("Boris", 9, filter="title in [Open, Public]")) == len(index.search("Boris", 9))


def test_a_hint_names_every_key_once(caplog):
    index = indexed([Document("a", "A pool.", metadata={"title": "Pool"})], recipe="flat")
    caplog.set_level(logging.WARNING)
    assert index.search("pool", filter="tenant=a") == []
    assert "The keys are title; doc_id and passage_id can be filtered on, too." in caplog.text


class Color(Enum):
    RED = "red"


class Model(BaseModel):
    when: date


@dataclass
class Plain:
    path: Path


ID = UUID("12345678123456781234567812345678")
EAST = timezone(timedelta(hours=2))
CASES = [
    (datetime.fromisoformat("2024-05-31T10:00:00"), "2024-05-31T10:00:00", True),
    (datetime(2024, 5, 31, 10, 0, tzinfo=EAST), "2024-05-31T08:00:00+00:00", True),
    (date(2024, 5, 31), "2024-05-31", True),
    (time(10, 30), "10:30:00", True),
    (Path("a/b.md"), "a/b.md", True),
    (ID, str(ID), True),
    (Decimal("1.50"), 1.5, True),
    (Decimal(7), 7, True),
    ({2, 10, 1}, [1, 2, 10], True),
    (frozenset({"b", "a"}), ["a", "b"], True),
    ((1, date(2024, 1, 1)), [1, "2024-01-01"], True),
    ({"deep": [{"at": date(2024, 1, 1)}]}, {"deep": [{"at": "2024-01-01"}]}, True),
    (float("inf"), None, True),
    (Color.RED, "red", False),
    (np.float32(0.5), 0.5, False),
    (np.int64(3), 3, False),
    (np.array([1, 2]), [1, 2], False),
    (Model(when=date(2024, 1, 1)), {"when": "2024-01-01"}, False),
    (Plain(Path("x")), {"path": "x"}, False),
    ([1, "a", None, True, 0.5], [1, "a", None, True, 0.5], True),
]


@pytest.mark.parametrize(("value", "stored", "comes_back"), CASES)
def test_forms(value, stored, comes_back):
    assert plain_value(value) == stored
    kept = {"key": plain_value(value)} | {k: v for k, v in with_types({"key": value}).items() if k != "key"}
    back = restored(kept)
    assert list(back) == ["key"]
    expected = value if comes_back else stored
    assert back["key"] == expected
    assert type(back["key"]) is type(expected) or isinstance(expected, Path)


def test_not_a_number_is_null_and_comes_back():
    assert plain_value(float("nan")) is None
    assert np.isnan(restored({"x": None, "sire_types": with_types({"x": float("nan")})["sire_types"]})["x"])
    assert lost_types({"x": 1, "y": ["a"]}) == {}


@pytest.fixture(scope="module")
def index():
    built = Index(recipe="flat", embedder=HashEmbedder())
    built.build(
        Document(
            str(n), f"Text {n}.", metadata={"at": datetime(2024, n, 1, tzinfo=EAST), "cost": Decimal(n), "id_": ID}
        )
        for n in range(1, 6)
    )
    return built


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"at": {"gte": datetime(2024, 4, 1, tzinfo=EAST)}}, {"4", "5"}),
        ({"at": {"lt": datetime(2024, 2, 1, tzinfo=EAST).astimezone(timezone.utc)}}, {"1"}),
        ({"at": {"gt": date(2024, 4, 30)}}, {"5"}),
        ({"cost": {"lte": Decimal("2.5")}}, {"1", "2"}),
        ({"cost": {"in": [Decimal(3), np.int64(4)]}}, {"3", "4"}),
        ({"id_": ID}, {"1", "2", "3", "4", "5"}),
        ("at>2024-04-30", {"5"}),
    ],
)
def test_filters_compare_what_is_stored(index, where, expected):
    assert {hit.doc_ids[0] for hit in index.search("Text", 10, filter=where)} == expected


def test_what_has_no_form_is_refused_by_name():
    with pytest.raises(CorpusError, match=r"'a'.*'thing'.*object"):
        Index().build([Document("a", "x", metadata={"thing": object()})])


@pytest.mark.parametrize("value", [date(2024, 1, 1), Path("x"), {1}, float("nan"), Color.RED, [Decimal(1)], ID])
def test_an_option_refuses_what_json_does_not_have(value):
    index = Index(recipe="flat", embedder=HashEmbedder(), strict_metadata=True)
    for document in (
        Document("a", "x", metadata={"thing": value}),
        Document("a", chunks=(Passage("x", metadata={"thing": value}),)),
    ):
        with pytest.raises(CorpusError, match=r"'a'.*'thing'.*strict_metadata"):
            index.update([document])
        with pytest.raises(CorpusError, match="'thing'"):
            index.defer([document])
    assert index.update([Document("a", "x", metadata={"thing": [1, None, {"b": "c"}]})]).added == 1
