"""Reading data sets."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.datasets import DataSet, Question, load_dataset
from sire_core.types import Document, Passage

PASSAGES = [{"id": f"d{i}", "title": f"T{i}", "text": f"Passage {i}."} for i in range(4)]
QUESTION = {"id": "q1", "question": "Who?", "answers": ["Ann"], "supporting": ["d1", "d2"], "type": "bridge", "hops": 2}


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "toy"
    place.mkdir()
    write(place / "corpus.jsonl", PASSAGES)
    write(place / "questions.jsonl", [QUESTION])
    return place


def test_a_folder_pools_its_question_files(folder):
    write(folder / "questions_retrieval_only.jsonl", [{**QUESTION, "id": "q2", "answers": []}, QUESTION])
    dataset = load_dataset(folder)
    assert dataset.name == "toy"
    assert [document.id for document in dataset.documents] == ["d0", "d1", "d2", "d3"]
    assert [(q.id, q.answers, q.supporting) for q in dataset.questions] == [
        ("q1", ("Ann",), ("d1", "d2")),
        ("q2", (), ("d1", "d2")),
    ]
    assert dataset.texts["d3"] == "Passage 3."


def test_an_official_file_pools_its_passages(tmp_path):
    record = {
        "_id": "h1",
        "question": "Who?",
        "answer": "Ann",
        "type": "bridge",
        "context": [["A", ["One.", " Two."]], ["B", ["Three."]], ["C", ["Four."]]],
        "supporting_facts": [["A", 0], ["C", 0]],
    }
    path = tmp_path / "hotpot_dev.json"
    path.write_text(json.dumps([record, {**record, "_id": "h2", "question": "What?"}]), encoding="utf-8")
    dataset = load_dataset(path)
    assert dataset.name == "hotpot_dev"
    assert [document.title for document in dataset.documents] == ["A", "B", "C"]
    titles = {document.id: document.title for document in dataset.documents}
    assert [[titles[d] for d in q.supporting] for q in dataset.questions] == [["A", "C"], ["A", "C"]]


@pytest.mark.parametrize("missing", ["corpus.jsonl", "questions.jsonl"])
def test_a_missing_file_is_named(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(CorpusError, match=missing.split(".")[0]):
        load_dataset(folder)


def test_a_missing_path_says_what_a_data_set_is(tmp_path):
    with pytest.raises(CorpusError, match=r"Not found.*corpus\.jsonl"):
        load_dataset(tmp_path / "nowhere")


def test_a_bad_passage_is_not_skipped(folder):
    write(folder / "corpus.jsonl", [*PASSAGES, {"id": "d9"}])
    with pytest.raises(CorpusError, match=r"1 passage of .*corpus.jsonl:5"):
        load_dataset(folder)


def test_gold_ids_must_be_in_the_corpus(folder):
    write(folder / "questions.jsonl", [QUESTION, {**QUESTION, "id": "q2", "supporting": ["d1", "lost"]}])
    with pytest.raises(CorpusError, match=r"1 of 2 questions.*'lost'"):
        load_dataset(folder)


def test_one_id_for_two_questions_in_two_files_is_refused(folder):
    write(folder / "questions_more.jsonl", [{**QUESTION, "question": "What?"}])
    with pytest.raises(CorpusError, match=r"questions_more\.jsonl.*'q1'"):
        load_dataset(folder)


def questions(count):
    return tuple(Question(f"q{i}", "?", supporting=("d1",)) for i in range(count))


def test_a_sample_is_seeded_ordered_and_leaves_the_corpus_whole():
    dataset = DataSet("x", (Document("d1", "text"),), (*questions(50), Question("nothing known", "?")))
    ids = [question.id for question in dataset.sample(10, 3).questions]
    assert ids == sorted(set(ids), key=lambda name: int(name[1:]))
    assert len(ids) == 10
    assert ids == [question.id for question in dataset.sample(10, 3).questions]
    assert ids != [question.id for question in dataset.sample(10, 4).questions]
    assert dataset.sample(10, 3).documents == dataset.documents
    assert dataset.sample(None) is dataset
    assert dataset.sample(50) is dataset


DATA = Path(os.environ.get("SIRE_DATA", Path(__file__).parents[3].parent / "shared" / "data"))


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no benchmark data in {DATA}")
@pytest.mark.parametrize(
    ("name", "passages", "asked", "answered"),
    [("2wikimultihopqa", 6119, 510, 510), ("hotpotqa", 4937, 500, 326), ("musique", 1890, 100, 100)],
)
def test_real_sets_are_read_whole(name, passages, asked, answered):
    dataset = load_dataset(DATA / name)
    assert (dataset.name, len(dataset.documents), len(dataset.questions)) == (name, passages, asked)
    assert sum(bool(question.answers) for question in dataset.questions) == answered
    assert all(question.supporting for question in dataset.questions)


def test_halves_are_by_position_over_all_question_files(folder):
    write(
        folder / "questions.jsonl", [{**QUESTION, "id": f"a{i}"} for i in range(2)] + [{"id": "x", "question": "Why?"}]
    )
    write(folder / "questions_retrieval_only.jsonl", [{**QUESTION, "id": f"b{i}", "answers": []} for i in range(2)])
    dataset = load_dataset(folder)
    halves = {name: [question.id for question in dataset.half(name).questions] for name in ("even", "odd", "all")}
    assert halves == {"even": ["a0", "x", "b1"], "odd": ["a1", "b0"], "all": ["a0", "a1", "x", "b0", "b1"]}
    assert dataset.half("odd").name == "toy, odd questions"
    assert len(dataset.half("odd").documents) == 4
    with pytest.raises(ConfigurationError, match="even, odd, all"):
        dataset.half("third")


def test_titles_go_away_or_into_the_text(folder):
    cut = Document(
        "d9", title="Nine", metadata={"lang": "en"}, chunks=(Passage("One.", "p1"), Passage("Two.", title="II"))
    )
    dataset = load_dataset(folder)
    dataset = replace(dataset, documents=(*dataset.documents, cut, Document("d10", "Bare.")))
    plain, written = dataset.untitled(), dataset.with_titles_in_text()
    assert (plain.name, written.name) == ("toy, untitled", "toy, titles in text")
    assert not any(document.title for made in (plain, written) for document in made.documents)
    assert plain.documents[0].text == "Passage 0."
    assert written.documents[0].text == "T0\nPassage 0."
    assert [passage.text for passage in plain.documents[4].passages] == ["One.", "Two."]
    assert [passage.text for passage in written.documents[4].passages] == ["Nine\nOne.", "II\nTwo."]
    assert written.documents[4].passages[0].id == "p1"
    assert not any(passage.title for passage in written.documents[4].passages)
    assert written.documents[4].metadata == {"lang": "en"}
    assert written.documents[5].text == "Bare."
