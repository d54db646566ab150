"""`Experiment`: the rows of `sire eval`, from Python."""

from __future__ import annotations

import json

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents, demo_questions
from sire_core.errors import ConfigurationError
from sire_core.evaluate import DataSet, EvalConfig, Experiment, load_questions
from sire_core.recipes import pagerank, raptor
from sire_core.testing.doubles import HashEmbedder

DEMO = DataSet("demo", tuple(demo_documents()), tuple(demo_questions()))


def experiment(*recipes, **options):
    return Experiment(DEMO, recipes, embedder=HashEmbedder(), **options)


def names(rows):
    return [row.setup.recipe for row in rows]


def test_rows_of_baselines_and_recipes_share_a_folder_and_are_told_one_by_one(tmp_path):
    finished, stages = [], set()
    run = experiment(
        "flat",
        raptor(depth=1),
        "pagerank",
        settings={"damping": 0.3},
        folder=tmp_path / "ix",
        on_row=lambda row: finished.append(row.setup.recipe),
        progress=lambda stage, *_: stages.add(stage),
    )
    rows = run.run()
    assert names(rows) == finished == ["bm25", "dense", "hybrid", "flat", "raptor", "pagerank"]
    assert [dict(row.setup.settings) for row in rows[3:]] == [{}, {"depth": 1}, {"damping": 0.3}]
    assert rows[0].interval is not None
    assert rows[2].interval is None  # what the others are compared with
    assert "questions to pagerank" in stages
    assert all(row.recall_passages(20) > 50 for row in rows)
    with Index(tmp_path / "ix") as index:
        assert {"flat", "raptor", "pagerank"} <= set(index.stats()["recipes"])
    again = experiment("pagerank", baselines=(), settings={"damping": 0.3}).run()
    assert names(again) == ["pagerank"]
    assert again[0].as_json()["recall_passages"] == rows[-1].as_json()["recall_passages"]


async def test_it_can_be_awaited_and_builds_are_repeated_with_other_seeds():
    rows = await experiment("raptor", baselines=("hybrid",), repeats=2, config=EvalConfig(ks=(5,))).arun()
    assert names(rows) == ["hybrid", "raptor"]
    assert rows[1].repeats["builds"] == 2
    assert set(rows[1].repeats["recall_passages"]["5"]) == {"mean", "sd", "min", "max"}


def test_rows_of_a_paper_stand_below_two_baselines_and_say_what_is_left_out():
    lines = []
    made = experiment("sirerag", ablations=True, log=lines.append, config=EvalConfig(limit=4)).run()
    assert names(made)[:2] == ["dense", "hybrid"]
    assert len(made) > 4
    assert all(row.setup.paper for row in made[2:])
    assert any("left out, it needs" in line or "left out, it is about answers" in line for line in lines)


def test_mistakes_are_found_before_anything_is_built(tmp_path):
    for wrong in (
        experiment("pagerank", settings={"dampin": 0.3}, folder=tmp_path),
        experiment("no such recipe", folder=tmp_path),
        experiment("pagerank", baselines=("no such ranker",), folder=tmp_path),
        experiment("flat", ablations=True, folder=tmp_path),
        experiment("flat", ablations=True, repeats=2, folder=tmp_path),
    ):
        with pytest.raises(ConfigurationError):
            wrong.run()
    assert not list(tmp_path.iterdir())


def test_a_folder_with_other_documents_is_left_alone(tmp_path):
    with Index(tmp_path, recipe="flat") as index:
        index.build([Document("mine", "My own notes.")])
    with pytest.raises(ConfigurationError, match="would remove them"):
        experiment("flat", folder=tmp_path).run()


def test_an_index_is_asked_as_it_is_with_quotes_as_gold(tmp_path):
    place, questions = tmp_path / "ix", tmp_path / "questions.jsonl"
    with Index(place, recipe=pagerank(), embedder=HashEmbedder(), chunker=None) as index:
        index.build(DEMO.documents)
        documents = index.documents()
    before = sorted(path.name for path in place.iterdir())
    document = documents[0]
    need = {"doc": document.id, "quote": document.passages[0].text[:60]}
    questions.write_text(json.dumps({"id": "q", "question": document.passages[0].text[:60], "needs": [[need]]}))
    dataset = load_questions(questions, documents, "ix")
    rows = Experiment(dataset, (), index=place, settings={"damping": 0.4}, embedder=HashEmbedder()).run()
    assert names(rows) == ["bm25", "dense", "hybrid", "pagerank"]
    assert rows[-1].setup.settings == {"damping": 0.4}
    assert rows[0].recall_passages(5) == 100
    assert sorted(path.name for path in place.iterdir()) == before
    with pytest.raises(ConfigurationError, match="does not hold raptor; it holds pagerank"):
        Experiment(dataset, ["raptor"], index=place).run()
    with pytest.raises(ConfigurationError, match="changes what is built"):
        Experiment(dataset, ["pagerank"], index=place, settings={"max_names": 3}).run()
