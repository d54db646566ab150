"""From command-line options to an index."""

import json
import re
import sys
from functools import partial

import pytest
from typer.testing import CliRunner

from sire_core import Index
from sire_core.cli.app import app
from sire_core.cli.options import IndexOptions, manifest_of, open_index, parse_settings
from sire_core.documents.chunker import SentenceChunker
from sire_core.errors import ConfigurationError, CorpusError, StorageError
from sire_core.explore.web.explorer import ExplorerQuery
from sire_core.models.sync import run_sync
from sire_core.recipes import recipe_by_name
from sire_core.settings import UntrustedText
from sire_core.testing.doubles import ScriptedModel
from sire_core.types import Document
from support.command import run

DOCUMENTS = [
    Document("a", "Ada Holm founded Brackwater Press. It printed maps.", title="Ada Holm"),
    Document("b", "Brackwater Press stood in Lindle. It closed in 1931.", title="Brackwater Press"),
]


def build(**options):
    with open_index(IndexOptions(writes=True, **options)) as index:
        return index.build(DOCUMENTS)


def test_values_of_settings_are_json_or_words():
    given = ["depth=2", "split_tokens=null", 'skip_types=["Date"]', "clustering=leiden", "instruction=a=b"]
    assert parse_settings(given) == {
        "depth": 2,
        "split_tokens": None,
        "skip_types": ("Date",),
        "clustering": "leiden",
        "instruction": "a=b",
    }
    with pytest.raises(ConfigurationError, match="tau is given twice"):
        parse_settings(["tau=3", "max_docs=2", " tau =4"])


def test_a_missing_checkpoint_is_named_before_a_missing_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    made = {"recipe": "iier", "settings": {"scorer": "neural", "checkpoint": str(tmp_path / "chains")}}
    with pytest.raises(StorageError, match="There is no checkpoint"):
        open_index(IndexOptions(writes=True, **made))
    (tmp_path / "chains").write_bytes(b"weights")
    with pytest.raises(ConfigurationError, match=r"pip install safetensors$"):  # torch is not needed to search
        open_index(IndexOptions(writes=True, **made))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": "abc"}, "depth is a whole number of at least 0, not 'abc'"),
        ({"depth": True}, "whole number"),
        ({"skip_types": "Date"}, "skip_types is a list"),
        ({"instruction": 5}, "instruction is a text"),
        (
            {"depht": 2},
            r"no setting 'depht' in the recipe 'sirerag'.* Its settings are: .*depth.*`sire recipes sirerag` explains them",
        ),
        ({"clustering": "foo"}, "clustering is one of leiden, paper, not 'foo'"),
        ({"summary_tokens": None}, "summary_tokens is a whole number of at least 1, not None"),
    ],
)
def test_bad_settings_are_named_before_a_folder_is_made(tmp_path, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        open_index(IndexOptions(folder=tmp_path / "ix", settings=settings, writes=True))
    assert not (tmp_path / "ix").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "nope"}, "There is no recipe 'nope'; choose one of .*raptor, sire, sirerag"),
        ({"embedder": "nope"}, "unknown embedder 'nope'"),
        ({"chunk_tokens": 9, "no_chunking": True}, "not both"),
    ],
)
def test_other_mistakes_are_found_before_a_folder_is_made(tmp_path, options, message):
    with pytest.raises(ConfigurationError, match=message):
        open_index(IndexOptions(folder=tmp_path / "ix", writes=True, **options))
    assert not (tmp_path / "ix").exists()


def test_a_recording_that_is_missing_is_found_early(tmp_path):
    with pytest.raises(CorpusError, match="nofile"):
        open_index(IndexOptions(folder=tmp_path / "ix", extractions=tmp_path / "nofile", writes=True))


