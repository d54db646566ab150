"""Official HotpotQA, 2WikiMultiHopQA and MuSiQue files, and our own question files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sire_core.errors import CorpusError
from sire_core.evaluate.question_files import read_questions
from sire_core.extend import Question
from sire_core.files.readers import read_documents

KILN = ["Kiln Lane", ["Kiln Lane is a street.", " It was named after Ada Moss."]]
ADA = ["Ada Moss", ["Ada Moss was a potter.", "She lived in Pell."]]
PELL = ["Pell", ["Pell is a town."]]
OTHER_PELL = ["Pell", ["Pell is also a breed of goat."]]

HOTPOT = [
    {
        "_id": "h1",
        "question": "Where did the potter after whom Kiln Lane is named live?",
        "answer": "Pell",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Kiln Lane", 1], ["Ada Moss", 1], ["Ada Moss", 0]],
        "context": [PELL, KILN, ADA, ["Empty", []]],
    },
    {
        "_id": "h2",
        "question": "Is Pell a town or a goat?",
        "answer": "both",
        "type": "comparison",
        "supporting_facts": [["Pell", 0]],
        "context": [OTHER_PELL, PELL, KILN],
    },
]
MUSIQUE = [
    {
        "id": "2hop__1_2",
        "question": "Where did the namesake of Kiln Lane live?",
        "answer": "Pell",
        "answer_aliases": ["Pell town", "Pell"],
        "answerable": True,
        "question_decomposition": [{"id": 1, "question": "q", "answer": "a", "paragraph_support_idx": 0}],
        "paragraphs": [
            {"idx": 0, "title": "Kiln Lane", "paragraph_text": "Named after Ada Moss.", "is_supporting": True},
            {"idx": 1, "title": "Ada Moss", "paragraph_text": "She lived in Pell.", "is_supporting": True},
            {"idx": 2, "title": "Pell", "paragraph_text": "Pell is a town.", "is_supporting": False},
        ],
    },
    {
        "id": "2hop__1_2",
        "question": "Where did the namesake of Kiln Lane live?",
        "answer": "Pell",
        "answer_aliases": [],
        "answerable": False,
        "paragraphs": [{"idx": 0, "title": "Goat", "paragraph_text": "A goat eats.", "is_supporting": False}],
    },
]


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_lines(path: Path, records: list) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_hotpot_passages_are_pooled_and_questions_point_at_them(tmp_path):
    path = write_json(tmp_path / "hotpot.json", HOTPOT)
    corpus = read_documents([path])
    by_id = {document.id: document for document in corpus.documents}
    assert [document.title for document in corpus.documents] == ["Pell", "Kiln Lane", "Ada Moss", "Pell"]
    assert not corpus.failures
    assert len(corpus.duplicates) == 2
    first, second = read_questions(path)
    assert [by_id[i].title for i in first.supporting] == ["Kiln Lane", "Ada Moss"]
    assert (first.id, first.answers, first.type, first.hops) == ("h1", ("Pell",), "bridge", 2)
    # Both passages under the title that the supporting facts name.
    assert [by_id[i].text for i in second.supporting] == ["Pell is also a breed of goat.", "Pell is a town."]
    texts = {document.title: document.text for document in corpus.documents}
    assert texts["Kiln Lane"] == "Kiln Lane is a street. It was named after Ada Moss."
    assert texts["Ada Moss"] == "Ada Moss was a potter. She lived in Pell."


def test_passage_ids_do_not_depend_on_order_or_file(tmp_path):
    one = read_documents([write_json(tmp_path / "a.json", HOTPOT)])
    two = read_documents([write_json(tmp_path / "b.json", HOTPOT[::-1])])
    assert {d.id: d for d in one.documents} == {d.id: d for d in two.documents}
    assert [d.id for d in one.documents] != [d.id for d in two.documents]
    both = read_documents([tmp_path / "a.json", tmp_path / "b.json"])
    assert both.documents == one.documents


def test_musique_passages_and_questions(tmp_path):
    path = write_lines(tmp_path / "musique.jsonl", MUSIQUE)
    corpus = read_documents([path])
    assert [document.title for document in corpus.documents] == ["Kiln Lane", "Ada Moss", "Pell", "Goat"]
    (question,) = read_questions(path)
    assert question == Question(
        id="2hop__1_2",
        question="Where did the namesake of Kiln Lane live?",
        answers=("Pell", "Pell town"),
        supporting=tuple(document.id for document in corpus.documents[:2]),
        type="2hop",
        hops=2,
    )


def test_test_split_without_answers(tmp_path):
    record = {"_id": "t", "question": "Where?", "context": [PELL]}
    path = write_json(tmp_path / "test.json", [record])
    assert read_questions(path) == (Question("t", "Where?", closed=True),)
    assert len(read_documents([path]).documents) == 1


def test_our_own_format(tmp_path):
    path = write_lines(
        tmp_path / "questions.jsonl",
        [
            {
                "id": 3,
                "question": "Why?",
                "answers": ["a", "a", " ", 5],
                "supporting": [1, "d"],
                "type": "t",
                "hops": 2,
            },
            {"question": "How?", "answer": "so", "demo": True},
            {"question": "How?", "answer": "so", "demo": True, "id": "questions.jsonl:2"},
        ],
    )
    assert read_questions(path) == (
        Question("3", "Why?", ("a", "5"), ("1", "d"), "t", 2),
        Question("questions.jsonl:2", "How?", ("so",), metadata={"demo": True}),
    )


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([], "JSON object"),
        ({"id": "a"}, "missing or blank"),
        ({"id": "", "question": "Why?"}, "missing or blank"),
        ({"id": "a", "question": "Why?", "answers": "x"}, "'answers' must be a list"),
        ({"id": "a", "question": "Why?", "supporting": [None, []]}, "'supporting' must be a string"),
        ({"id": "a", "question": "Why?", "hops": "two"}, "'hops' must be"),
        ({"id": "a", "question": "Why?", "context": [PELL], "supporting_facts": ["Pell"]}, "supporting_facts"),
        ({"id": "a", "question": "Why?", "need": [[]]}, "there is no key 'need'; do you mean 'needs'?"),
        ({"id": "ok", "question": "Another?"}, "belongs to another question"),
    ],
)
def test_bad_questions_are_named_with_their_line(tmp_path, record, reason):
    path = write_lines(tmp_path / "q.jsonl", [{"id": "ok", "question": "Why?"}, record])
    with pytest.raises(CorpusError, match=reason) as caught:
        read_questions(path)
    assert f"{path}:2: " in str(caught.value)


def test_bad_question_files(tmp_path):
    with pytest.raises(CorpusError, match="No such file"):
        read_questions(tmp_path / "none.jsonl")
    (tmp_path / "q.jsonl").write_text("oops\n" * 12)
    with pytest.raises(CorpusError, match=r"12 questions.*q\.jsonl:1: not valid JSON.*and 2 more"):
        read_questions(tmp_path / "q.jsonl")
    with pytest.raises(CorpusError, match="a list of questions"):
        read_questions(write_json(tmp_path / "q.json", {}))
    with pytest.raises(CorpusError, match="holds no questions"):
        read_questions(write_json(tmp_path / "q.json", []))
    with pytest.raises(CorpusError, match="max_bytes"):
        read_questions(write_json(tmp_path / "q.json", HOTPOT), max_bytes=10)
