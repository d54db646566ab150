"""Changes of an index, whole or not at all, and what they are estimated to cost."""

import asyncio
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from sire_core import Document, Index, Passage
from sire_core.changes.estimate import DryRunModel, Estimate
from sire_core.errors import BuildError, ConfigurationError, CorpusError, IndexLockedError
from sire_core.extend import PlainDerivation
from sire_core.extraction.rules import RulesExtractor
from sire_core.models.usage import CostRange
from sire_core.recipes import flat, indexrag, raptor, sirerag
from sire_core.storage.array_file import map_arrays, save_arrays
from sire_core.storage.check import check_folder
from sire_core.storage.store import Store
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.types import Edge, ExtractionRecord, Unit, UnitKind
from support.indexes import indexed


def index_at(path, **options):
    recipe = sirerag(variant="B", max_cluster_tokens=60, summary_tokens=25)
    return Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor(), **options)


def said(path):
    return read_contents(path).said(UnitKind.CHUNK, UnitKind.AGGREGATE, UnitKind.PROPOSITION)


def test_mistakes_change_nothing(tmp_path):
    path = tmp_path / "a"
    documents = [Document("d0", "Alma met Boris."), Document("d1", "Ewa Fell slept.")]
    with index_at(path) as index:
        index.build(documents)
        before = read_contents(path)
        with pytest.raises(CorpusError, match="Update them"):
            index.add([Document("new", "New."), Document("d0", "Other words.")])
        with pytest.raises(CorpusError, match="nowhere"):
            index.delete(["d0", "nowhere"])
        with pytest.raises(CorpusError, match="d9"):
            index.build([Document("d9", "One."), Document("d9", "Two.")])
        assert read_contents(path) == before
        assert index.delete("d0").removed == 1


def test_deleted_passages_leave_what_their_documents_without_them_would_give(tmp_path):
    pieces = {name: Passage(f"{name} met Alma.", name, metadata={"own": name}) for name in ("Boris", "Ceuta", "Drava")}
    first = Document("first", title="A Title", metadata={"tenant": "red"}, chunks=tuple(pieces.values()))
    others = [Document("second", chunks=(Passage("Ewa Fell met Alma.", "Ewa"),)), Document("cut", "Alma met Boris.")]
    with index_at(tmp_path / "a") as index, index_at(tmp_path / "b") as fresh:
        index.build([first, *others])
        (passage,) = [name for document, name in index.snapshot().passage_ids() if document == "cut"]
        with pytest.raises(CorpusError, match="cut was given whole"):
            index.delete_passages(["Boris", passage])
        report = index.delete_passages(["Boris", "Ewa", "nobody"])
        assert (report.updated, report.removed) == (1, 1)
        assert index.delete_passages("Boris").updated == 0
        left = [replace(first, chunks=(pieces["Ceuta"], pieces["Drava"])), others[1]]
        fresh.build(left)
        assert index.documents() == fresh.documents()
    assert said(tmp_path / "a") == said(tmp_path / "b")


def test_a_build_keeps_documents_as_they_are_stored(tmp_path):
    a, b, c, d = (Document(name, f"{name} met Alma.") for name in ("Boris", "Ceuta", "Drava", "Ewa"))
    with index_at(tmp_path / "i") as index:
        index.build([a, b, c])
        report = index.build([d], keep=["Boris", "nobody"])
        assert (report.added, report.unchanged, report.removed) == (1, 1, 2)
        assert [document.id for document in index.documents()] == ["Boris", "Ewa"]
        index.build([], keep="Ewa")
        assert [document.id for document in index.documents()] == ["Ewa"]


@pytest.mark.parametrize("recipe", ["sire", "pagerank", "msrag", "smart", "indexrag"])
def test_a_change_of_nothing_commits_nothing(tmp_path, recipe):
    documents = [Document("one", "Boris met Alma."), Document("two", "Alma founded Drava.")]
    with indexed(documents, tmp_path, recipe=recipe, embedder=HashEmbedder()) as index:
        edges = len(index.view().edges())
    before = (tmp_path / "index.sqlite").read_bytes()
    with Index(tmp_path, recipe=recipe, embedder=HashEmbedder()) as index:
        index.view()
        index.build(documents)
        index.update(documents[:1])
        index.delete(["nobody"], missing_ok=True)
        assert len(index.view().edges()) == edges
    assert (tmp_path / "index.sqlite").read_bytes() == before


FOUR = [Document(f"d{i}", f"Alma lives in Drava {i}.") for i in range(4)]


@pytest.fixture
def slow_commit(monkeypatch):
    """Makes commits of the index take a while, and tells when one begins and ends."""
    steps, commit = [], Store.commit

    def slow(self, changes):
        steps.append("begin")
        time.sleep(0.4)
        commit(self, changes)
        steps.append("end")

    monkeypatch.setattr(Store, "commit", slow)
    return steps


