"""Closing an index, and what is said while one is built."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from sire_core import Document, Index
from sire_core.errors import IndexClosedError, IndexMissingError
from sire_core.extend import progress_of
from sire_core.testing.contracts import sample_corpus
from sire_core.testing.doubles import ScriptedModel
from support.command import run

DOCUMENTS = [Document("a", "Alma met Boris in Ceuta.")]


USES = {
    "search": lambda index: index.search("Alma"),
    "search_many": lambda index: index.search_many(["Alma"]),
    "context": lambda index: index.context("Alma"),
    "explain": lambda index: index.explain("Alma"),
    "stats": lambda index: index.stats(),
    "failures": lambda index: index.failures(),
    "documents": lambda index: index.documents(),
    "sources": lambda index: index.sources(),
    "chunker": lambda index: index.chunker,
    "recipe_name": lambda index: index.recipe_name,
    "snapshot": lambda index: index.snapshot(),
    "view": lambda index: index.view(),
    "add": lambda index: index.add(DOCUMENTS),
    "build": lambda index: index.build(DOCUMENTS),
    "delete": lambda index: index.delete(["a"], missing_ok=True),
    "defer": lambda index: index.defer(DOCUMENTS),
    "flush": lambda index: index.flush(),
    "push": lambda index: index.push(),
    "estimate": lambda index: index.estimate(DOCUMENTS),
    "using": lambda index: index.using("flat").search("Alma"),
    "save": lambda index: index.save("never"),
}


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_a_closed_index_raises_one_error(where, tmp_path):
    index = Index(tmp_path / "ix" if where == "folder" else None, recipe="flat")
    index.build(DOCUMENTS)
    index.close()
    index.close()
    for use in USES.values():
        with pytest.raises(IndexClosedError, match="Open another one" if where == "folder" else "in memory is lost"):
            use(index)
        if where == "folder":
            with Index(tmp_path / "ix") as other:
                assert other.search("Alma", 1)[0].doc_ids == ("a",)


WRITER = """
import sys
from sire_core.storage.folder import Folder
from sire_core.storage.index_files import IndexFiles

files = IndexFiles(__import__("pathlib").Path(sys.argv[1]), create=True)
files.store.manifest()
with files.writing():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_during_a_first_build_reading_says_that_one_runs(tmp_path):
    folder = tmp_path / "ix"
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        for words in (["stats", folder], ["query", folder, "Alma"], ["documents", folder]):
            assert "being built by another process" in " ".join(run(*words, code=1).output.split())
        with Index(folder) as index, pytest.raises(IndexMissingError, match="being built by another process"):
            index.search("Alma")
        holder.stdin.close()
        holder.wait(30)
    assert "nothing was built" in " ".join(run("stats", folder, code=1).output.split())


def test_reading_a_folder_is_said_before_it_begins(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nAlma met Boris.\n")
    said = run("index", tmp_path / "docs", "--to", tmp_path / "ix", "--recipe", "flat").stderr
    assert said.index("Reading ") < said.index("Read 1 document")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_bars_are_for_terminals(monkeypatch, terminal):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    Index(recipe="flat", progress=True).build([Document(str(n), f"Passage number {n}.") for n in range(5)])
    assert ("100%" in stream.getvalue()) is terminal
    drawn = stream.getvalue()
    for nothing in (False, None):
        progress_of(nothing)("stage", 1, 2)
    assert stream.getvalue() == drawn


def told(recipe, **settings):
    """What is told of each stage of a build: (done, total) in order."""
    stages: dict[str, list[tuple[int, int]]] = {}
    index = Index(recipe=recipe, progress=lambda stage, *at: stages.setdefault(stage, []).append(at), **settings)
    index.build(sample_corpus())
    return stages


@pytest.mark.parametrize(("recipe", "stage"), [("raptor", "summaries of sim level 1"), ("indexrag", "bridging facts")])
def test_what_a_model_writes_is_counted_while_it_writes(recipe, stage):
    model = ScriptedModel()
    model.concurrency = 1
    found = told(recipe, language_model=model, workers=1)[stage]
    done, totals = zip(*found, strict=True)
    assert done[0] == 0
    assert list(done) == sorted(done)
    assert any(0 < number < totals[0] for number in done)
    assert done[-1] == totals[-1] == totals[0]


def test_every_stage_of_a_build_begins_at_nothing_and_ends_with_all():
    stages = told("sirerag")
    assert {"extraction", "embedding", "deriving", "summaries of sim level 1", "writing"} <= set(stages)
    for found in stages.values():
        assert found[0][0] == 0
        assert found[-1][0] == found[-1][1]
