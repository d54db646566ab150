"""From command-line options to an index."""

import json
import re
import sys
from functools import partial

import pytest

from sire_core import Document, Index
from sire_core.cli.app import app
from sire_core.documents.chunker import SentenceChunker
from sire_core.explore.web.explorer import ExplorerQuery
from sire_core.models.sync import run_sync
from sire_core.recipes import recipe_by_name
from sire_core.settings import UntrustedText
from sire_core.testing.doubles import ScriptedModel
from support.command import run, runner

DOCUMENTS = [
    Document("a", "Ada Holm founded Brackwater Press. It printed maps.", title="Ada Holm"),
    Document("b", "Brackwater Press stood in Lindle. It closed in 1931.", title="Brackwater Press"),
]


def builder(place):
    """`sire index` of two documents into the folder `ix` of a place, with more words."""
    rows = [{"id": d.id, "title": d.title, "text": d.text} for d in DOCUMENTS]
    (place / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return lambda words, code=0: run("index", place / "corpus.jsonl", "--to", place / "ix", *words.split(), code=code)


@pytest.fixture
def build(tmp_path):
    return builder(tmp_path)


@pytest.fixture(scope="module")
def two_recipes(tmp_path_factory):
    """The place of an index that tests only read."""
    place = tmp_path_factory.mktemp("two")
    for words in ("-r raptor --set depth=1", "-r iier"):
        builder(place)(words)
    return place


def test_values_of_settings_are_json_or_words(build, tmp_path):
    given = ("depth=1", "split_tokens=null", 'skip_types=["Date"]', "clustering=leiden", "instruction=a=b")
    build(f"-r sirerag --set {' --set '.join(given)}")
    config = Index(tmp_path / "ix").snapshot().recipe.config
    wanted = {"depth": 1, "split_tokens": None, "skip_types": ("Date",), "clustering": "leiden", "instruction": "a=b"}
    assert {name: config[name] for name in wanted} == wanted


def test_a_missing_checkpoint_is_named_before_a_missing_library(build, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    words = f"-r iier --set scorer=neural --set checkpoint={tmp_path / 'chains'}"
    assert "There is no checkpoint" in build(words, 1).stderr
    (tmp_path / "chains").write_bytes(b"weights")
    assert build(words, 1).stderr.rstrip().endswith("pip install safetensors")  # torch is not needed to search


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--set depth=abc", "depth is a whole number of at least 0, not 'abc'"),
        ("--set instruction=5", "instruction is a text"),
        (
            "--set depht=2",
            r"no setting 'depht' in the recipe 'sirerag'.* Its settings are: .*depth.*`sire recipes sirerag` explains them",
        ),
        ("--set tau=3 --set max_docs=2 --set tau=4", "tau is given twice"),
        ("--recipe nope", "There is no recipe 'nope'; choose one of .*raptor, sire, sirerag"),
        ("--embedder nope", "unknown embedder 'nope'"),
        ("--chunk-tokens 9 --no-chunking", "not both"),
        ("--extractions nofile", "nofile"),
    ],
)
def test_mistakes_are_named_before_a_folder_is_made(build, tmp_path, words, message):
    assert re.search(message, build(words, 1).stderr)
    assert not (tmp_path / "ix").exists()


@pytest.mark.parametrize(
    ("words", "cut"),
    [("--chunk-tokens 8", SentenceChunker(8, overlap_tokens=1)), ("--no-chunking", None), ("", SentenceChunker())],
)
def test_a_later_change_cuts_as_the_folder_was_cut(build, tmp_path, words, cut):
    build(f"-r flat {words}")
    again = json.loads(build("-r raptor --json").stdout)
    assert (again["updated"], again["unchanged"]) == (0, 2)
    with Index(tmp_path / "ix") as index:
        assert index.chunker == cut


def test_another_seed_is_refused_rather_than_ignored(build):
    build("-r flat --seed 4")
    assert "--seed 4" in build("-r flat --seed 5", 1).stderr
    build("-r flat --seed 4")
    build("-r flat")


def test_a_folder_of_recorded_extractions_keeps_them(build, tmp_path):
    recording = tmp_path / "recording.jsonl"
    rows = [{"id": d.id, "entities": ["Brackwater Press"], "triples": [], "model": "m"} for d in DOCUMENTS]
    recording.write_text("\n".join(map(json.dumps, rows)))
    build(f"-r sirerag --extractions {recording}")
    assert "--extractions" in build("-r raptor", 1).stderr
    build(f"-r raptor --extractions {recording}")
    assert Index(tmp_path / "ix").stats()["recipes"] == ["sirerag", "raptor"]  # the default first


def ask(tmp_path, words, code=0):
    return run("query", tmp_path / "ix", "maps", "--json", *words.split(), code=code)


