"""What is forgotten and purged leaves no word behind."""

import gc
import sqlite3

import pytest

from sire_core import Document, Index, recipes
from sire_core.data import demo_documents
from sire_core.errors import BuildError, ConfigurationError, CorpusError, IndexLockedError, ModelError
from sire_core.recipes import REGISTRY
from sire_core.storage.check import check_folder
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script
from support.indexes import indexed

TOWNS = ["Arle", "Brinn", "Corvo", "Delme", "Essen", "Fjord", "Gullane", "Holm", "Ister", "Jura", "Kemi", "Lindle"]
DOCUMENTS = [
    Document(f"d{n}", f"{town} lies on the Marl. {town} has a harbour of {TOWNS[n - 1]}.", town)
    for n, town in enumerate(TOWNS)
]
NAMED = ["d2", "d3"]  # Documents that name Corvo
RECIPES = {
    "sire": recipes.sire,
    "raptor": lambda: recipes.raptor(max_cluster_tokens=60),
    "sirerag": lambda: recipes.sirerag(max_cluster_tokens=60),
    "indexrag": recipes.indexrag,
    "msrag": lambda: recipes.msrag(summaries="eager"),
    "smart": recipes.smart,
    "pagerank": recipes.pagerank,
}
SHOWN = ("raptor", "sirerag", "indexrag", "smart")
"""Recipes whose units have these words; the others have names and passages only."""


class Bad:
    """Answers badly, in a valid form, where a call is about Corvo, until it is put right."""

    def __init__(self, *, bad=True):
        self.bad, self.down, self.asked = bad, False, []

    def __call__(self, call):
        about = "Corvo" in call.data
        self.asked.append(call.fields.get("title") if call.schema else None)
        if about and self.down:
            raise ModelError("the server is down")
        text = default_script(call)
        if not (about and self.bad):
            return text
        return text.replace("harbour", "zeppelin") if call.schema else f"A zeppelin! {text}"


def opened(folder, script, recipe, **more):
    return Index(
        folder, recipe=recipe, language_model=ScriptedModel(script), embedder=HashEmbedder(), chunker=None, **more
    )


@pytest.mark.quick(name=list(RECIPES)[::2])
@pytest.mark.parametrize(
    ("name", "extraction"), [*((name, "joint") for name in RECIPES), ("sirerag", "native"), ("indexrag", "native")]
)
def test_forgotten_answers_are_asked_for_again(tmp_path, name, extraction):
    said = {}
    for first in ("bad", "good"):
        script = Bad(bad=first == "bad")
        with opened(tmp_path / first, script, RECIPES[name](), extraction=extraction) as index:
            index.build(DOCUMENTS)
            is_bad = "zeppelin" in repr(read_contents(tmp_path / first).units)
            assert is_bad is (first == "bad" and name in SHOWN and extraction == "joint") or name == "sirerag"
            script.bad = False
            index.delete(["d5"])
            index.add([DOCUMENTS[5]])
            asked = len(script.asked)
            assert index.reextract([]).generation == index.build(DOCUMENTS).generation
            assert len(script.asked) == asked
            assert index.reextract(NAMED).failures == ()
            again = script.asked[asked:]
            assert again
            assert {title for title in again if title} <= {"Corvo", "Delme"}  # no other passage was extracted
            assert len(again) <= asked // 2
            assert check_folder(tmp_path / first) == []
        contents = read_contents(tmp_path / first)
        assert "zeppelin" not in repr(contents.units)
        said[first] = {part for part in contents.said() if part[0] not in ("rel_summary", "report")}
    assert said["bad"] == said["good"]  # but for clusters of what was said at first


@pytest.mark.quick(name=list(RECIPES)[::2])
@pytest.mark.parametrize("name", RECIPES)
def test_documents_of_the_same_words_are_forgotten_together(tmp_path, name):
    said = {}
    twins = [Document("twin", DOCUMENTS[2].text, "Corvo"), Document("other", DOCUMENTS[2].text, "Corvo", {"year": 1})]
    for first in ("bad", "good"):
        script = Bad(bad=first == "bad")
        with opened(tmp_path / first, script, RECIPES[name]()) as index:
            index.build([*DOCUMENTS, *twins])
            script.bad = False
            index.reextract(["twin"])
            index.reextract(["d3"])
            index.reextract([document.id for document in DOCUMENTS])
            index.delete(["d2"])
            assert check_folder(tmp_path / first) == []
        contents = read_contents(tmp_path / first)
        assert "zeppelin" not in repr(contents.units)
        said[first] = {part for part in contents.said() if part[0] not in ("rel_summary", "report")}
    assert said["bad"] == said["good"]


def test_what_cannot_be_asked_again_now_is_asked_by_the_next_change(tmp_path):
    script = Bad()
    with opened(tmp_path / "ix", script, "sirerag", max_failure_ratio=0.9) as index:
        index.build(DOCUMENTS)
        before = read_contents(tmp_path / "ix").said()
        script.down, script.bad = True, False
        index.reextract(NAMED)
        assert [failure.where for failure in index.failures()][:1] == ["Corvo"]
        assert index.search("Corvo", 5)
    script.down = False
    with opened(tmp_path / "ix", script, "sirerag", max_failure_ratio=0) as index:
        index.add([])
        assert index.failures() == []
        assert read_contents(tmp_path / "ix").said() != before
        script.down = True
        with pytest.raises(BuildError):
            index.reextract(["d2", "d3"])
        assert index.search("Corvo", 5)
        script.down = False
        index.update([])
        assert index.failures() == []
    assert not any("zeppelin" in text for _, text, _ in read_contents(tmp_path / "ix").said())


