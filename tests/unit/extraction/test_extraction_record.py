"""The record's JSON form and its cleaning."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import SireError, StorageError
from sire_core.extraction.record import from_json, to_json, validate
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple

TEXTS = st.text(max_size=20)
IDS = st.sampled_from(["n1", "n2", "n3", "n9", "", "Ada"])
TRIPLES = st.builds(Triple, IDS, TEXTS, IDS, st.floats(allow_nan=False))
FACTS = st.builds(
    Fact, st.sampled_from(["f1", "f2", ""]), TEXTS, st.lists(IDS, max_size=3).map(tuple), TEXTS, TEXTS,
    st.lists(TRIPLES, max_size=3).map(tuple),
)  # fmt: skip
ENTITIES = st.builds(Entity, IDS, TEXTS, TEXTS, st.lists(TEXTS, max_size=2).map(tuple), TEXTS)
RECORDS = st.builds(
    ExtractionRecord, st.just("hash"), TEXTS, TEXTS, st.sampled_from(["ok", "empty", "failed"]),
    st.lists(ENTITIES, max_size=4).map(tuple), st.lists(FACTS, max_size=4).map(tuple),
    st.lists(TEXTS, max_size=7).map(tuple), TEXTS, st.sampled_from(["low", "high"]), TEXTS,
)  # fmt: skip


def chunk(text="Ada met Bob in old London. Rain fell.", title="Ada (poet)"):
    return Chunk("c1", "d1", 0, title, text)


def record(**fields):
    return ExtractionRecord(hash="", model="m", prompt="p", **fields)


@given(RECORDS)
def test_json_round_trip_is_exact(made):
    assert from_json(to_json(made)) == made


def test_json_keeps_letters_and_survives_lone_surrogates():
    assert "Zoë" in to_json(record(topic="Zoë"))
    broken = record(topic="a\ud800b")
    to_json(broken).encode("utf-8")
    assert from_json(to_json(broken)) == broken


def test_missing_optional_keys_get_defaults():
    read = from_json('{"schema":"extract/1","hash":"h","facts":[{"text":"A b."}]}')
    assert read.facts == (Fact("f1", "A b.", answer="A b."),)
    assert (read.status, read.abstractiveness, read.entities) == ("ok", "low", ())


@pytest.mark.parametrize(
    "text",
    [
        '{"schema":"extract/2","hash":"h"}',
        '{"hash":"h"}',
        "[]",
        "{",
        '{"schema":"extract/1"}',
        '{"schema":"extract/1","hash":"h","facts":[{"id":"f1"}]}',
        '{"schema":"extract/1","hash":"h","entities":["Ada"]}',
    ],
)
def test_what_is_no_record_is_refused(text):
    with pytest.raises(StorageError, match="again") as caught:
        from_json(text)
    assert isinstance(caught.value, SireError)


def test_unknown_entity_ids_are_dropped_and_counted():
    made = record(
        entities=(Entity("n1", "Ada"), Entity("n2", "Bob", aliases=("Robert",)), Entity("n3", " ")),
        facts=(Fact("f1", "Ada met Bob.", ("n1", "n7", "Robert", "n1", "n3"), triples=(Triple("n1", "met", "n8"),)),),
    )
    cleaned, dropped = validate(made, chunk())
    assert cleaned.facts[0].entities == ("n1", "n2")
    assert cleaned.facts[0].triples == ()
    assert [entity.id for entity in cleaned.entities] == ["n1", "n2"]
    assert dropped == 3  # n7, n3 (it has no name) and the triple's n8


def test_triples_keep_literals_and_resolve_names():
    triples = (Triple("ada", "met", "an old friend"), Triple("n1", " ", "x"), Triple("n1", "met", "", 2.0))
    cleaned, dropped = validate(
        record(entities=(Entity("n1", "Ada"),), facts=(Fact("f1", "x y", triples=triples),)), chunk()
    )
    assert cleaned.facts[0].triples == (Triple("n1", "met", "an old friend"),)
    assert dropped == 0


def test_keywords_are_verbatim_few_and_never_the_title():
    asked = ("OLD  London", "old london", "Ada", "Ada (poet)", "ain", "snow", "rain", "Bob", "fell", "met", "in")
    cleaned, _ = validate(record(keywords=asked), chunk())
    assert cleaned.keywords == ("OLD London", "rain", "Bob", "fell", "met")


def test_keywords_of_scripts_without_spaces():
    cleaned, _ = validate(record(keywords=("東京", "京都")), chunk(text="私は東京に住んでいる。", title=""))
    assert cleaned.keywords == ("東京",)


@given(RECORDS, st.text(max_size=40), TEXTS)
def test_cleaning_twice_changes_nothing(made, text, title):
    place = chunk(text, title)
    once, _ = validate(made, place)
    twice, dropped = validate(once, place)
    assert (twice, dropped) == (once, 0)
    if once.status != "failed":
        ids = {entity.id for entity in once.entities}
        assert all(set(fact.entities) <= ids and fact.text and fact.answer for fact in once.facts)
        assert len(once.keywords) <= 5
    json.loads(to_json(once))
