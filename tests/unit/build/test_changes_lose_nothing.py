"""Changes at the edges of what an index holds: nothing vanishes, nothing blocks the folder, nothing goes unsaid."""

import subprocess
import sys
from dataclasses import replace

import pytest

from sire_core import Document, Index
from sire_core.build.estimate import DryRunModel
from sire_core.derive.derivation import PlainDerivation
from sire_core.errors import ConfigurationError
from sire_core.recipes import flat
from sire_core.storage.check import check_folder
from sire_core.types import Edge, Passage, Unit, UnitKind

TEXTS = {
    "b": "Ships sail from Hull.",
    "c": "Trains run to Warsaw.",
    "e": "Planes fly to Oslo.",
    "f": "Cars drive to Rome.",
}


@pytest.mark.parametrize(("recipe", "stored"), [("flat", True), ("flat", False), ("sire", True), ("sire", False)])
@pytest.mark.parametrize("empty", [["a"], ["c"], ["f"], ["a", "b", "f"]])
def test_a_document_that_was_empty_comes_before_or_behind_the_others(tmp_path, recipe, stored, empty):
    texts = {"a": "", **TEXTS, **dict.fromkeys(empty, "")}
    index = Index(tmp_path / "index" if stored else None, recipe=recipe)
    index.build([Document(name, text) for name, text in texts.items()])
    filled = {name: f"Now {name} tells of the harbour." for name in empty}
    index.update([Document(name, text) for name, text in filled.items()])
    now = {name: text for name, text in (texts | filled).items() if text}
    assert {hit.doc_ids[0]: hit.unit.text for hit in index.search("harbour ships trains", 10)} == now
    index.close()
    if stored:
        assert check_folder(tmp_path / "index") == []
        assert len(Index(tmp_path / "index").search("harbour", 10)) == len(now)


def mine(derive, version="1"):
    """A recipe of the user's, over all passages."""
    return replace(flat(), name="mine", organizers=(PlainDerivation("plain", derive, version),))


WRONG = {
    "no passage": lambda passages: ([Unit("", UnitKind.SIM_SUMMARY, "x", ())], []),
    "letters long": lambda passages: ([Unit("é1", UnitKind.SIM_SUMMARY, "x", passages[0].unit.chunk_ids)], []),
    "24 ASCII letters": lambda passages: ([Unit("s" * 25, UnitKind.SIM_SUMMARY, "x", passages[0].unit.chunk_ids)], []),
    "levels are": lambda passages: ([Unit("", UnitKind.SIM_SUMMARY, "x", passages[0].unit.chunk_ids, level=300)], []),
    "no passage of this": lambda passages: ([Unit("", UnitKind.SIM_SUMMARY, "x", ("nowhere",))], []),
    "finite weight": lambda passages: ([], [Edge("k", passages[0].unit.id, passages[1].unit.id, float("nan"))]),
}


@pytest.mark.parametrize(("said", "derive"), list(WRONG.items()))
def test_a_mistake_in_an_organizer_is_told_before_anything_is_written(tmp_path, said, derive):
    documents = [Document(name, text) for name, text in TEXTS.items()]
    with Index(tmp_path / "index", recipe="flat") as index:
        index.build(documents)
    with Index(tmp_path / "index", recipe=mine(derive)) as index, pytest.raises(ConfigurationError, match=said):
        index.build(documents)
    with Index(tmp_path / "index", recipe="flat") as index:
        assert index.stats()["generation"] == 1
        index.add([Document("g", "Kites rise over Hull.")])
        assert len(index.search("Hull", 10)) == 5
    with Index(tmp_path / "index", recipe=mine(lambda passages: ([], []), "2")) as index:
        index.build(documents)
        assert len(index.search("Hull", 10)) == 4


@pytest.mark.parametrize("stored", [True, False])
def test_true_is_not_one(tmp_path, stored):
    passages = (Passage("Open.", id="p1", metadata={"level": True}), Passage("Secret.", id="p2", metadata={"level": 1}))
    index = Index(tmp_path / "index" if stored else None, recipe="flat")
    index.build(
        [Document("a", chunks=passages, metadata={"level": True}), Document("b", "Other.", metadata={"n": True})]
    )
    for value, expected in ((True, "p1"), (1, "p2")):
        (hit,) = index.search("What is it?", 10, filter={"level": value})
        assert hit.unit.source_id == expected
        assert hit.metadata["level"] is value
    assert index.update([Document("b", "Other.", metadata={"n": 1})]).updated == 1
    (hit,) = index.search("What is it?", 10, filter={"n": 1})
    assert hit.metadata["n"] is not True
    assert index.search("What is it?", 10, filter={"n": True}) == []


def test_readers_go_on_when_a_writer_died_before_it_published(tmp_path):
    documents = [Document(name, text) for name, text in TEXTS.items()]
    folder = tmp_path / "index"
    Index(folder, recipe="sirerag").build(documents)
    reader = Index(folder)
    assert len(reader.search("Hull", 3)) == 3
    code = (
        "import os, sys\nfrom sire_core import Document, Index\nfrom sire_core.storage.pool import Pools\n"
        "Pools.get = lambda *args, **kwargs: os._exit(9)  # killed behind the commit\n"
        "Index(sys.argv[1]).add([Document('g', 'Kites rise over Hull.')])\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(folder)], check=False).returncode == 9
    assert reader.explain("kites over Hull", 3, returns="units")
    assert reader.search("kites over Hull", 1)[0].doc_ids == ("g",)
    assert reader.search_many(["kites over Hull"], 1)[0][0].doc_ids == ("g",)
    assert reader.snapshot().view.edges() is not None


def test_a_view_in_memory_survives_a_build_that_only_changes_who_searches():
    documents = [Document(name, text) for name, text in TEXTS.items()]
    index = Index(recipe="flat")
    index.build(documents)
    other = index.using("sirerag")
    other.build(documents)
    assert other.search("Hull", 3)
    index.build(documents)
    assert other.explain("Hull", 3, returns="units")
    assert other.snapshot().view.edges() is not None


@pytest.mark.parametrize("change", ["add", "delete"])
def test_a_recipe_that_cannot_follow_is_named(tmp_path, caplog, change):
    documents = [Document(name, text) for name, text in TEXTS.items()]
    for recipe in ("sirerag", "flat"):
        with Index(tmp_path / "index", recipe=recipe) as index:
            assert index.build(documents).dropped == ()
    with Index(tmp_path / "index", recipe="flat", language_model=DryRunModel()) as index:
        report = index.delete(["b"]) if change == "delete" else index.add([Document("g", "Kites.")])
    assert report.dropped == ("sirerag",)
    assert "the recipe sirerag was dropped" in caplog.text