async def reach(steps, step):
    while step not in steps:
        await asyncio.sleep(0.01)


async def test_a_cancelled_commit_ends_before_another_writer_may_begin(tmp_path, slow_commit):
    path = tmp_path / "index"
    index, other = (Index(path, recipe="flat", embedder=HashEmbedder(), lock_timeout=0) for _ in range(2))
    build = asyncio.create_task(index.abuild(FOUR))
    await reach(slow_commit, "begin")
    build.cancel()
    await asyncio.sleep(0)
    with pytest.raises(IndexLockedError):
        await other.aadd([Document("x", "X.")])
    with pytest.raises(asyncio.CancelledError):
        await build
    assert slow_commit == ["begin", "end"]
    await other.aadd([Document("x", "X.")])
    assert len(read_contents(path).units) == 5
    index.close()
    other.close()


ANN, BOB, EVE = (
    Document("ann", "Ann met Bob.", title="Ann"),
    Document("bob", "Bob saw Dun. Ann saw Dun.", title="Bob"),
    Document("eve", "Eve saw Ann. Eve met Bob.", title="Eve"),
)


class Flaky(PlainExtractor):
    """Fails for some texts."""

    def __init__(self, silent):
        super().__init__()
        self.silent = silent

    async def extract(self, chunks):
        silent = {item.chunk.hash for item in chunks if item.chunk.text in self.silent}
        async for batch in super().extract(chunks):
            failed = ExtractionRecord("", "plain", "1", status="failed", reason="silent")
            yield [replace(failed, hash=record.hash) if record.hash in silent else record for record in batch]


def index_over(path, recipe, *silent, max_failure_ratio=0.5):
    return Index(
        path, recipe=recipe, embedder=HashEmbedder(), extractor=Flaky(silent), max_failure_ratio=max_failure_ratio
    )


@pytest.mark.parametrize("recipe", ["sirerag", "indexrag", "iier", "pagerank", "msrag"])
def test_what_an_unfinished_build_repaired_is_not_lost(tmp_path, recipe):
    path = tmp_path / "index"
    with index_over(path, recipe, ANN.text) as index:
        index.build([ANN, BOB])
        assert index.stats()["failed"] == 1
    with index_over(path, recipe, EVE.text, max_failure_ratio=0.1) as index, pytest.raises(BuildError):
        index.add([EVE])  # repairs Ann's passage before it stops
    with index_over(path, recipe) as index:
        index.build([ANN, BOB])
        assert index.stats()["failed"] == 0
    with index_over(tmp_path / "fresh", recipe) as fresh:
        fresh.build([ANN, BOB])
    grown, wanted = read_contents(path), read_contents(tmp_path / "fresh")
    assert grown.units == wanted.units
    assert set(map(repr, grown.edges)) == set(map(repr, wanted.edges))


PAID = [
    Document("a", "The Salt Lantern was directed by Petra Quillon.", title="The Salt Lantern"),
    Document("b", "Petra Quillon was born in Varn Harbour.", title="Petra Quillon"),
    Document("c", "Varn Harbour is a village on Corrow.", title="Varn Harbour"),
]


@pytest.fixture
def folder(tmp_path):
    indexed(PAID, tmp_path / "index", recipe="sirerag", embedder=HashEmbedder(), language_model=ScriptedModel())
    return tmp_path / "index"


def contents(folder):
    view = Index(folder, embedder=HashEmbedder()).view()
    return {unit.id for unit in view.units(range(view.size))}


@pytest.mark.parametrize("change", ["add", "update", "delete", "build"])
def test_a_change_without_the_model_is_refused_and_loses_nothing(folder, change):
    before = contents(folder)
    index = Index(folder, embedder=HashEmbedder())
    given = ["a"] if change == "delete" else [Document("d", "Corrow is an island.", title="Corrow")]
    with pytest.raises(ConfigurationError, match="Give the same language_model"):
        getattr(index, change)(given)
    assert contents(folder) == before


def test_a_second_recipe_without_the_model_stands_beside(folder):
    before = contents(folder)
    Index(folder, recipe="raptor", embedder=HashEmbedder()).build(PAID)
    view = Index(folder, recipe="sirerag", embedder=HashEmbedder()).view()
    assert {unit.id for unit in view.units(range(view.size))} == before


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
    indexed(documents, tmp_path / "index", recipe="flat").close()
    with Index(tmp_path / "index", recipe=mine(derive)) as index, pytest.raises(ConfigurationError, match=said):
        index.build(documents)
    with Index(tmp_path / "index", recipe="flat") as index:
        assert index.stats()["generation"] == 1
        index.add([Document("g", "Kites rise over Hull.")])
        assert len(index.search("Hull", 10)) == 5
    with indexed(documents, tmp_path / "index", recipe=mine(lambda passages: ([], []), "2")) as index:
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


