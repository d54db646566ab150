"""Recorded extractions replayed."""

import json
import os
from pathlib import Path

import pytest

from sire_core.errors import CorpusError
from sire_core.extraction.record import RecordedExtractor, validate
from sire_core.protocols import ChunkInContext
from sire_core.types import Chunk, Triple

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


def chunk(doc_id="d1", text=TEXT, position=0):
    return Chunk(f"c-{doc_id}-{position}", doc_id, position, "Ada (poet)", text)


def test_triples_share_the_sentence_that_names_both_ends(recording):
    (record,) = RecordedExtractor(recording).records([chunk()])
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
    assert validate(record, chunk()) == (record, 0)


def test_a_line_ends_where_json_lines_end(tmp_path):
    path = tmp_path / "extractions.jsonl"
    rows = [{**ROW, "entities": ["Ada\u2028", "Bob\x85", "London"]}, {"id": 2}]
    path.write_text("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8", newline="")
    assert RecordedExtractor(path).fingerprint


def test_later_chunks_get_only_what_they_say(recording):
    first, second = RecordedExtractor(recording).records(
        [chunk(text="It rained on London."), chunk(text="Ada met Bob there. The end came soon.", position=1)]
    )
    assert first.facts[0].text == "It rained on London."
    assert "Ada liked strong tea." in [fact.text for fact in first.facts]
    assert [fact.text for fact in second.facts] == ["Ada met Bob there.", "The end came soon."]


async def test_missing_documents_fail_and_others_go_on(recording):
    items = [ChunkInContext(chunk(doc_id)) for doc_id in ("d1", "d9", "2")]
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
        assert validate(record, place) == (record, 0)
