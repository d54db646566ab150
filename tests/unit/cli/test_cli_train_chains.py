"""`sire train-chains` in this process."""

import json
import sys

import pytest

from sire_core.papers.iier import training
from support.command import run

PEOPLE = ("Ada Holm", "Bela Brack", "Cora Quist", "Dina Stern", "Edda Voss", "Fina Lund")
TOWNS = ("Lindle", "Marlow", "Norwick")


def data_set(folder):
    folder.mkdir()
    rows = [
        {"id": f"p{i}", "title": name, "text": f"{name} was a painter, born in {TOWNS[i % 3]}."}
        for i, name in enumerate(PEOPLE)
    ]
    rows += [{"id": f"t{i}", "title": town, "text": f"{town} lies on a river."} for i, town in enumerate(TOWNS)]
    asked = [
        {"id": f"q{i}", "question": f"Where lies the town where {name} was born?", "supporting": [f"p{i}", f"t{i % 3}"]}
        for i, name in enumerate(PEOPLE)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    return folder


def test_a_trained_checkpoint_is_what_the_recipe_searches_with(tmp_path):
    pytest.importorskip("torch", reason="the torch extra is missing")
    data, file = data_set(tmp_path / "painters"), tmp_path / "chains.safetensors"
    words = ("train-chains", data, "--to", file, "--epochs", 2, "--test", data)
    card = json.loads(run(*words, "--json").stdout)
    assert card["data"]["name"] == "painters"
    assert set(card["metrics"]["match_rate"]["painters, 6"]) == {"neural", "heuristic", "random"}
    table = run(*words).stdout
    assert card["digest"] in table
    assert "painters, 6" in table
    head, *rows = [line for line in table.splitlines() if line][1:]
    assert [len(row) for row in rows] == [len(head)] * 2
    corpus = data / "corpus.jsonl"
    settings = ("--set", "scorer=neural", "--set", f"checkpoint={file}")
    run("index", corpus, "--to", tmp_path / "ix", "--recipe", "iier", *settings, "--no-chunking")
    asked = ("query", tmp_path / "ix", "Where was Ada Holm born?", "-k", 2, "--json")
    hits = json.loads(run(*asked, "--set", f"checkpoint={file}").stdout)
    assert hits[0]["doc_ids"] == ["p0"]


def test_questions_that_share_a_page_with_held_out_ones_are_left_out(tmp_path):
    pytest.importorskip("torch", reason="the torch extra is missing")
    # Painters i and i + 3 share a town, so every even question shares one with an odd one.
    data, file = data_set(tmp_path / "painters"), tmp_path / "chains.safetensors"
    result = run("train-chains", data, "--to", file, "--questions", "even", code=1)
    assert "3 questions left out" in result.stderr
    assert "at least two questions" in result.stderr
    assert not file.exists()


def test_halves_are_those_of_an_evaluation(tmp_path):
    pytest.importorskip("torch", reason="the torch extra is missing")
    data, file = data_set(tmp_path / "painters"), tmp_path / "chains.safetensors"
    asked = (data / "questions.jsonl").read_text().splitlines()
    # Behind each question one without evidence: counted among all, the even ones are those that teach.
    others = [json.dumps({"id": f"x{i}", "question": "Why?", "answers": ["so"]}) for i in range(len(asked))]
    (data / "questions.jsonl").write_text("\n".join(line for pair in zip(asked, others, strict=True) for line in pair))
    card = json.loads(run("train-chains", data, "--to", file, "--epochs", 1, "--questions", "even", "--json").stdout)
    assert card["data"]["left_out"] == 0
    assert card["metrics"]["match_rate"] == {}
    assert "not 0" in run("train-chains", data, "--to", file, "--questions", "odd", code=1).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--labels", "longest"), "labels is one of"),
        (("--loss", "hinge"), "loss is one of"),
        (("--set", "scorer=neural"), "scorer has no effect on training"),
        (("--set", "order=chain"), "order has no effect on training"),
        (("--set", "n_simm=3"), "no setting"),
        (("--scorer", "large"), "--scorer is one of"),
        (("--scorer", "encoder"), "go together"),
        (("--questions", "asked.jsonl"), "is for an index folder"),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(tmp_path, words, said):
    pytest.importorskip("torch", reason="the torch extra is missing")
    data = data_set(tmp_path / "painters")
    assert said in run("train-chains", data, "--to", tmp_path / "x", *words, code=1).stderr


def test_an_index_teaches_over_the_graph_that_it_serves(tmp_path):
    pytest.importorskip("torch", reason="the torch extra is missing")
    data, file, ix = data_set(tmp_path / "painters"), tmp_path / "chains.safetensors", tmp_path / "ix"
    # Recorded keywords: no passage shares one with another, so that titles and nearest passages make no edge either.
    rows = [{"id": f"p{i}", "entities": [f"painter {i}"], "triples": [], "model": "m"} for i in range(6)]
    rows += [{"id": f"t{i}", "entities": [f"place {i}"], "triples": [], "model": "m"} for i in range(3)]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recorded = ("--extractions", tmp_path / "said.jsonl")
    sparse = ("--set", "n_sim=0", "--set", "title_keywords=false")
    run("index", data / "corpus.jsonl", "--to", ix, "--recipe", "iier", *sparse, *recorded, "--no-chunking")
    asked = ("--questions", data / "questions.jsonl")
    run("train-chains", ix, "--to", file, code=1).stderr.index("--questions FILE")
    assert "leave --test" in run("train-chains", ix, "--to", file, *asked, "--embedder", "lexical", code=1).stderr
    assert "over an index" in run("train-chains", ix, "--to", file, *asked, "--set", "n_sim=3", code=1).stderr
    assert "nothing to learn from" in run("train-chains", ix, "--to", file, *asked, code=1).stderr
    # The same extractions over a data set: no edge there, either.
    assert "nothing to learn from" in run("train-chains", data, "--to", file, *recorded, *sparse, code=1).stderr
    dense = tmp_path / "dense"
    run("index", data / "corpus.jsonl", "--to", dense, "--recipe", "iier", "--no-chunking")
    card = json.loads(run("train-chains", dense, "--to", file, *asked, "--epochs", 1, "--json").stdout)
    assert (card["kind"], card["data"]["name"], card["config"]["max_hops"]) == ("light", "dense", 2)
    neural = ("--set", "scorer=neural", "--set", f"checkpoint={file}")
    assert json.loads(run("query", dense, "Where was Ada Holm born?", *neural, "--json").stdout)


def test_what_is_worse_than_the_heuristic_is_said(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="the torch extra is missing")
    from sire_core.papers.iier.scorers import HeuristicScorer

    async def rate(view, questions, scorer, max_length):
        return 80.0 if isinstance(scorer, HeuristicScorer) else 70.0

    monkeypatch.setattr(training, "match_rate", rate)
    data = data_set(tmp_path / "painters")
    words = ("train-chains", data, "--to", tmp_path / "x", "--epochs", 1, "--set", "max_length=2", "--test", data)
    said = run(*words).stderr
    assert "On painters, 6 the trained scorer finds 70.0 % of the gold passages, the heuristic 80.0 %" in " ".join(
        said.split()
    )
    assert "stay with scorer=heuristic" in said


def test_without_torch_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    result = run("train-chains", data_set(tmp_path / "painters"), "--to", tmp_path / "x", code=1)
    assert 'pip install "sire-rag[torch]"' in result.stderr