@pytest.mark.parametrize(
    ("first", "cut"),
    [
        ({"chunk_tokens": 8}, {"max_tokens": 8, "overlap_tokens": 1}),
        ({"no_chunking": True}, None),
        ({}, SentenceChunker().settings()),
    ],
)
def test_a_later_change_cuts_as_the_folder_was_cut(tmp_path, first, cut):
    build(folder=tmp_path, recipe="flat", **first)
    assert manifest_of(tmp_path).chunker == cut
    again = build(folder=tmp_path, recipe="raptor")
    assert (again.updated, again.unchanged) == (0, 2)
    assert manifest_of(tmp_path).chunker == cut


def test_another_seed_is_refused_rather_than_ignored(tmp_path):
    build(folder=tmp_path, recipe="flat", seed=4)
    with pytest.raises(ConfigurationError, match="--seed 4"):
        build(folder=tmp_path, recipe="flat", seed=5)
    build(folder=tmp_path, recipe="flat", seed=4)
    build(folder=tmp_path, recipe="flat")


def test_a_folder_of_recorded_extractions_keeps_them(tmp_path):
    recording = tmp_path / "recording.jsonl"
    rows = [{"id": d.id, "entities": ["Brackwater Press"], "triples": [], "model": "m"} for d in DOCUMENTS]
    recording.write_text("\n".join(map(json.dumps, rows)))
    build(folder=tmp_path / "ix", recipe="sirerag", extractions=recording)
    with pytest.raises(ConfigurationError, match="--extractions"):
        build(folder=tmp_path / "ix", recipe="raptor")
    build(folder=tmp_path / "ix", recipe="raptor", extractions=recording)
    assert [built.name for built in manifest_of(tmp_path / "ix").recipes] == ["raptor", "sirerag"]  # the default last


def test_settings_of_the_search_are_laid_over_those_of_the_build(tmp_path):
    build(folder=tmp_path, recipe="raptor", settings={"depth": 1, "summary_tokens": 30})
    with open_index(IndexOptions(folder=tmp_path, settings={"ranker": "bm25"})) as index:
        steps = {step.step for hit in index.search("maps", 5) for step in hit.path}
        assert index.stats()["recipe"] == "raptor"
    assert any(step.startswith("words:") for step in steps)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"settings": {"depth": 2, "ranker": "bm25"}},
            r"^depth of raptor decides what is built, and .* built with depth=1\. .*--recipe raptor --set depth=2;",
        ),
        ({"settings": {"nope": 2}}, "There is no setting 'nope'"),
        ({"settings": {"depth": "x"}}, "depth is a whole number of at least 0"),
        ({"ranker": "nope"}, "ranker is one of dense, bm25, tfidf, hybrid, late"),
        ({"recipe": "iier", "ranker": "bm25"}, r"iier ranks in its own way and takes no --ranker \(these do: flat, "),
        ({"recipe": "flat", "settings": {"ranker": "bm25"}}, "it holds: raptor, iier"),
    ],
)
def test_what_cannot_be_set_at_a_search_is_refused_with_the_reason(tmp_path, options, message):
    build(folder=tmp_path, recipe="raptor", settings={"depth": 1})
    build(folder=tmp_path, recipe="iier")
    with pytest.raises(ConfigurationError, match=message):
        open_index(IndexOptions(folder=tmp_path, **{"recipe": "raptor", **options}))


def test_a_setting_of_the_build_finds_the_recipe_that_was_built_with_it(tmp_path):
    build(folder=tmp_path, recipe="raptor", settings={"depth": 1})
    build(folder=tmp_path, recipe="raptor", settings={"depth": 2, "summary_tokens": 30})
    with pytest.raises(ConfigurationError, match="depth"):
        open_index(IndexOptions(folder=tmp_path, settings={"depth": 1}))
    older = {"depth": 1, "summary_tokens": 200}
    with open_index(IndexOptions(folder=tmp_path, settings=older)) as index:
        assert index.search("maps", 1)


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
        result = CliRunner().invoke(app, ["explore", str(tmp_path / "ix"), *words])
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