def test_refusals_delete_nothing(tmp_path):
    script = Bad()
    with opened(tmp_path / "ix", script, "raptor") as index:
        index.build(DOCUMENTS)
        with pytest.raises(CorpusError, match="nothing"):
            index.reextract(["d2", "nothing"])
        with Index(tmp_path / "ix", embedder=HashEmbedder()) as other, pytest.raises(ConfigurationError, match="Pass"):
            other.reextract(["d2"])
        asked = len(script.asked)
        index.build(DOCUMENTS)
        assert len(script.asked) == asked
    with (
        Index(tmp_path / "ix", embedder=HashEmbedder(), allow={"x": 1}) as limited,
        pytest.raises(ConfigurationError, match="allow"),
    ):
        limited.reextract(["d2"])


SECRET = [
    Document(
        "secret", "Zorquine Vexalot met Lord Ashby in Port Amber. Lord Ashby paid Zorquine Vexalot.", "Zorquine Vexalot"
    ),
    Document("other", "Port Amber once hid Zorquine Vexalot. Mira Vale wrote about Zorquine Vexalot.", "Letters"),
]
KEPT = [
    *list(demo_documents())[:8],
    Document("ashby", "Lord Ashby lives in Port Amber. Mira Vale joined Lord Ashby.", "Ashby"),
]
CANARIES = (b"zorquine", b"vexalot")


def files_with_canary(folder):
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            raw = path.read_bytes().lower()
            wide = [b"".join(bytes((c, 0, 0, 0)) for c in word) for word in CANARIES]  # numpy's strings
            if any(word in raw for word in (*CANARIES, *wide)):
                found.append(path.relative_to(folder).as_posix())
    return found


@pytest.mark.quick(name=["sire", "sirerag", "smart"])
@pytest.mark.parametrize("with_model", [False, True])
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_no_word_of_a_deleted_document_is_left(tmp_path, name, with_model):
    model = ScriptedModel() if with_model else None
    embedder = HashEmbedder() if with_model else None
    with Index(tmp_path / "ix", recipe=name, embedder=embedder, language_model=model) as index:
        index.build([*KEPT[:5], *SECRET, *KEPT[5:]])
        assert any("vexalot" in hit.unit.text.lower() for hit in index.search("Zorquine Vexalot", 5))
        assert len(files_with_canary(tmp_path / "ix")) >= 2
        index.delete([document.id for document in SECRET])
        index.purge()
        assert files_with_canary(tmp_path / "ix") == []
        hits = index.search("Zorquine Vexalot met Lord Ashby", 500)
        assert not any("vexalot" in repr(hit).lower() for hit in hits)
        found = read_contents(tmp_path / "ix")
        assert "vexalot" not in repr(found).lower()
        asked = len(model.log) if model else 0
        index.update([Document("new", "Nothing here.")])
        if model:
            said = " ".join(call.data for call in model.log[asked:]).lower()
            assert "vexalot" not in said
    assert files_with_canary(tmp_path / "ix") == []


def test_a_passage_shared_with_another_document_keeps_its_record(tmp_path):
    model = ScriptedModel()
    shared = Document("copy", KEPT[0].text, KEPT[0].title, KEPT[0].metadata)
    with Index(tmp_path / "ix", recipe="indexrag", embedder=HashEmbedder(), language_model=model) as index:
        index.build([shared, *KEPT])
        before = read_contents(tmp_path / "ix").said()
        index.delete(["copy"])
        index.purge()
        asked = len(model.log)
        index.add([shared])
        assert len(model.log) == asked
        assert read_contents(tmp_path / "ix").said() == before


def test_a_reader_elsewhere_delays_the_purge_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr("sire_core.storage.database._WAIT", 100)
    with indexed([*KEPT, *SECRET], tmp_path / "ix", recipe="flat", embedder=HashEmbedder()) as index:
        index.delete(["secret", "other"])
        reader = sqlite3.connect(str(tmp_path / "ix" / "index.sqlite"), isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM units").fetchone()
        with pytest.raises(IndexLockedError, match="purge again"):
            index.purge()
        reader.close()
        index.purge()
        assert files_with_canary(tmp_path / "ix") == []
        assert index.stats()["documents"] == len(KEPT)


def test_a_snapshot_that_waits_for_the_collector_delays_nothing(tmp_path):
    gc.disable()
    try:
        with indexed([*KEPT, *SECRET], tmp_path / "ix", recipe="raptor", embedder=HashEmbedder()) as index:
            waiting = [index.snapshot()]
            waiting.append(waiting)
            del waiting
            index.delete([document.id for document in SECRET])
            index.purge()
    finally:
        gc.enable()
    assert files_with_canary(tmp_path / "ix") == []
