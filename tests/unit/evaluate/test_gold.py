"""Gold as users have it: quotes with alternatives, ids of passages, and folders of files."""

from __future__ import annotations

import json

import pytest

from sire_core import Document, Index
from sire_core.corpus.benchmarks import question_from_record
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.datasets import DataSet, load_dataset
from sire_core.evaluate.report import format_table
from sire_core.evaluate.retrieval import all_at_k, ndcg_at_k, recall_at_k, reciprocal_rank
from sire_core.evaluate.runner import EvalConfig, evaluate
from sire_core.types import Passage

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
def folder(tmp_path):
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


async def test_quotes_are_found_in_files_read_as_an_index_reads_them(folder):
    dataset = load_dataset(folder)
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
async def test_passages_of_a_frameworks_splitters_hold_the_quotes_too(folder, chunks):
    pytest.importorskip("langchain_text_splitters" if chunks == "langchain" else "llama_index.core")
    dataset = load_dataset(folder, chunks)
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


async def test_every_passage_takes_a_place_and_one_whole_passage_of_a_document_is_enough_for_a_budget():
    bees = tuple(f"Bees make honey in hive number {n}." for n in range(6))
    documents = (Document("bees", chunks=bees), Document("cats", "Cats purr."))
    dataset = DataSet("d", documents, (question(question="Bees honey hive?", supporting=["bees", "cats"]),))
    row = await measured(dataset, ks=(5, 10), budget=30)
    assert row.recall_passages(5) == 50
    assert row.recall(5) == 100
    assert row.recall_at_budget() == 50


async def test_questions_to_another_index_are_refused(folder):
    dataset = load_dataset(folder)
    with Index(recipe="flat") as index:
        await index.abuild([Document("other", "Something else.")])
        with pytest.raises(ConfigurationError, match="No passage of the index meets a need"):
            await evaluate(index, dataset)


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
    "needs",
    [{}, [[]], ["x"], [["x"]], [[{"doc": "a"}]], [[{"doc": "a", "quote": "  "}]], [[{"quote": "x"}]]],
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