def test_recipes_of_older_extraction_rules_are_built_again_with_the_next_change(tmp_path, caplog, monkeypatch):
    documents = [Document(name, text) for name, text in TEXTS.items()]
    recipes = ("sirerag", "raptor", "sire")
    with monkeypatch.context() as older:
        older.setattr("sire_core.extraction.rules._RULES_VERSION", "rules/1")
        for recipe in recipes:
            with indexed(documents, tmp_path / "index", recipe=recipe) as index:
                assert index.stats()["extraction"] == ("" if recipe == "raptor" else "rules/1")  # it needs no records
    added = Document("g", "Kites rise over Hull.")
    with Index(tmp_path / "index") as index:
        assert index.build(documents).dropped == ()  # nothing changes: nothing is lost either
        assert index.add([added]).dropped == ()
    assert "dropped" not in caplog.text
    for recipe in recipes:
        with Index(recipe=recipe) as fresh, Index(tmp_path / "index", recipe=recipe) as index:
            fresh.build(documents)
            fresh.add([added])
            found, expected = (one.search("kites over Hull", 5, returns="units") for one in (index, fresh))
            assert [(hit.unit.id, round(hit.score, 5)) for hit in found] == [
                (hit.unit.id, round(hit.score, 5)) for hit in expected
            ]
            assert sorted(index.stats()["recipes"]) == sorted(recipes)


PEOPLE = [f"{first} {last}" for first in ("Mira", "Anna", "Tom", "Ida") for last in ("Vale", "Berg", "Hale", "Moor")]
CORPUS = [
    Document(
        f"d{i}", f"{PEOPLE[i % 16]} was a painter. {PEOPLE[i % 16]} married {PEOPLE[(i * 5 + 1) % 16]}.", f"No. {i}"
    )
    for i in range(24)
]


def test_the_estimate_of_a_change_is_of_what_it_touches_in_all_recipes_of_the_folder(tmp_path):
    options = {"embedder": HashEmbedder(), "language_model": ScriptedModel(), "extractor": RulesExtractor()}
    for recipe in (raptor(), indexrag()):
        with Index(tmp_path / "ix", recipe=recipe, **options) as index:
            whole = index.estimate(CORPUS).total.calls
            index.build(CORPUS)
            assert index.estimate(CORPUS).total.calls == (0, 0)
    after = [*CORPUS, Document("new", f"{PEOPLE[3]} married {PEOPLE[5]} and {PEOPLE[7]}.", "New")]
    with Index(tmp_path / "ix", recipe=raptor(), **options) as index:  # the bridges of indexrag follow, too
        low, high = index.estimate(after).total.calls
        report = index.build(after)
    assert report.usage["deriving"].calls > 0
    assert low <= report.calls <= high
    assert high < whole[1]


def test_a_price_below_a_cent_is_no_price_of_nothing():
    tiny, none = (CostRange(price=(0.0, price)) for price in (0.001, 0.0))
    assert "under $0.01" in Estimate(1, 0, tiny, tiny).describe()
    assert "$0.00" in Estimate(1, 0, none, none).describe()


def test_damaged_vectors_do_not_reach_the_store(tmp_path):
    documents = [Document(f"d{number}", f"Word{number} saw Thing{number % 7}.") for number in range(300)]
    told = [replace(document, metadata={"told": True}) for document in documents]
    indexed(documents, tmp_path / "index", recipe="flat", embedder=HashEmbedder()).close()
    before = read_contents(tmp_path / "index").vectors
    (file,) = (tmp_path / "index").glob("derived/*/arrays.bin")
    arrays = {name: array.copy() for name, array in map_arrays(file).items()}
    save_arrays(file, arrays | {"matrix": np.zeros_like(arrays["matrix"])})  # of the right length: nobody can tell
    with Index(tmp_path / "index", recipe="flat", embedder=HashEmbedder()) as index:
        index.update(told)
    found = read_contents(tmp_path / "index")
    assert {unit.metadata.get("told") for unit in found.units.values()} == {True}
    assert found.vectors == before


NAMES = ["Alma", "Boris", "Ceuta", "Drava", "Ewa Fell", "Port Guam"]


def test_another_seed_is_kept_by_the_folder(tmp_path):
    documents = [Document(f"d{i}", f"{NAMES[i % 6]} met {NAMES[i % 5]}. It was day {i}.") for i in range(40)]
    with index_at(tmp_path / "a", seed=5) as index:
        index.build(documents[:39])
    with index_at(tmp_path / "a", seed=9) as index:
        index.add(documents[39:])
    with index_at(tmp_path / "b", seed=5) as index:
        index.build(documents[:39])
        index.add(documents[39:])
    assert read_contents(tmp_path / "a") == read_contents(tmp_path / "b")
