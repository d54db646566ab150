"""Records of extractions."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import CorpusError, SireError, StorageError
from sire_core.extraction.record import RecordedExtractor, from_json, to_json, validate
from sire_core.extraction.spans import find_spans
from sire_core.protocols import ChunkInContext
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
    with pytest.raises(StorageError, match=r"again|Restore the file from a backup, or correct this line") as caught:
        from_json(text)
    assert isinstance(caught.value, SireError)


def test_unknown_entity_ids_are_dropped():
    made = record(
        entities=(Entity("n1", "Ada"), Entity("n2", "Bob", aliases=("Robert",)), Entity("n3", " ")),
        facts=(Fact("f1", "Ada met Bob.", ("n1", "n7", "Robert", "n1", "n3"), triples=(Triple("n1", "met", "n8"),)),),
    )
    cleaned = validate(made, chunk())
    assert cleaned.facts[0].entities == ("n1", "n2")
    assert cleaned.facts[0].triples == ()
    assert [entity.id for entity in cleaned.entities] == ["n1", "n2"]


def test_triples_keep_literals_and_resolve_names():
    triples = (Triple("ada", "met", "an old friend"), Triple("n1", " ", "x"), Triple("n1", "met", "", 2.0))
    cleaned = validate(record(entities=(Entity("n1", "Ada"),), facts=(Fact("f1", "x y", triples=triples),)), chunk())
    assert cleaned.facts[0].triples == (Triple("n1", "met", "an old friend"),)


def test_keywords_are_verbatim_few_and_never_the_title():
    asked = ("OLD  London", "old london", "Ada", "Ada (poet)", "ain", "snow", "rain", "Bob", "fell", "met", "in")
    cleaned = validate(record(keywords=asked), chunk())
    assert cleaned.keywords == ("OLD London", "rain", "Bob", "fell", "met")


def test_keywords_of_scripts_without_spaces():
    cleaned = validate(record(keywords=("東京", "京都")), chunk(text="私は東京に住んでいる。", title=""))
    assert cleaned.keywords == ("東京",)


DATA = Path(os.environ.get("SIRE_DATA", Path(__file__).parents[3].parent / "shared" / "data"))
ROW = {
    "id": "d1",
    "entities": ["Ada", "London", "Bob", "ada", "Unused", 7, ""],
    "triples": [
        ["Ada", "met", "Bob"],
        ["Bob", "lived in", "LONDON"],
        ["Ada", "liked", "strong tea"],
        ["Ada", "met", "Bob", "twice"],
        ["Ada", "", "Bob"],
    ],
    "model": "gpt-x",
}
TEXT = "Ada met Bob in London. It rained on London for days. She liked her tea."


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "extractions.jsonl"
    path.write_text(json.dumps(ROW) + "\n\n" + json.dumps({"id": 2}) + "\n", encoding="utf-8")
    return path


def chunk_of(doc_id="d1", text=TEXT, position=0):
    return Chunk(f"c-{doc_id}-{position}", doc_id, position, "Ada (poet)", text)


def test_triples_share_the_sentence_that_names_both_ends(recording):
    (record,) = RecordedExtractor(recording).records([chunk_of()])
    names = {entity.id: entity.name for entity in record.entities}
    assert list(names.values()) == ["Ada", "London", "Bob"]
    by_name = {name: key for key, name in names.items()}
    ada, bob, london = by_name["Ada"], by_name["Bob"], by_name["London"]
    assert [(fact.text, [names[entity] for entity in fact.entities]) for fact in record.facts] == [
        ("Ada met Bob in London.", ["Ada", "Bob", "London"]),
        ("It rained on London for days.", ["London"]),
        ("She liked her tea.", []),
        ("Ada liked strong tea.", ["Ada"]),
    ]
    assert record.facts[0].triples == (Triple(ada, "met", bob), Triple(bob, "lived in", london))
    assert record.facts[3].triples == (Triple(ada, "liked", "strong tea"),)
    assert (record.model, record.status, record.topic) == ("gpt-x", "ok", "Ada (poet)")
    assert set(record.keywords) >= {"London", "Bob"}
    assert validate(record, chunk_of()) == record


def test_a_line_ends_where_json_lines_end(tmp_path):
    path = tmp_path / "extractions.jsonl"
    rows = [{**ROW, "entities": ["Ada\u2028", "Bob\x85", "London"]}, {"id": 2}]
    path.write_text("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8", newline="")
    assert RecordedExtractor(path).fingerprint


def test_later_chunks_get_only_what_they_say(recording):
    first, second = RecordedExtractor(recording).records(
        [chunk_of(text="It rained on London."), chunk_of(text="Ada met Bob there. The end came soon.", position=1)]
    )
    assert first.facts[0].text == "It rained on London."
    assert "Ada liked strong tea." in [fact.text for fact in first.facts]
    assert [fact.text for fact in second.facts] == ["Ada met Bob there.", "The end came soon."]


async def test_missing_documents_fail_and_others_go_on(recording):
    items = [ChunkInContext(chunk_of(doc_id)) for doc_id in ("d1", "d9", "2")]
    batches = [batch async for batch in RecordedExtractor(recording).extract(items)]
    (records,) = batches
    assert [record.status for record in records] == ["ok", "failed", "ok"]
    assert "'d9'" in records[1].reason
    assert records[1].hash == items[1].chunk.hash
    assert all(not fact.triples for fact in records[2].facts)


def test_fingerprint_names_model_and_content(recording):
    before = RecordedExtractor(recording).fingerprint
    assert "gpt-x" in before
    assert RecordedExtractor(str(recording)).fingerprint == before
    recording.write_text(json.dumps({**ROW, "entities": []}), encoding="utf-8")
    assert RecordedExtractor(recording).fingerprint != before


@pytest.mark.parametrize("line", ["{", '{"entities": []}', "[1]", '{"id": "a", "triples": 3}'])
def test_bad_lines_are_named(tmp_path, line):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": "ok"}\n' + line, encoding="utf-8")
    with pytest.raises(CorpusError, match="line 2"):
        RecordedExtractor(path)


@pytest.mark.data
def test_musique_recording_covers_its_corpus():
    if not DATA.is_dir():
        pytest.skip(f"no benchmark data at {DATA}; set SIRE_DATA")
    with (DATA / "musique" / "corpus.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    chunks = [Chunk(row["id"], row["id"], 0, row["title"], row["text"]) for row in rows]
    records = RecordedExtractor(DATA / "musique" / "extractions.jsonl").records(chunks)
    assert {record.status for record in records} == {"ok"}
    triples = sum(len(fact.triples) for record in records for fact in record.facts)
    assert triples >= 17000  # of 17,419; the rest are not three texts or repeated
    for place, record in zip(chunks[:200], records, strict=False):
        assert validate(record, place) == record


def names(sentence):
    return [span.name for span in find_spans(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("He knew Ludwig van Beethoven and Osama bin Laden.", ["Ludwig van Beethoven", "Osama bin Laden"]),
        ("She met Charles of the Valois, J. R. R. Tolkien and A.C. Clarke.",
         ["Charles of the Valois", "J. R. R. Tolkien", "A.C. Clarke"]),
        ("It left Lothair II, Boso the Elder and Sammy Davis, Jr. alone.",
         ["Lothair II", "Boso the Elder", "Sammy Davis, Jr."]),
        ("The BBC and Track & Field News visited St. John's College.",
         ["BBC", "Track & Field News", "St. John's College"]),
        ("He saw Kwan's film \"Rouge\" in Hong Kong.", ["Kwan", "Rouge", "Hong Kong"]),
        ("A drink at the 2013 Cannes Film Festival.", ["2013 Cannes Film Festival"]),
        ("Born on 24 May 1953, on May 5, 1905, in June 1999 and in the 1960s.",
         ["24 May 1953", "May 5, 1905", "June 1999", "1960s"]),
        ("It has 8,211 inhabitants, 42.5 km2 and cost $3 million.", ["8,211 inhabitants", "42.5 km2", "$3 million"]),
        ("On August 19, 600,000 people came.", ["August 19", "600,000 people"]),
        ("He was President of the United States.", ["United States"]),
        ("In French, I like Mondays and the Trinidadian-American singers.", ["Mondays"]),
        ("the Oscar-winning Academy Award-winning actor", ["Oscar", "Academy Award"]),
        ('He said "we will never go there again" to Bob.', ["Bob"]),
        ('William "Bucky" Moore slept.', ['William "Bucky" Moore']),
        ("Über Ångström and Ольга spoke.", ["Über Ångström", "Ольга"]),
        ("", []),
    ],
)  # fmt: skip
def test_spans(sentence, expected):
    assert names(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("then Apple Records won", "Organization"),
        ("then the Potomac River won", "Location"),
        ("then the Battle of Cassel", "Event"),
        ("then the Korean War ended", "Event"),
        ("then in Paris it rained", "Location"),
        ("then Sir John won", "Person"),
        ("then directed by Ann Low", "Person"),
        ('the film "Rope"', "Work"),
        ('nicknamed "Shura"', "Name"),
        ("since 1999", "Date"),
        ("over 30 km", "Quantity"),
    ],
)  # fmt: skip
def test_coarse_types(sentence, kind):
    assert find_spans(sentence)[0].type == kind