def test_settings_of_the_search_are_laid_over_those_of_the_build(build, tmp_path):
    build("-r raptor --set depth=1 --set summary_tokens=30")
    hits = json.loads(ask(tmp_path, "--set ranker=bm25").stdout)
    assert any(step["step"].startswith("words:") for hit in hits for step in hit["path"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "-r raptor --set depth=2 --set ranker=bm25",
            r"depth of raptor decides what is built, and .* built with depth=1\. .*--recipe raptor --set depth=2;",
        ),
        ("-r raptor --set nope=2", "There is no setting 'nope'"),
        ("-r raptor --set depth=x", "depth is a whole number of at least 0"),
        ("-r raptor --ranker nope", "ranker is one of dense, bm25, tfidf, hybrid, late"),
        ("-r iier --ranker bm25", r"iier ranks in its own way and takes no --ranker \(these do: flat, "),
        ("-r flat --set ranker=bm25", "it holds: raptor, iier"),
    ],
)
def test_what_cannot_be_set_at_a_search_is_refused_with_the_reason(two_recipes, words, message):
    assert re.search(message, ask(two_recipes, words, 1).stderr)


def test_a_setting_of_the_build_finds_the_recipe_that_was_built_with_it(build, tmp_path):
    build("-r raptor --set depth=1")
    build("-r raptor --set depth=2 --set summary_tokens=30")
    assert "depth" in ask(tmp_path, "--set depth=1", 1).stderr
    assert json.loads(ask(tmp_path, "--set depth=1 --set summary_tokens=200").stdout)


@pytest.fixture
def asked_on_page(tmp_path, monkeypatch):
    """Searches of the page of `sire explore`, as started with some words, over `flat` and a `sire` that names a model."""
    asked = []

    def chat(name):
        asked.append(name)
        return ScriptedModel(["0"] * 9)

    monkeypatch.setattr("sire_core.models.openai.client._chat_model", chat)
    theirs = {"rerank": UntrustedText("model"), "rerank_model": UntrustedText("their@http://127.0.0.1:9/v1")}
    for recipe in (recipe_by_name("sire", max_names=4, **theirs), recipe_by_name("flat")):
        with Index(tmp_path / "ix", recipe=recipe) as index:
            index.build(DOCUMENTS)

    def searches(words, *askings):
        def serve(explorer, *_):
            for asking in askings:
                assert run_sync(explorer.ask(asking)).hits

        monkeypatch.setattr("sire_core.explore.web.server.serve", serve)
        asked.clear()
        result = runner().invoke(app, ["explore", str(tmp_path / "ix"), *words])
        return result.exit_code, " ".join(result.output.split()), list(asked)

    return searches


def test_what_explore_is_told_holds_in_every_search_of_the_page(asked_on_page):
    ask = partial(ExplorerQuery, "Who founded Brackwater Press?")
    code, said, _ = asked_on_page((), ask())
    assert (code, "--set rerank_model=..." in said) == (1, True)
    said = ("--set", "rerank_model=mine")
    askings = (
        ask(),
        ask(recipe="sire"),
        ask(recipe="flat"),
        ask(settings="rerank_named=1"),
        ask(settings="rerank=none"),
    )
    assert asked_on_page(said, *askings) == (0, "", ["mine"] * 3)
    code, said, asked = asked_on_page(said, ask(settings="rerank_model=theirs"))
    assert (code, asked) == (1, [])
    assert "cannot be set on this page" in said
    assert "sire explore DIR --set rerank_model=..." in said
    for words, reason in (("damping=0.5", "no setting 'damping'"), ("max_names=9", "decides what is built")):
        code, said, _ = asked_on_page(("--set", words))
        assert (code, reason in said) == (1, True), said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--recipe", "raptor", "--set", "dept=2"), r"'dept' in the recipe 'raptor'\. Did you mean 'depth'\?"),
        (("--set", "dept=2"), r"'dept' in the recipe '(\w+)'\. .*`sire recipes \1` explains them"),
        (
            ("--recipe", "sire", "--set", "dept=2"),
            r"'dept' in the recipe 'sire'\. Its settings are: preset, .*`sire recipes sire`",
        ),
        (("--recipe", "sire", "--set", "rerank_poole=2"), r"Did you mean 'rerank_pool' or 'rerank_model'\?"),
    ],
)
def test_an_unknown_setting_names_the_recipe_and_where_its_settings_are(tmp_path, words, said):
    (tmp_path / "a.md").write_text("The heron queue keeps messages.")
    result = run("index", tmp_path / "a.md", "--to", tmp_path / "ix", *words, code=1)
    assert re.search(said, result.stderr)


def test_a_setting_that_no_measured_recipe_has_names_them_all(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"id": "a", "text": "The heron queue keeps messages."}))
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "q", "question": "What keeps?", "supporting": ["a"]}))
    result = run("eval", tmp_path, "-r", "sire,raptor", "--set", "dept=2", code=1)
    said = "'dept' in any of the recipes sire, raptor. Did you mean 'depth'? `sire recipes NAME` lists"
    assert said in result.stderr
