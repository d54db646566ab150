"""Data sets and their gold passages."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sire_core import Document, Index, Passage
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate import DataSet, EvalConfig, load_dataset
from sire_core.evaluate.datasets import PARTS
from sire_core.evaluate.question_files import question_from_record
from sire_core.evaluate.report import format_table
from sire_core.evaluate.retrieval import all_at_k, evidence_match, ndcg_at_k, recall_at_k, reciprocal_rank
from sire_core.evaluate.runner import evaluate
from sire_core.extend import Question
from sire_core.papers.iier.training import known_questions
from sire_core.recipes import iier
from sire_core.testing.doubles import HashEmbedder

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
    parts = {name: [question.id for question in dataset.part(name).questions] for name in PARTS}
    assert parts == {
        "even": ["a0", "x"],
        "odd": ["a1", "b0"],
        "test": ["b1"],
        "develop": ["a0", "a1", "x", "b0"],
        "all": ["a0", "a1", "x", "b0", "b1"],
    }
    assert dataset.part("odd").name == "toy, odd questions"
    assert len(dataset.part("odd").documents) == 4
    with pytest.raises(ConfigurationError, match="even, odd, test"):
        dataset.part("third")


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


HARBOR = "# Harbor\n\nThe **harbor** opens at `six`, see [the list](http://x.example/list).\n"
LIGHT = (
    "# Lighthouse\n\nThe lighthouse keeper\nlives in the tower.\n\n## Lamp\n\n"
    + "Its lamp needs oil every evening. " * 120
)
QUESTIONS = [
    {
        "id": "both",
        "question": "When does the harbor open, and where does the lighthouse keeper live?",
        "needs": [
            [
                {"doc": "nowhere.md", "quote": "six o'clock"},
                {"doc": "port/harbor.md", "quote": "harbor opens at six, see the list."},
            ],
            [{"doc": "light.md", "quote": "keeper lives in"}],
        ],
    },
    {"id": "lost", "question": "What color is the tower?", "needs": [[{"doc": "light.md", "quote": "a white tower"}]]},
]


def question(**record):
    return question_from_record({"id": "q", "question": "?", **record})


@pytest.fixture
def coast(tmp_path):
    place = tmp_path / "coast"
    (place / "docs" / "port").mkdir(parents=True)
    (place / "docs" / "port" / "harbor.md").write_text(HARBOR, encoding="utf-8")
    (place / "docs" / "light.md").write_text(LIGHT, encoding="utf-8")
    (place / "docs" / "settings.xyz").write_text("a: 1\n", encoding="utf-8")
    (place / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)), encoding="utf-8")
    return place


async def measured(dataset, **settings):
    with Index(recipe="flat", chunker="sentences" if dataset.whole else None) as index:
        await index.abuild(dataset.documents)
        return await evaluate(index, dataset, EvalConfig(**settings))


def test_metrics_count_needs_and_any_passage_meets_one():
    gold = (frozenset({"p1", "p2"}), frozenset({"p3"}), frozenset())
    ranking = ["x", "p2", "p1", "p3"]
    assert [recall_at_k(ranking, gold, k) for k in (1, 2, 3, 4)] == [0, 1 / 3, 1 / 3, 2 / 3]
    assert all_at_k(ranking, gold, 4) == 0
    assert all_at_k(ranking, gold[:2], 4) == 1
    assert reciprocal_rank(ranking, gold) == 1 / 2
    both = (frozenset({"p1"}), frozenset({"p1"}))
    assert recall_at_k(["p1"], both, 1) == ndcg_at_k(["p1"], both, 1) == 1


async def test_quotes_are_found_in_files_read_as_an_index_reads_them(coast):
    dataset = load_dataset(coast)
    assert dataset.whole
    assert [failure.where.rpartition("/")[2] for failure in dataset.unread] == ["settings.xyz"]
    row = await measured(dataset)
    assert row.unmet == 1
    assert row.by_documents() == {"one": 0, "several": 100}
    assert row.results[0].recall_at_budget == 1
    found = row.as_json()
    assert found["by_documents"] == {"one": 0.0, "several": 100.0}
    assert found["unmet"] == 1
    assert (
        "1 of 3 needs are met by no passage of the index and count as missed: lost (need 1, light.md)."
        in format_table([row])
    )
    tiny = await measured(dataset, budget=12)
    assert tiny.results[0].recall_at_budget < 1


@pytest.mark.parametrize("chunks", ["langchain", "llama-index"])
async def test_passages_of_a_frameworks_splitters_hold_the_quotes_too(coast, chunks):
    pytest.importorskip("langchain_text_splitters" if chunks == "langchain" else "llama_index.core")
    dataset = load_dataset(coast, chunks)
    assert not dataset.whole
    assert dataset.passages >= 4
    assert all(passage.id for document in dataset.documents for passage in document.passages)
    row = await measured(dataset)
    assert row.by_documents()["several"] == 100


async def test_gold_may_be_ids_of_passages():
    passages = (Passage("Bees make honey.", id="p1"), Passage("Bees sting.", id="p2"))
    documents = (Document("bees", chunks=passages), Document("cats", "Cats purr."))
    dataset = DataSet("d", documents, (question(question="Who makes honey?", supporting=["p1"]),))
    row = await measured(dataset, ks=(1, 2))
    assert row.recall_passages(1) == 100
    wrong = DataSet("d", documents, (question(question="Who makes honey?", supporting=["p2"]),))
    assert (await measured(wrong, ks=(1, 2))).recall_passages(1) == 0


async def test_questions_on_several_documents_are_those_that_no_document_answers_alone():
    texts = {"bees": "Bees make honey. Bees sting.", "cats": "Cats purr. Bees sting.", "copy": "Cats purr. Bees sting."}
    honey, sting, purr = ("bees", "make honey"), ("bees", "sting"), ("cats", "purr")

    def asked(name, *needs):
        return question(id=name, needs=[[{"doc": doc, "quote": quote} for doc, quote in need] for need in needs])

    questions = (
        asked("two quotes", [honey], [sting]),
        asked("two documents", [honey], [purr]),
        asked("alternatives", [purr], [sting, ("cats", "sting")]),
        question(id="copies", supporting=["cats", "copy"]),
        question(id="ids", supporting=["cats", "bees"]),
    )
    row = await measured(DataSet("d", tuple(Document(*pair) for pair in texts.items()), questions))
    assert [found.id for found in row.results if found.several] == ["two documents", "ids"]
    passages = (Passage("Bees make honey.", id="p1"), Passage("Bees sting.", id="p2"))
    dataset = DataSet("d", (Document("bees", chunks=passages),), (question(supporting=["p1", "p2"]),))
    assert list((await measured(dataset)).by_documents()) == ["one"]


async def test_every_passage_takes_a_place_and_one_whole_passage_of_a_document_is_enough_for_a_budget():
    bees = tuple(f"Bees make honey in hive number {n}." for n in range(6))
    documents = (Document("bees", chunks=bees), Document("cats", "Cats purr."))
    dataset = DataSet("d", documents, (question(question="Bees honey hive?", supporting=["bees", "cats"]),))
    row = await measured(dataset, ks=(5, 10), budget=30)
    assert row.recall_passages(5) == 50
    assert row.mean("R@5 prov") == 100
    assert row.mean("R@budget") == 50


async def test_questions_to_another_index_are_refused(coast):
    dataset = load_dataset(coast)
    with Index(recipe="flat") as index:
        await index.abuild([Document("other", "Something else.")])
        with pytest.raises(ConfigurationError, match="No passage of the index meets a need"):
            await evaluate(index, dataset)


async def test_a_need_in_the_name_of_a_file_is_refused_with_its_id():
    need = [[{"doc": "bees.html", "quote": "Bees make *Honey* and then they sleep. " * 3}]]
    dataset = DataSet("d", (Document("farm/bees.html", "Bees fly."),), (question(question="Bees?", needs=need),))
    with pytest.raises(ConfigurationError) as refused:
        await measured(dataset)
    assert "such as 'Bees make *Honey* and then they sleep. Bees make *Honey* ...' in 'bees.html'." in str(
        refused.value
    )
    assert str(refused.value).endswith("must be ids of documents or passages, such as 'farm/bees.html'.")


def test_whole_documents_in_a_corpus_file_are_cut(tmp_path):
    lines = [{"id": name, "text": f"# {name}\n\n" + "Water flows down. " * 400} for name in ("a", "b")]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text(
        json.dumps({"id": "q", "question": "Where?", "supporting": ["a"]}), encoding="utf-8"
    )
    assert load_dataset(tmp_path).whole
    assert not load_dataset(tmp_path, "none").whole
    with pytest.raises(ConfigurationError, match="--chunks is one of files, langchain"):
        load_dataset(tmp_path, "words")


@pytest.mark.parametrize(
    "needs", [{}, [[]], ["x"], [["x"]], [[{"doc": "a"}]], [[{"doc": "a", "quote": "  "}]], [[{"quote": "x"}]]]
)
def test_needs_of_another_shape_are_refused(needs):
    with pytest.raises(CorpusError, match="'needs' must be"):
        question(needs=needs)


async def test_a_copy_of_a_gold_document_counts_as_it():
    texts = {"a": "The tide is high.", "b": "The tide is  high.", "c": "Ebb."}
    documents = tuple(Document(name, text) for name, text in texts.items())
    question = question_from_record({"id": "q", "question": "How is the tide?", "supporting": ["b"]}, "here")
    [result] = (await measured(DataSet("copies", documents, (question,)), ks=(1,), budget=None)).results
    assert result.wanted == (frozenset({"a", "b"}),)
    assert result.recall_passages(1) == 1.0
    assert result.sources[0] in {"a", "b"}


DOCUMENTS = (
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide"),
    Document("vale", "Mira Vale was a painter in Port Amber.", "Mira Vale"),
    Document("copy", "Mira Vale was a painter in Port Amber.", "Mira Vale"),
    Document("bridge", "The bridge spans the river Elm.", "Elm Bridge"),
)


def ask(*gold):
    return Question(id="-".join(gold), question="Who directed The Long Tide?", answers=(), supporting=gold)


async def rate(*questions, **settings):
    recipe = iier(use_sim=False, similar_seeds=0, **settings)
    with Index(recipe=recipe, embedder=HashEmbedder()) as index:
        await index.abuild(DOCUMENTS)
        return await evidence_match(index, DataSet("d", DOCUMENTS, questions))


async def test_the_share_of_gold_passages_on_chains_is_averaged_over_questions():
    assert await rate(ask("film", "vale")) == 100.0
    assert await rate(ask("film", "copy")) == 100.0  # copies are one passage
    assert await rate(ask("film", "bridge")) == 50.0
    assert await rate(ask("film", "bridge"), ask("bridge"), ask()) == pytest.approx(25.0)
    assert await rate(ask("film", "vale"), max_length=1) == 50.0


async def test_there_is_none_without_gold_or_without_chains():
    assert await rate(ask()) is None
    with Index(recipe="flat", embedder=HashEmbedder()) as index:
        await index.abuild(DOCUMENTS)
        assert await evidence_match(index, DataSet("d", DOCUMENTS, (ask("film"),))) is None


async def test_a_passage_that_the_data_set_names_is_the_evidence_not_its_page():
    page = Document(
        "vale",
        title="Mira Vale",
        chunks=(Passage("She kept bees on the roof.", title="Roof"), Passage("Mira Vale painted.", title="Mira Vale")),
    )
    documents = (DOCUMENTS[0], page)
    known = [replace(ask("vale"), metadata={"evidence": {"vale": [passage.text]}}) for passage in page.passages]
    with Index(recipe=iier(use_sim=False, use_struc=False, similar_seeds=0), embedder=HashEmbedder()) as index:
        await index.abuild(documents)
        rates = [
            await evidence_match(index, DataSet("d", documents, (question,))) for question in (*known, ask("vale"))
        ]
        snapshot = await index.asnapshot()
        trained = await known_questions(snapshot.view, known, snapshot.recipe.ranker)
    assert rates == [0.0, 100.0, 100.0]
    texts = [snapshot.view.pool.unit(question.evidence[0])[0].text for question in trained]
    assert texts == [passage.text for passage in page.passages]


MANUAL = Path(__file__).parents[2] / "data" / "manual"


def test_the_manual_is_a_data_set_whose_evidence_stands_in_its_pages():
    data = load_dataset(MANUAL)
    assert len(data.documents) >= 30
    assert len(data.questions) == 30
    assert sum(len(set(question.supporting)) == 2 for question in data.questions) == 20
    for question in data.questions:
        metadata = question.metadata
        for page, section, quote in zip(question.supporting, metadata["sections"], metadata["evidence"], strict=True):
            text = (MANUAL / "corpus" / page).read_text(encoding="utf-8")
            assert re.search(rf"^#+ {re.escape(section)}$", text, re.MULTILINE), (page, section)
            assert quote in " ".join(text.split()), (page, quote)
